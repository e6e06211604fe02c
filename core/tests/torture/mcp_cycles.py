"""Open and close toolboxes of servers that do their worst, again and again: no process and no descriptor may be left.

python -m core.tests.torture.mcp_cycles --cycles 1000
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from core.tests.support.mcp import all_dead, hostile, open_files, toolbox
from core.tests.torture.progress import Progress
from holdfast.errors import McpError

if TYPE_CHECKING:
    from collections.abc import Callable

MANNERS: tuple[tuple[str, ...], ...] = ((), ("garbage",), ("deaf",), ("family",), ("exit",), ("silent",), ("stderr",))


class Outcome(NamedTuple):
    """What was left, and how much there was."""

    started: int
    files_before: int
    files_after: int


async def cycles(count: int, tell: Callable[[int], None] = lambda _: None) -> Outcome:
    """Open and close so many toolboxes, each in a way of its own; fails if a process is left."""
    with tempfile.TemporaryDirectory() as directory:
        marks = Path(directory, "marks")
        await _cycle(0, marks)  # what is loaded once stays open
        before, started = open_files(), 0
        for n in range(count):
            await _cycle(n, marks)
            started += _swept(marks)
            tell(n + 1)
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
    progress = Progress(count, "cycles")

    def tell(done: int) -> None:
        progress.tell(done, f"{open_files()} files open")

    try:
        outcome = asyncio.run(cycles(count, tell))
    except AssertionError as e:
        progress.close(f"mcp_cycles: FAILED, {e} ({progress.seconds:.0f} s, no seed: the order is always the same)")
        return 1
    grown = outcome.files_after - outcome.files_before
    progress.close(
        f"{count:,} cycles, {outcome.started:,} processes started, none left, {grown:+d} open files "
        f"({progress.seconds:.0f} s, no seed: the order is always the same)"
    )
    return 1 if grown > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
