"""Holdfast over the network: ``MODE STORE``; the port is on stdout. Every update is stored before it is sent.

MODE is ``direct`` (our own uvicorn), ``mounted`` (in another ASGI application, on a uvicorn as it is) or ``impatient``
(one that asks a silent client for a sign of life soon). The prompt says what to do: ``burst 20000`` (64 at once),
``tick 5000``, ``timed 100 300`` (so many a second, so many in all, with the time in each).
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from typing import Any

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from holdfast import Agent, Turn
from holdfast.agent.port import AuthorAgent
from holdfast.engine import EngineLimits
from holdfast.server import Host
from holdfast.server.remote import Everybody, Names, RemoteLimits, RemoteServer
from holdfast.server.remote.serving import our_uvicorn
from holdfast.store import EventWindow

TEXT = "a few words of an answer, say 32"
BURST = 64

agent = Agent("bench")


@agent.prompt
async def answer(turn: Turn) -> None:
    what, *numbers = turn.text.split()
    if what == "burst":
        for _ in range(int(numbers[0]) // BURST):
            for _ in range(BURST):
                await turn.say(TEXT)
            await asyncio.sleep(0)
    elif what == "tick":
        for _ in range(int(numbers[0])):
            await turn.say(TEXT)
            await asyncio.sleep(0)
    elif what == "timed":
        await timed(turn, *map(int, numbers))


async def timed(turn: Turn, rate: int, count: int) -> None:
    for _ in range(count):
        await turn.say(f"sent at {time.monotonic_ns():020} ")
        await asyncio.sleep(1 / rate)


def mounted(app: Any) -> Any:
    """Put an application below a path, as frameworks do."""

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "root_path": "/agents"}, receive, send)

    return outer


async def main(mode: str, store: str) -> None:
    host = Host(AuthorAgent(agent), store=store, limits=EngineLimits(keep_events=EventWindow()))
    listening = socket.create_server(("127.0.0.1", 0), backlog=4_096)
    port = listening.getsockname()[1]
    limits = RemoteLimits(connections=5_000, burst=100_000.0, requests=100_000.0, ping=3_600.0)
    if mode == "impatient":
        limits = limits._replace(ping=2.0, pong=2.0)
    remote = RemoteServer(host, names=Names([f"127.0.0.1:{port}"]), authenticator=Everybody(), limits=limits)
    if mode == "mounted":
        config = uvicorn.Config(
            mounted(remote), ws=WebSocketsSansIOProtocol, lifespan="off", log_level="error", ws_ping_interval=None
        )
        server = uvicorn.Server(config)
    else:
        server = our_uvicorn(remote)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    print(port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await remote.close()
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
