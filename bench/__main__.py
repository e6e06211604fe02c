"""Run benchmarks and print one table. Contenders take turns, round by round; a figure is the median of its rounds."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from bench import sources, table
from bench.machine import machine
from bench.model import ALL
from bench.processes import Contender, find
from bench.rows import BENCHMARKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.model import Benchmark, Sample, Who


def main(arguments: Sequence[str] | None = None) -> int:
    """Understand the command line, measure, print."""
    names = [benchmark.name for benchmark in BENCHMARKS]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(names)} (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each contender is measured (default: 5)")
    parser.add_argument("--markdown", action="store_true", help="print what goes into docs/benchmarks.md")
    sources.add_options(parser)
    chosen = parser.parse_args(arguments)
    sources.choose(chosen)
    if unknown := set(chosen.names) - set(names):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(names)}")

    present: dict[Who, Contender] = {}
    absent: dict[Who, str] = {}
    for who in ALL:
        if isinstance(it := find(who), Contender):
            present[who] = it
        else:
            absent[who] = it
    lines = [
        line
        for benchmark in BENCHMARKS
        if not chosen.names or benchmark.name in chosen.names
        for line in table.lines(benchmark, measure(benchmark, present, chosen.rounds))
    ]
    print(f"{machine()}; medians of {chosen.rounds} rounds.\n")
    print(table.markdown(lines) if chosen.markdown else table.plain(lines))
    for who, reason in absent.items():
        print(f"\nThe column {table.NAMES[who]} is empty: {reason}.")
    return 0


def measure(benchmark: Benchmark, contenders: dict[Who, Contender], rounds: int) -> dict[Who, list[Sample]]:
    """Let the contenders take turns."""
    samples: dict[Who, list[Sample]] = {who: [] for who in benchmark.who if who in contenders}
    for turn in range(rounds):
        for who, taken in samples.items():
            _progress(f"{benchmark.name}: round {turn + 1} of {rounds}, {table.NAMES[who]}")
            taken.append(benchmark.sample(contenders[who]))
    _progress("")
    return samples


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
