"""Run the fuzzer; see the package."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import logging
import multiprocessing
import os
import sys
from multiprocessing.sharedctypes import RawArray
from typing import TYPE_CHECKING

from core.tests.torture.inputs import GROUP_LINES
from core.tests.torture.progress import Progress
from core.tests.torture.trial import Trial, shrink

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ctypes import Array
    from typing import TypeAlias

    Counts: TypeAlias = "Array[ctypes.c_longlong]"

GROUPS_PER_LIFE = 500


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m core.tests.torture", description="Feed a peer millions of bad lines."
    )
    parser.add_argument("--inputs", type=int, default=10_000_000, help="how many lines to try (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="where to begin (default: another place each time)")
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes (default: %(default)s)"
    )
    parser.add_argument("--group", type=int, default=None, help="try only this group, one that failed")
    options = parser.parse_args()
    seed: int = int.from_bytes(os.urandom(4)) if options.seed is None else options.seed
    if options.group is not None:
        logging.disable()
        return asyncio.run(_try([options.group], seed, RawArray(ctypes.c_longlong, 1), 0))
    return _torture(options.inputs, seed, options.jobs)


def _torture(inputs: int, seed: int, jobs: int) -> int:
    groups = -(-inputs // GROUP_LINES)
    done = RawArray(ctypes.c_longlong, jobs)
    progress = Progress(inputs, "inputs")
    workers = [
        multiprocessing.Process(target=_work, args=(range(job, groups, jobs), seed, done, job)) for job in range(jobs)
    ]
    for worker in workers:
        worker.start()
    while alive := [worker for worker in workers if worker.is_alive()]:
        alive[0].join(2)
        progress.tell(sum(done), f"{sum(done) / progress.seconds:,.0f} a second, seed {seed}")
        if any(worker.exitcode for worker in workers):
            for worker in workers:
                worker.terminate()
    for worker in workers:
        worker.join()
    failed = any(worker.exitcode for worker in workers)
    how = "FAILED" if failed else "every one answered as owed"
    progress.close(f"{sum(done)} inputs in {progress.seconds:.0f} s, seed {seed}: {how}")
    return 1 if failed else 0


def _work(numbers: Sequence[int], seed: int, done: Counts, job: int) -> None:
    logging.disable()  # handlers that fail on purpose are logged whole
    gc.set_threshold(50_000)
    sys.exit(asyncio.run(_try(numbers, seed, done, job)))


async def _try(numbers: Sequence[int], seed: int, done: Counts, job: int) -> int:
    trial = Trial()
    await asyncio.sleep(0)
    for at, number in enumerate(numbers):
        group, wrong = await trial.put(seed << 40 | number)
        if wrong:
            _report(seed, number, wrong, await shrink(group), group)
            return 1
        done[job] += len(group.lines)
        if at % GROUPS_PER_LIFE == GROUPS_PER_LIFE - 1:
            last = min(group.lines, key=len)  # never one of those that are too long for the oracle
            if wrong := await trial.end(last):
                _report(seed, number, wrong, [last], group)
                return 1
            trial = Trial()
            await asyncio.sleep(0)
    await trial.end(b"")
    return 0


def _report(seed: int, number: int, wrong: str, lines: list[bytes], group: object) -> None:
    known = [line for line in lines if line in getattr(group, "known", {})]
    sys.stderr.write(
        f"\n\ngroup {number} of seed {seed}: {wrong}\n"
        f"lines that still fail by themselves: {[line if line not in known else line[:200] for line in lines]!r}\n"
        f"again: python -m core.tests.torture --seed {seed} --group {number}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
