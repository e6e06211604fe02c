"""Servers over the network: what an update costs, with one client and with many, and what stalled ones cost others.

CPU is that of the whole server process, from the system; each figure is taken by turns in slices of one run.
"""

from __future__ import annotations

import re
import selectors
import statistics
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.model import TIMES, Benchmark, Bound, Figure
from bench.places import a_store
from bench.processes import ROOT, SCRIPTS, ContenderProcess
from bench.remote_client import HttpClient, WebSocketClient
from bench.wire import END_OF_TURN, open_session, prompt, take_turn

if TYPE_CHECKING:
    from collections.abc import Generator

    from bench.model import Sample
    from bench.processes import Contender

COUNT, SLICES = 8_192, 3
SLOW_COUNT = 1_024
"""For a server that takes long for each update."""

WATCHERS, WATCHED_COUNT = 100, 1_024
IDLE = 200
CONNECTIONS, STREAMING, STALLED, RATE, PACED = 1_000, 100, 10, 5, 20
PING, PONG = 2.0, 2.0
SDK1 = ROOT / ".venv-sdk1" / "bin" / "python"


@contextmanager
def _serving(contender: Contender, mode: str = "direct") -> Generator[tuple[ContenderProcess, int]]:
    """Start a contender's server; give its process and its port."""
    with a_store() as store:
        if contender.who == "python_sdk":
            server = ContenderProcess((str(SDK1), str(SCRIPTS / "python_sdk_remote.py")))
        elif contender.who == "ours":
            server = contender.start("remote", mode, store)
        else:
            server = contender.start("remote")
        with server:
            yield server, int(server.read_line())


def _cpu(process: ContenderProcess) -> float:
    """Return the CPU time a process has used, all its threads, in seconds."""
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def update(contender: Contender, *, over: str, mode: str = "direct") -> Sample:
    """Stream to one client, at once and one a tick, by turns."""
    taken: dict[str, list[float]] = {"burst": [], "tick": []}
    count = SLOW_COUNT if contender.who == "python_sdk" else COUNT
    with _serving(contender, mode) as (server, port):
        path = "/agents/acp" if mode == "mounted" else "/acp"
        client = HttpClient(port) if over == "http" else WebSocketClient(port, path=path)
        with client.new_session():
            client.take_turn("burst 640")
            for _ in range(SLICES):
                for how, found in taken.items():
                    before = _cpu(server)
                    client.take_turn(f"{how} {count}")
                    found.append((_cpu(server) - before) / count * 1e6)
    return {how: statistics.median(found) for how, found in taken.items()}


def watch(contender: Contender) -> Sample:
    """Stream to many watchers of one session: shared batches, and by ASGI, which sends each update by itself."""
    each: dict[str, list[float]] = {"direct": [], "mounted": []}
    with ExitStack() as stack:
        stages = {mode: _watched(stack, contender, mode) for mode in each}
        for _ in range(SLICES):
            for mode, (server, client, drain) in stages.items():
                before = _cpu(server)
                client.take_turn(f"burst {WATCHED_COUNT}")
                drain()
                each[mode].append((_cpu(server) - before) / WATCHED_COUNT / (WATCHERS + 1) * 1e6)
    shared, single = statistics.median(each["direct"]), statistics.median(each["mounted"])
    return {"shared": shared, "single": single, "share": shared / single}


def _watched(stack: ExitStack, contender: Contender, mode: str) -> tuple[ContenderProcess, WebSocketClient, Drain]:
    server, port = stack.enter_context(_serving(contender, mode))
    path = "/agents/acp" if mode == "mounted" else "/acp"
    client = stack.enter_context(WebSocketClient(port, version=2, path=path)).new_session()
    client.take_turn("burst 64")
    watchers = [
        stack.enter_context(WebSocketClient(port, version=2, path=path)).watch(client.session) for _ in range(WATCHERS)
    ]
    drain = Drain(watchers)
    client.take_turn("burst 64")
    drain()
    return server, client, drain


