"""Streamers are killed at random moments (P1, P2, P3): is all that was told about in the store afterwards?

    python -m core.tests.torture.kill9 --rounds 10000

Each round forks a process that works on a store (`core.tests.programs.streamer`) and kills it with SIGKILL: after a
random time, or as soon as it has told a random number of bytes. Now and then the one who comes to recover is killed
too. Then a process that has never seen the store before looks whether everything is as `core.tests.support.witness`
says it must be, and the next round goes on with the same store. Exits with 1 if anything was not.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import select
import signal
import sys
import time
import traceback
from dataclasses import astuple, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from core.tests.programs.streamer import stream
from core.tests.support.sessions import ScriptedAgent, engine_at
from core.tests.support.witness import Witness, decode, encode
from core.tests.torture.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PATIENCE = 40.0

MEMORY = "/dev/shm"

TALLY = b"tally "

STORE_ROUNDS = 40
"""A store is used for so many rounds; then comes a new one, so that making one is interrupted too."""


@dataclass(slots=True)
class Tally:
    """What happened in the rounds of one process, or of all."""

    rounds: int = 0
    broken: int = 0
    recoveries_killed: int = 0
    seen: int = 0
    failures: int = 0

    @classmethod
    def sum(cls, tallies: Iterable[Tally]) -> Tally:
        """Put the tallies of several processes together."""
        return cls(*map(sum, zip(*map(astuple, tallies), strict=True)))

    def __str__(self) -> str:
        return (
            f"{self.rounds:,} kills, {self.broken:,} of them in the middle of a turn, {self.recoveries_killed:,} more "
            f"in the middle of a recovery; {self.seen:,} events seen; {self.failures:,} failures"
        )


def fork(work: Callable[[int], None]) -> tuple[int, int]:
    """Do something in a process of its own; give its number and the end of a pipe it writes to."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(read)
            work(write)
            status = 0
        except BaseException:  # noqa: BLE001
            os.write(write, traceback.format_exc().encode()[-4_000:])
        finally:
            os._exit(status)
    os.close(write)
    return pid, read


def read_until(fd: int, moment: float, most: int) -> bytes:
    """Read what comes until a moment, and no more than so many bytes."""
    chunks: list[bytes] = []
    while most > 0 and (left := moment - time.monotonic()) > 0:
        if select.select([fd], [], [], left)[0]:
            chunk = os.read(fd, min(1 << 16, most))
            if not chunk:
                break
            chunks.append(chunk)
            most -= len(chunk)
    return b"".join(chunks)


def read_to_the_end(fd: int) -> bytes:
    chunks: list[bytes] = []
    while chunk := os.read(fd, 1 << 16):
        chunks.append(chunk)
    os.close(fd)
    return b"".join(chunks)


def kill_in_the_middle(work: Callable[[int], None], rng: random.Random, seconds: float) -> tuple[bytes, bool]:
    """Let somebody work, and kill him; give all that he told before, and whether it was us who ended him."""
    pid, fd = fork(work)
    told = b""
    match rng.choices(["at once", "when it works", "when it has told"], [1, 4, 5]):
        case ["at once"]:
            told = read_until(fd, time.monotonic() + rng.random() * seconds, 1 << 30)
        case ["when it works"]:
            told = read_until(fd, time.monotonic() + PATIENCE, 1)
            told += read_until(fd, time.monotonic() + rng.random() * seconds, 1 << 30)
        case _:
            told = read_until(fd, time.monotonic() + PATIENCE, int(10 ** rng.uniform(1.5, 4.7)))
    os.kill(pid, signal.SIGKILL)
    told += read_to_the_end(fd)
    _, status = os.waitpid(pid, 0)
    return told, os.WIFSIGNALED(status)


def look(place: Path, witness: Witness) -> tuple[Witness, str]:
    """Let a fresh process look at the store; give what it found, or what is wrong."""

    def work(fd: int) -> None:
        agent = ScriptedAgent()

        async def run() -> None:
            async with engine_at(place, agent) as engine:
                await witness.look(engine)
                assert agent.performed == [], "a turn was run again"
                # An empty one is of a turn that was about to begin; the next one that does takes its place.
                left = [it.name for it in place.parent.glob("*.turns/*") if it.read_bytes().strip(b"\0")]
                assert not left, f"logs of turns that are over: {left}"

        asyncio.run(run())
        os.write(fd, b"ok")
        found = encode(witness)
        view = memoryview(found)
        while view:
            view = view[os.write(fd, view) :]

    pid, fd = fork(work)
    said = read_to_the_end(fd)
    _, status = os.waitpid(pid, 0)
    if status == 0 and said.startswith(b"ok"):
        return decode(said[2:], witness.seen), ""
    return witness, said.decode(errors="replace") or f"status {status}"


