"""What a benchmark is: a name, a way to take one sample of a contender, and the figures that are read off samples.

To add one, write a module in `bench/rows/` that makes a `Benchmark`, and list it in `bench/rows/__init__.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bench.processes import Contender

Who: TypeAlias = Literal["ours", "python_sdk", "typescript_sdk"]

ALL: tuple[Who, ...] = ("ours", "python_sdk", "typescript_sdk")

TIMES = "\N{MULTIPLICATION SIGN}"
"""The unit of a ratio."""

Sample: TypeAlias = "Mapping[str, float]"


class Bound(NamedTuple):
    """What the issue that asked for a figure demands of it."""

    how: Literal["times less", "share", "at most", "at least"]
    """``times less``: theirs / ours is at least `value`; ``share``: ours / theirs is at most `value`. The other two
    are about our figure alone."""
    value: float
    than: Who = "ours"


class Figure(NamedTuple):
    """One line of the table."""

    label: str
    key: str
    unit: str
    bounds: tuple[Bound, ...] = ()

    @property
    def as_share(self) -> bool:
        """Whether ratios are read as ours / theirs; otherwise they say how many times less ours is."""
        return any(bound.how == "share" for bound in self.bounds)


class Benchmark(NamedTuple):
    """Some figures that are measured together."""

    name: str
    title: str
    sample: Callable[[Contender], Sample]
    figures: tuple[Figure, ...]
    who: tuple[Who, ...] = ALL
