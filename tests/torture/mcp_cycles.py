"""Open and close toolboxes of servers that do their worst, again and again: no process and no descriptor may be left.

python -m tests.torture.mcp_cycles --cycles 1000
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import McpError
from tests.support.mcp import all_dead, hostile, open_files, toolbox

MANNERS: tuple[tuple[str, ...], ...] = ((), ("garbage",), ("deaf",), ("family",), ("exit",), ("silent",), ("stderr",))


class Outcome(NamedTuple):
    """What was left, and how much there was."""

    started: int
    files_before: int
    files_after: int


async def cycles(count: int, *, say: bool = False) -> Outcome:
    """Open and close so many toolboxes, each in a way of its own; fails if a process is left."""
    with tempfile.TemporaryDirectory() as directory:
        marks = Path(directory, "marks")
        await _cycle(0, marks)  # what is loaded once stays open
        before, started = open_files(), 0
        began = time.monotonic()
        for n in range(count):
            await _cycle(n, marks)
            started += _swept(marks)
            if say and n % 20 == 0:
                sys.stderr.write(f"\r{n} of {count}, {time.monotonic() - began:.0f} s, {open_files()} files open ")
        gc.collect()
        return Outcome(started, before, open_files())


async def _cycle(n: int, marks: Path) -> None:
    manners = MANNERS[n % len(MANNERS)]
    async with toolbox(hostile(*manners, MARKS=str(marks)), cwd=marks.parent) as box:
        if "silent" in manners or n % 3 == 2:  # closed while it connects
            await asyncio.sleep(0.02 * (n % 4))
            return
        with suppress(McpError):
            await box.call("it", "crash" if n % 5 == 4 else "echo")


def _swept(marks: Path) -> int:
    """Wait until all who started are gone, and forget them; say how many there were."""
    count = all_dead(marks)
    marks.unlink(missing_ok=True)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description="Open and close MCP servers.")
    parser.add_argument("--cycles", type=int, default=1_000, help="how often (default: %(default)s)")
    count: int = parser.parse_args().cycles
    logging.disable()
    outcome = asyncio.run(cycles(count, say=True))
    grown = outcome.files_after - outcome.files_before
    sys.stdout.write(f"\n{count} cycles, {outcome.started} processes started, none left, {grown:+d} open files\n")
    return 1 if grown > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
