# ruff: noqa: ASYNC221, ASYNC230, ASYNC251, T201
"""A peer on stdin and stdout, with handlers good and bad: what the fault tests start, torment and end."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from holdfast.peer import Peer, Routes
from holdfast.server.stdio import LIMITS, run_to_the_end
from holdfast.transport import open_stdio

if TYPE_CHECKING:
    from msgspec import Raw

NOISE = "noise that is no protocol"


class Agent:
    def __init__(self) -> None:
        self.peer: Peer
        self.handled: list[object] = []
        self.routes = Routes()
        self.routes.request("echo", self.echo)
        self.routes.request("ordered", self.echo, ordered=True)
        self.routes.request("big", self.big, list[int])
        self.routes.request("flood", self.flood, list[int])
        self.routes.request("wait", self.wait)
        self.routes.request("stubborn", self.stubborn)
        self.routes.request("block", self.block, list[float])
        self.routes.request("unencodable", self.unencodable)
        self.routes.request("fail", self.fail)
        self.routes.request("exit", self.exit)
        self.routes.request("noise", self.noise)
        self.routes.request("handled", self.what_was_handled)
        self.routes.request("ask", self.ask)
        self.routes.request("peak", self.peak)
        self.routes.notification("note", self.note)
        self.routes.notification("slow", self.slow)
        self.routes.notification("stuck", self.wait)
        self.routes.notification("noise", self.noise)

    async def echo(self, params: Raw) -> Raw:
        return params

    async def big(self, params: list[int]) -> str:
        return "x" * params[0]

    async def flood(self, params: list[int]) -> None:
        """Tell much and never look whether anybody reads it."""
        count, size = params
        for _ in range(count):
            self.peer.notify("flood", "x" * size)

    async def wait(self, _params: Raw) -> None:
        await asyncio.Event().wait()

    async def stubborn(self, _params: Raw) -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                print("I stay")

    async def block(self, params: list[float]) -> str:
        """Block the loop, as careless code does."""
        time.sleep(params[0])
        return "blocked"

    async def unencodable(self, _params: Raw) -> object:
        return object()

    async def fail(self, _params: Raw) -> None:
        raise RuntimeError("hunter2")

    async def exit(self, _params: Raw) -> None:
        sys.exit(3)

    async def noise(self, _params: Raw) -> None:
        """Write to stdout in every way there is."""
        libc = ctypes.CDLL(None)
        print(NOISE)
        print(NOISE, file=sys.stdout, flush=True)
        print(NOISE, file=EARLY_STDOUT)
        print(NOISE, file=sys.__stdout__)
        os.write(1, NOISE.encode() + b"\n")
        with open("/dev/fd/1", "w") as anew:  # noqa: PTH123
            anew.write(NOISE + "\n")
        libc.puts(NOISE.encode())  # stays in the C library's buffer until the process exits
        libc.write(1, NOISE.encode(), len(NOISE))
        subprocess.run(["echo", NOISE], check=True)
        subprocess.run(f"echo {NOISE}", shell=True, check=True)
        logging.getLogger("noisy").warning(NOISE)

    async def what_was_handled(self, _params: Raw) -> list[object]:
        return self.handled

    async def note(self, params: Raw) -> None:
        self.handled.append(params)

    async def slow(self, params: Raw) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        self.handled.append(params)

    async def ask(self, params: Raw) -> list[object]:
        """Ask the other side; say how many notifications had been handled when its answer came."""
        answer = await self.peer.request("question", params)
        return [answer, len(self.handled)]

    async def peak(self, _params: Raw) -> int:
        """Say how much memory this process ever had, in bytes."""
        return peak_memory()

    async def serve(self) -> None:
        if not sys.stdin or not sys.stdin.isatty():
            print(NOISE)  # not flushed yet
        transport = open_stdio(limit=int(sys.argv[1]) if len(sys.argv) > 1 else 16 << 20)
        limits = msgspec.structs.replace(LIMITS, linger=60) if "PATIENT" in os.environ else LIMITS
        self.peer = Peer(transport, self.routes, limits=limits)
        if "TERMINATED_EARLY" in os.environ:
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(10):  # the loop hears of it before anybody serves
                await asyncio.sleep(0)
        await self.peer.run()
        if "SLOW_SHUTDOWN" in os.environ:
            await asyncio.sleep(0.3)
            print("everything is stored", file=sys.stderr)
        if "REPORT_PEAK" in os.environ:
            print("peak", peak_memory(), file=sys.stderr)


def peak_memory() -> int:
    with open("/proc/self/status") as status:  # noqa: PTH123
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


EARLY_STDOUT = sys.stdout

if __name__ == "__main__":
    logging.basicConfig(format="log: %(message)s")
    if "ORDINARY_EXIT" in os.environ:
        asyncio.run(Agent().serve())
    else:
        run_to_the_end(Agent().serve())
