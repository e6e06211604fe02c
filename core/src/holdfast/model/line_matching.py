"""Which lines two texts have in common, found in a time that is bounded: for patches of large files.

`difflib` alone takes seconds for a file of some thousand lines with a change in every second one, and the event loop
waits meanwhile. So a long text is cut first: at lines that both texts have, and have once (the idea of the patience
diff). What lies between is compared by `difflib` as long as there is time, and then counts as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from difflib import Match, SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PAIRS = 1_000_000
"""`difflib` may compare so many pairs of lines in all: a tenth of a second at most."""


class LineMatcher(SequenceMatcher[str]):
    """Compares two texts, given as lines."""

    def __init__(self, old: list[str], new: list[str], *, cut: bool = False) -> None:
        """Take two texts. Of two that were `cut` out of longer ones the ends belong together where they are the same.

        `difflib` may take a line at an end for the same as another that is far from it, and the change would then reach
        up to where the text was cut.
        """
        super().__init__(None, old, new)
        self._old = old
        self._new = new
        self._cut = cut
        self._pairs = PAIRS

    def get_matching_blocks(self) -> list[Match]:
        """Return what both have in common: where in the old text, where in the new one, and how many lines."""
        if not self._cut and len(self._old) * len(self._new) <= PAIRS:
            return super().get_matching_blocks()
        merged: list[Match] = []
        for old, new, size in self._blocks(0, len(self._old), 0, len(self._new)):
            last = merged[-1] if merged else Match(-1, -1, 0)
            if (last.a + last.size, last.b + last.size) == (old, new):
                merged[-1] = Match(last.a, last.b, last.size + size)
            else:
                merged.append(Match(old, new, size))
        return [*merged, Match(len(self._old), len(self._new), 0)]

    def _blocks(self, old: int, old_end: int, new: int, new_end: int) -> Iterator[tuple[int, int, int]]:
        """Yield what a part of the old text and a part of the new one have in common, in order."""
        first, first_new = old, new
        while old < old_end and new < new_end and self._old[old] == self._new[new]:
            old, new = old + 1, new + 1
        yield first, first_new, old - first
        last = old_end
        while old < old_end and new < new_end and self._old[old_end - 1] == self._new[new_end - 1]:
            old_end, new_end = old_end - 1, new_end - 1
        yield from self._between(old, old_end, new, new_end)
        yield old_end, new_end, last - old_end

    def _between(self, old: int, old_end: int, new: int, new_end: int) -> Iterator[tuple[int, int, int]]:
        """Yield what is common to two parts that begin and end differently."""
        anchors = _anchors(self._old[old:old_end], self._new[new:new_end])
        pairs = (old_end - old) * (new_end - new)
        if anchors:
            begin, begin_new = old, new
            for at, at_new in ((old + at, new + at_new) for at, at_new in anchors):
                yield from self._blocks(begin, at, begin_new, at_new)
                yield at, at_new, 1
                begin, begin_new = at + 1, at_new + 1
            yield from self._blocks(begin, old_end, begin_new, new_end)
        elif pairs <= self._pairs:
            self._pairs -= pairs
            for match in SequenceMatcher(None, self._old[old:old_end], self._new[new:new_end]).get_matching_blocks():
                yield old + match.a, new + match.b, match.size


def _anchors(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Return where lines are that both texts have once: as many as are in the same order in both."""
    counts, new_counts = Counter(old), Counter(new)
    places = {line: at for at, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(at, places[line]) for at, line in enumerate(old) if counts[line] == 1 and line in places]
    # The longest run of pairs that grows in both: `ends[n]` is the pair with which the best run of n + 1 ends.
    ends: list[int] = []
    at_ends: list[int] = []
    before: list[int] = []
    for n, (_, at_new) in enumerate(pairs):
        length = bisect_left(at_ends, at_new)
        before.append(ends[length - 1] if length else -1)
        ends[length : length + 1] = [n]
        at_ends[length : length + 1] = [at_new]
    run: list[tuple[int, int]] = []
    n = ends[-1] if ends else -1
    while n >= 0:
        run.append(pairs[n])
        n = before[n]
    return run[::-1]