class Drain:
    """Reads many clients until the turn has ended for each of them."""

    def __init__(self, clients: list[WebSocketClient]) -> None:
        self._clients = clients
        self._chosen = selectors.DefaultSelector()
        for client in clients:
            self._chosen.register(client.socket, selectors.EVENT_READ)

    def __call__(self) -> list[float]:
        """Read; return how long each timed update was on its way, in seconds."""
        left = {client.socket for client in self._clients}
        tails = dict.fromkeys(left, b"")
        took: list[float] = []
        while left:
            for key, _ in self._chosen.select(60.0):
                chunk: bytes = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
                assert isinstance(chunk, bytes) and chunk
                now = time.monotonic_ns()
                took += [(now - int(sent)) / 1e9 for sent in re.findall(rb"sent at (\d{20})", chunk)]
                tail = tails[key.fileobj] + chunk  # type: ignore[index]  # pyright: ignore[reportArgumentType]
                if END_OF_TURN in tail:
                    left.discard(key.fileobj)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
                tails[key.fileobj] = tail[-64:]  # type: ignore[index]  # pyright: ignore[reportArgumentType]
        return took


def idle(contender: Contender) -> Sample:
    """Open many connections that only introduce themselves; give the memory of each."""
    with _serving(contender) as (server, port), ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(WebSocketClient(port))
        before = _memory(server)
        for _ in range(IDLE):
            stack.enter_context(WebSocketClient(port))
        time.sleep(0.5)
        return {"memory": (_memory(server) - before) / IDLE / 1024}


def _memory(process: ContenderProcess) -> int:
    rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    return int(re.search(r"Pss:\s+(\d+)", rollup)[1]) * 1024  # type: ignore[index]  # pyright: ignore[reportOptionalSubscript]


def crowd(contender: Contender) -> Sample:
    """A thousand connections, a hundred of them streaming; with ten that do not read, and without, by turns."""
    quantiles: dict[str, list[float]] = {"alone": [], "beside": []}
    with _serving(contender) as (_, port), ExitStack() as stack:
        for _ in range(CONNECTIONS - STREAMING - STALLED):
            stack.enter_context(WebSocketClient(port))
        streaming = [stack.enter_context(WebSocketClient(port)).new_session() for _ in range(STREAMING)]
        drain = Drain(streaming)
        for turn in range(1 + 2 * SLICES):
            with ExitStack() as stalled:
                for _ in range(STALLED if turn % 2 else 0):
                    deaf = stalled.enter_context(WebSocketClient(port, small=True)).new_session()
                    deaf.send(prompt("burst 20480", deaf.session)[:-1])
                time.sleep(4.0)  # what they are sent has filled all there is, and their turns wait
                for client in streaming:
                    client.send(prompt(f"timed {RATE} {PACED}", client.session)[:-1])
                took = drain()
            assert len(took) > STREAMING * PACED * 0.9
            if turn:
                quantiles["beside" if turn % 2 else "alone"].append(statistics.quantiles(took, n=100)[98])
            time.sleep(0.5)
    alone, beside = (statistics.median(quantiles[name]) for name in ("alone", "beside"))
    return {"alone": alone * 1e3, "beside": beside * 1e3, "share": beside / alone}


def gone(contender: Contender) -> Sample:
    """A client stops reading in mid-stream: how long its descriptor stays beyond the ping and its timeout."""
    with _serving(contender, "impatient") as (server, port):
        descriptors = Path(f"/proc/{server.pid}/fd")
        with WebSocketClient(port, small=True) as client:
            with WebSocketClient(port).new_session():
                pass
            time.sleep(1.0)
            client.new_session()
            client.send(prompt("burst 51200", client.session)[:-1])
            began, there = time.monotonic(), _sockets(descriptors)
            while _sockets(descriptors) >= there and time.monotonic() < began + 60:
                time.sleep(0.02)
            return {"seconds": time.monotonic() - began}


def _sockets(descriptors: Path) -> int:
    found = 0
    for entry in descriptors.iterdir():
        try:
            found += str(entry.readlink()).startswith("socket:")
        except OSError:
            continue
    return found


