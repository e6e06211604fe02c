"""Two processes talk through Holdfast's peer: run it with `make demo`.

This process starts itself again as a child and plays the client; the child plays a small counting service. Watch order,
questions in both directions, cancellation, and what happens to bytes that are no message at all.
"""

from __future__ import annotations

import asyncio
import sys
import time

import msgspec

from holdfast.errors import RemoteError
from holdfast.peer import Peer, Routes
from holdfast.transport import open_stdio, spawn


class Count(msgspec.Struct):
    """Asks the child to count."""

    to: int


class Tick(msgspec.Struct):
    """The child counted."""

    n: int


async def child() -> None:
    """Serve on stdin and stdout until the client is gone."""
    routes = Routes()
    peer = Peer(open_stdio(), routes)

    async def count(params: Count) -> dict[str, int]:
        for n in range(1, params.to + 1):
            peer.notify("tick", Tick(n))
        await peer.drain()
        return {"counted": params.to}

    async def greet(_: msgspec.Raw) -> str:
        name = await peer.request("who_are_you", result=str)  # the one who answers may ask back
        print("this print() of the child went to stderr, not into the protocol")
        return f"Hello, {name}!"

    async def forever(_: msgspec.Raw) -> None:
        await asyncio.Event().wait()

    routes.request("count", count, Count)
    routes.request("greet", greet)
    routes.request("forever", forever)
    await peer.run()


async def client() -> None:
    """Start the child, put it through its paces, and leave."""
    ticks: list[int] = []

    async def on_tick(tick: Tick) -> None:
        ticks.append(tick.n)

    async def who_are_you(_: msgspec.Raw) -> str:
        return "the client"

    routes = Routes()
    routes.notification("tick", on_tick, Tick)
    routes.request("who_are_you", who_are_you)

    transport = await spawn(sys.executable, __file__, "child")
    async with Peer(transport, routes) as peer:
        print(f"Started a child process ({transport.pid}); speaking JSON-RPC over its stdin and stdout.\n")

        print("greet   ->", await peer.request("greet", result=str))

        began = time.perf_counter()
        answer = await peer.request("count", Count(100_000), result=dict[str, int])
        took = time.perf_counter() - began
        in_order = ticks == list(range(1, 100_001))
        print(f"count   -> {answer}, after {len(ticks):,} notifications, all in order: {in_order} ({took:.2f} s)")

        try:
            async with asyncio.timeout(0.1):
                await peer.request("forever")
        except TimeoutError:
            print("forever -> cancelled after 0.1 s, here and over there")

        try:
            await peer.request("no_such_method")
        except RemoteError as e:
            print("unknown ->", e)

        print("\nNow bytes that are no message; the connection lives on:")
        said: list[bytes] = []
        peer.observe(lambda direction, line: said.append(line) if direction == "in" else None)
        for garbage in (b"}{", b"null", b"[]", b'[1, {"jsonrpc":"2.0","id":"x","method":"greet?"}]'):
            transport.send(garbage)
            await peer.request("count", Count(0))
            print(f"  {garbage.decode():<52} -> {said[0].decode()[:110]}")
            said.clear()
    print(f"\nThe child exited with status {await transport.wait()}. On its stderr: {transport.stderr!r}")


if __name__ == "__main__":
    asyncio.run(child() if "child" in sys.argv[1:] else client())