def one_round(place: Path, witness: Witness, rng: random.Random, tally: Tally) -> tuple[Witness, str]:
    """Kill somebody, and look."""
    seed, sessions = rng.getrandbits(32), list(witness.sessions)

    def work(fd: int) -> None:
        asyncio.run(stream(str(place), fd, seed, sessions))

    told, killed = kill_in_the_middle(work, rng, 0.06)
    if not killed:
        return witness, f"the streamer failed: {told[-4_000:].decode(errors='replace')}"
    tally.rounds += 1
    tally.broken += told.count(b'"prompt"') // 2 > told.count(b'"end"')
    witness.hear(told)
    if rng.random() < 0.25:

        def recover(fd: int) -> None:
            asyncio.run(stream(str(place), fd, seed, list(witness.sessions), turns=0))

        kill_in_the_middle(recover, rng, 0.02)
        tally.recoveries_killed += 1
    witness, wrong = look(place, witness)
    for session_id in [it for it, known in witness.sessions.items() if len(known.history) > 300 or rng.random() < 0.1]:
        del witness.sessions[session_id]  # enough of it
    return witness, wrong


def lane(rounds: int, seed: int, fd: int) -> None:
    """Do some of the rounds."""
    rng = random.Random(seed)
    tally = Tally()
    while tally.rounds < rounds and not tally.failures:
        # A disk takes its time to sync, memory does not: the moments that are hit differ.
        where = rng.choice([None, MEMORY]) if Path(MEMORY).exists() else None
        with TemporaryDirectory(prefix="kill9-", dir=where) as directory:
            place, witness = Path(directory) / "store" / "sessions.db", Witness()
            for _ in range(min(STORE_ROUNDS, rounds - tally.rounds)):
                witness, wrong = one_round(place, witness, rng, tally)
                tally.seen, before = tally.seen + witness.seen, witness.seen
                witness.seen -= before
                if wrong:
                    tally.failures += 1
                    print(f"round {tally.rounds} of seed {seed}:\n{wrong}", file=sys.stderr, flush=True)
                os.write(fd, TALLY + b"%d %d %d %d %d\n" % astuple(tally))
                if wrong:
                    break


def torture(rounds: int, seed: int, jobs: int, tell: Callable[[int], None] = lambda _: None) -> Tally:
    """Do the rounds, in so many processes side by side; each says after every round how far it has come."""
    lanes = {
        fd: pid
        for n in range(jobs)
        for pid, fd in [fork(lambda fd, n=n: lane(rounds // jobs + (n < rounds % jobs), seed * 1_000 + n, fd))]
    }
    tallies = {fd: Tally() for fd in lanes}
    said = dict.fromkeys(lanes, b"")
    while lanes:
        for fd in select.select(list(lanes), [], [])[0]:
            chunk = os.read(fd, 1 << 16)
            *lines, said[fd] = (said[fd] + chunk).split(b"\n")
            for line in lines:
                if line.startswith(TALLY):
                    tallies[fd] = Tally(*map(int, line.removeprefix(TALLY).split()))
                else:
                    print(line.decode(errors="replace"), file=sys.stderr)
            if not chunk:
                os.close(fd)
                _, status = os.waitpid(lanes.pop(fd), 0)
                tallies[fd].failures += status != 0
        tell(sum(it.rounds for it in tallies.values()))
    return Tally.sum(tallies.values())


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m core.tests.torture.kill9", description="Kill engines at random moments."
    )
    parser.add_argument("--rounds", type=int, default=10_000, help="how many to kill (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3)), help="where to begin")
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes (default: %(default)s)"
    )
    options = parser.parse_args()
    logging.disable()
    progress = Progress(options.rounds, "kills")
    tally = torture(options.rounds, options.seed, options.jobs, progress.tell)
    progress.close(f"{tally} ({progress.seconds:.0f} s, seed {options.seed})")
    return 1 if tally.failures or tally.rounds < options.rounds else 0


if __name__ == "__main__":
    sys.exit(main())