def bridge(contender: Contender) -> Sample:
    """Stream through `holdfast connect`, and over stdio from the agent itself, by turns."""
    taken: dict[str, list[float]] = {"alone": [], "bridge": [], "server": []}
    with _serving(contender) as (server, port), a_store() as store, contender.start("durable", store) as alone:
        command = (sys.executable, "-m", "holdfast", "connect", f"http://127.0.0.1:{port}/acp")
        with ContenderProcess(command) as connect:
            sessions = {alone: open_session(alone), connect: open_session(connect)}
            for process, session in sessions.items():
                take_turn(process, "burst 640", session)
            for _ in range(SLICES):
                before = _cpu(alone)
                take_turn(alone, f"burst {COUNT}", sessions[alone])
                taken["alone"].append(_cpu(alone) - before)
                before, served = _cpu(connect), _cpu(server)
                take_turn(connect, f"burst {COUNT}", sessions[connect])
                taken["bridge"].append(_cpu(connect) - before)
                taken["server"].append(_cpu(server) - served)
    each = {name: statistics.median(found) / COUNT * 1e6 for name, found in taken.items()}
    return {**each, "share": each["bridge"] / each["alone"]}


def _costs(over: str, python: tuple[float, float], typescript: tuple[float, float]) -> Benchmark:
    return Benchmark(
        name=f"serve-{over}",
        title=f"update served over {'a WebSocket' if over == 'websocket' else 'HTTP'} (ours stored)",
        sample=partial(update, over=over),
        figures=tuple(
            Figure(
                label, key, "µs", (Bound("times less", less, "python_sdk"), Bound("times less", than, "typescript_sdk"))
            )
            for label, key, less, than in (
                ("CPU, 64 at once", "burst", python[0], typescript[0]),
                ("CPU, one a loop tick", "tick", python[1], typescript[1]),
            )
        ),
    )


WEBSOCKET = _costs("websocket", (10, 4), (3, 1.8))
HTTP = _costs("http", (20, 8), (2, 2))


def mounted(contender: Contender) -> Sample:
    """Ours in another ASGI application, on a uvicorn as it is; others as they are."""
    return update(contender, over="websocket", mode="mounted" if contender.who == "ours" else "direct")


MOUNTED = Benchmark(
    name="serve-mounted",
    title="update served over a WebSocket, mounted in another ASGI application",
    sample=mounted,
    figures=(
        Figure("CPU, 64 at once", "burst", "µs", (Bound("share", 1, "typescript_sdk"),)),
        Figure("CPU, one a loop tick", "tick", "µs", (Bound("share", 1, "typescript_sdk"),)),
    ),
    who=("ours", "typescript_sdk"),
)

WATCH = Benchmark(
    name="serve-watchers",
    title="100 watchers of one session, bursts",
    sample=watch,
    figures=(
        Figure("CPU an update and watcher", "shared", "µs"),
        Figure("the same with a send each", "single", "µs"),
        Figure("of that", "share", TIMES, (Bound("at most", 0.05),)),
    ),
    who=("ours",),
)

IDLING = Benchmark(
    name="serve-idle",
    title="an idle connection over a WebSocket",
    sample=idle,
    figures=(
        Figure(
            "memory", "memory", "KB",
            (Bound("at most", 50), Bound("times less", 1, "python_sdk"), Bound("times less", 1, "typescript_sdk")),
        ),
    ),
)  # fmt: skip

CROWD = Benchmark(
    name="serve-crowd",
    title="1,000 connections, 100 of them streaming",
    sample=crowd,
    figures=(
        Figure("p99 of an update's way", "alone", "ms"),
        Figure("p99 beside 10 that do not read", "beside", "ms"),
        Figure("of that without", "share", TIMES, (Bound("at most", 1.2),)),
    ),
    who=("ours",),
)

GONE = Benchmark(
    name="serve-stalled",
    title=f"a client that stops reading, ping {PING:g} s, timeout {PONG:g} s",
    sample=gone,
    figures=(Figure("its socket is closed after", "seconds", "s", (Bound("at most", PING + PONG),)),),
    who=("ours",),
)

BRIDGE = Benchmark(
    name="serve-connect",
    title="update through `holdfast connect`, bursts",
    sample=bridge,
    figures=(
        Figure("CPU of the agent on stdio alone", "alone", "µs"),
        Figure("CPU of `connect`", "bridge", "µs"),
        Figure("CPU of its server", "server", "µs"),
        Figure("`connect`, of the agent alone", "share", TIMES, (Bound("at most", 2),)),
    ),
    who=("ours",),
)

SERVING = (WEBSOCKET, HTTP, MOUNTED, WATCH, IDLING, CROWD, GONE, BRIDGE)
