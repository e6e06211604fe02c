"""Samples to figures to a table, for a terminal or for Markdown."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, TypeAlias

from bench.model import ALL, TIMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.model import Benchmark, Bound, Figure, Sample, Who

NAMES: Mapping[Who, str] = {"ours": "Holdfast", "python_sdk": "Python SDK", "typescript_sdk": "TypeScript SDK"}

HEADER = ("what", *NAMES.values(), "vs Python SDK", "vs TypeScript SDK", "asked", "met")
NUMBERS = range(1, 6)
"""The columns that are set flush right."""

Line: TypeAlias = tuple[str, ...]


def lines(benchmark: Benchmark, samples: Mapping[Who, Sequence[Sample]]) -> list[Line]:
    """Read the figures of a benchmark off its samples."""
    return [_line(f"{benchmark.title}: {figure.label}", figure, samples) for figure in benchmark.figures]


def _line(what: str, figure: Figure, samples: Mapping[Who, Sequence[Sample]]) -> Line:
    medians: dict[Who, float] = {}
    for who, taken in samples.items():
        if figure.key in taken[0]:  # some figures are ours alone
            medians[who] = statistics.median(sample[figure.key] for sample in taken)
    values = [f"{_digits(medians[who])} {figure.unit}" if who in medians else "" for who in ALL]
    ratios = [_ratio(figure, medians, who) if who in medians else "" for who in ALL[1:]]
    asked = " / ".join(_asked(bound, figure.unit) for bound in figure.bounds)
    met = [_meets(bound, medians) for bound in figure.bounds if bound.than in medians]
    verdict = "NO" if not all(met) else "yes" if len(met) == len(figure.bounds) else "as far as measured"
    return (what, *values, *ratios, asked, verdict if figure.bounds else "")


def _ratio(figure: Figure, medians: Mapping[Who, float], than: Who) -> str:
    if figure.as_share:
        return f"{medians['ours'] / medians[than]:.2f}{TIMES}"
    return f"{medians[than] / medians['ours']:.1f}{TIMES} less"


def _asked(bound: Bound, unit: str) -> str:
    if bound.how == "times less":
        return f"≥ {bound.value:g}{TIMES} less"
    if bound.how == "share":
        return f"≤ {bound.value:g}{TIMES}"
    return f"{'≤' if bound.how == 'at most' else '≥'} {bound.value:g} {unit}"


def _meets(bound: Bound, medians: Mapping[Who, float]) -> bool:
    ours, theirs = medians["ours"], medians[bound.than]
    if bound.how == "times less":
        return theirs / ours >= bound.value
    if bound.how == "share":
        return ours / theirs <= bound.value
    return ours <= bound.value if bound.how == "at most" else ours >= bound.value


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def plain(rows: Sequence[Line]) -> str:
    """Lay the table out for a terminal."""
    every = [HEADER, *rows]
    widths = [max(len(row[column]) for row in every) for column in range(len(HEADER))]
    text: list[str] = []
    for row in every:
        cells = enumerate(zip(row, widths, strict=True))
        text.append("  ".join(cell.rjust(width) if at in NUMBERS else cell.ljust(width) for at, (cell, width) in cells))
    return "\n".join([text[0], "-" * len(text[0]), *text[1:]])


def markdown(rows: Sequence[Line]) -> str:
    """Write the table as Markdown."""
    marks = tuple("---:" if at in NUMBERS else "---" for at in range(len(HEADER)))
    return "\n".join(f"| {' | '.join(row)} |" for row in (HEADER, marks, *rows))
