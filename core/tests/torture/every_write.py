"""An engine is killed at every single system call by which it changes a disk (P1, P2, P3): is everything there?

    python -m core.tests.torture.every_write

The same work (a turn with all that a turn can have, then a title, an archive, a fork, a new session, a deletion) is
done again and again by `core.tests.programs.streamer`; `strace` kills it at its first write, at its second, at its
first sync, and so on until there is no call left. After each, a fresh process looks at the store as in `kill9`. Needs
`strace` and the right to trace; says so and does nothing where either is missing. Exits with 1 if anything was not as
it must be.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import asyncio
import ctypes
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from core.tests.programs.streamer import stream
from core.tests.support.witness import Witness, decode, encode
from core.tests.torture.kill9 import PATIENCE, fork, look, read_to_the_end
from core.tests.torture.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CALLS = (
    "write", "pwrite64", "writev", "pwritev", "fsync", "fdatasync", "ftruncate", "unlink", "unlinkat", "rename",
    "renameat", "renameat2", "mkdir", "mkdirat", "flock",
)  # fmt: skip

TURN = "turn 38"
"""A prompt that makes the agent say, call, ask and set everything."""

PR_SET_PTRACER, PR_SET_PTRACER_ANY = 0x59616D61, -1


class Point(NamedTuple):
    """A moment to kill at: the so-manieth call of that name in any thread."""

    call: str
    times: int


class Run(NamedTuple):
    """What came of one run."""

    told: bytes
    killed: bool
    calls: int
    """How many calls were made, the last of which was not carried out if it was killed."""


def missing() -> str:
    """Say what is missing to do this; nothing if nothing is."""
    strace = shutil.which("strace")
    if strace is None:
        return "strace is not installed"
    tried = subprocess.run([strace, "-f", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.strip()}"


def traced(work: Callable[[int], None], point: Point | None, log: Path) -> Run:
    """Let somebody work, watched by strace, and killed by it at a point."""
    ready, go = os.pipe()

    def wait_and_work(fd: int) -> None:
        os.close(go)
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_long(PR_SET_PTRACER_ANY), 0, 0, 0)
        os.write(fd, b"\n")
        os.read(ready, 1)
        work(fd)

    pid, fd = fork(wait_and_work)
    os.close(ready)
    assert os.read(fd, 1) == b"\n"
    command = ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={','.join(CALLS)}", "-p", str(pid)]
    if point is not None:
        command += ["-e", f"inject={point.call}:signal=KILL:when={point.times}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as strace:
        try:
            _wait_for_tracer(pid)
            os.write(go, b"\n")
            os.close(go)
            told = read_to_the_end(fd)
        finally:
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            strace.wait(PATIENCE)
    return Run(told, os.WIFSIGNALED(status) and b'"shut down"' not in told, len(calls_in(log)))


def _wait_for_tracer(pid: int) -> None:
    until = time.monotonic() + PATIENCE
    while "TracerPid:\t0" in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < until, "strace did not attach"
        time.sleep(0.001)


def calls_in(log: Path) -> list[tuple[str, str]]:
    """Read which thread made which call, in order."""
    found = (re.match(r"(\d+) +(\w+)\(", line) for line in log.read_text(errors="replace").splitlines())
    return [(it[1], it[2]) for it in found if it]


def points(calls: Sequence[tuple[str, str]]) -> list[Point]:
    """List the moments to kill at. A call is counted in its thread, so that a few moments of two threads are one."""
    most: defaultdict[str, int] = defaultdict(int)
    for (_, call), times in Counter(calls).items():
        most[call] = max(most[call], times)
    return [Point(call, at) for call, times in most.items() for at in range(1, times + 1)]


class Scene:
    """A store with a past, of which each run gets a copy."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.template = base / "template" / "sessions.db"

        def work(fd: int) -> None:
            asyncio.run(stream(str(self.template), fd, 7, [], turns=3))

        pid, fd = fork(work)
        witness = Witness()
        witness.hear(read_to_the_end(fd))
        os.waitpid(pid, 0)
        witness, wrong = look(self.template, witness)
        assert not wrong, wrong
        self.session = max(witness.sessions, key=lambda it: len(witness.sessions[it].history))
        self._known = encode(witness)

    def run(self, name: str, point: Point | None) -> tuple[Run, str]:
        """Do everything once on a copy, be killed at a point, and look."""
        directory = self.base / name
        shutil.copytree(self.template.parent, directory)
        place, witness = directory / "sessions.db", decode(self._known, 0)

        def work(fd: int) -> None:
            asyncio.run(stream(str(place), fd, 1, [self.session], once=TURN))

        run = traced(work, point, self.base / f"{name}.log")
        witness.hear(run.told)
        if point is None and run.killed:
            return run, f"it did not come to its end: {run.told[-2_000:].decode(errors='replace')}"
        _, wrong = look(place, witness)
        shutil.rmtree(directory)
        return run, wrong


def torture(every: int, progress: Progress) -> tuple[int, int, int, list[str]]:
    """Kill at every point, or at some; give how many were tried, hit and there were, and what went wrong."""
    hit: set[int] = set()
    failures: list[str] = []
    with TemporaryDirectory(prefix="every-write-") as directory:
        scene = Scene(Path(directory))
        whole, wrong = scene.run("whole", None)
        assert not wrong, wrong
        all_points = points(calls_in(scene.base / "whole.log"))
        progress.total = len(all_points[::every])
        for at, point in enumerate(all_points[::every]):
            run, wrong = scene.run(f"run-{at}", point)
            if run.killed:
                hit.add(run.calls)
            if wrong:
                failures.append(f"killed at {point.call} number {point.times}:\n{wrong}")
                print(failures[-1], file=sys.stderr, flush=True)
            progress.tell(at + 1)
        return len(all_points[::every]), len(hit), whole.calls, failures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m core.tests.torture.every_write")
    parser.add_argument(
        "--every", type=int, default=1, help="kill only at every so-manieth call (default: %(default)s)"
    )
    options = parser.parse_args()
    if reason := missing():
        print(f"nothing was tried: {reason}")
        return 1 if os.environ.get("CI") else 0
    logging.disable()
    progress = Progress(0, "calls")
    tried, hit, calls, failures = torture(options.every, progress)
    progress.close(
        f"killed at {tried:,} points: {hit:,} different moments among {calls:,} calls; {len(failures):,} failures "
        f"({progress.seconds:.0f} s, no seed: the work is always the same)"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
