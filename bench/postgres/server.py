"""The server that is measured: one of our own, on a disk, so that commits cost what they cost."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, NamedTuple

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from bench.machine import cpu_of
from core.tests.support import postgres

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

# asyncpg has no types that strict checking can see through.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

SETTINGS = {"max_wal_size": "4GB", "shared_buffers": "512MB", "maintenance_work_mem": "512MB", "work_mem": "16MB"}


class Row(NamedTuple):
    """A figure, what was asked for, and whether that is met."""

    what: str
    figure: str
    asked: str = ""
    met: bool | None = None

    def __str__(self) -> str:
        verdict = {True: "yes", False: "NO", None: ""}[self.met]
        return f"| {self.what} | {self.figure} | {self.asked} | {verdict} |"


class Server(NamedTuple):
    """A server that runs."""

    cluster: postgres.Cluster

    @property
    def address(self) -> str:
        """The address of its database."""
        return self.cluster.address

    async def connect(self) -> Any:
        """Open a connection for what is not ours to measure."""
        return await asyncpg.connect(self.address)

    @property
    def process(self) -> int:
        """The process that started all others of it."""
        return int((self.cluster.data / "postmaster.pid").read_text().split()[0])

    @property
    def cpu(self) -> float:
        """The seconds of processor time that all of its processes have used, those that ended too."""
        postmaster = self.process
        used = cpu_of(postmaster) + sum(_times(postmaster)[2:])
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                if int(path.read_text().rpartition(")")[2].split()[1]) == postmaster:
                    used += cpu_of(int(path.parent.name))
            except (OSError, ProcessLookupError):  # it has ended meanwhile
                continue
        return used


def _times(pid: int) -> list[float]:
    """Return a process's own user and system time, and that of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in fields[11:15]]


@asynccontextmanager
async def running() -> AsyncGenerator[Server]:
    """Start a server; remove it afterwards."""
    cluster = postgres.Cluster(Path(mkdtemp(prefix="holdfast-pg-")))
    try:
        await asyncio.to_thread(cluster.create, **SETTINGS)
        await asyncio.to_thread(cluster.start)
        yield Server(cluster)
    finally:
        await asyncio.to_thread(cluster.remove)


async def timed(work: Callable[[], Awaitable[Any]], count: int) -> float:
    """Return the median time of something, in milliseconds."""
    times: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        await work()
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)
