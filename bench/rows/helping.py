"""`holdfast --help`, against a Python that does nothing but import click."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from typing import TYPE_CHECKING

from bench.model import TIMES, Benchmark, Bound, Figure

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

STARTS = 9


def compare(contender: Contender) -> Sample:
    """Start both by turns, and take the middle ones."""
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(STARTS):
        bare.append(_took(contender.program, "-c", "import click"))
        ours.append(_took(contender.program, "-m", "holdfast", "--help"))
    wall, least = statistics.median(ours), statistics.median(bare)
    return {"wall": wall * 1e3, "share": wall / least}


def _took(*command: str) -> float:
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}  # or our own modules are compiled at every start
    before = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=env)
    return time.perf_counter() - before


HELP = Benchmark(
    name="help",
    title="`holdfast --help`",
    sample=compare,
    figures=(
        Figure("wall", "wall", "ms"),
        Figure('of that of `python -c "import click"`', "share", TIMES, (Bound("at most", 2),)),
    ),
    who=("ours",),
)
