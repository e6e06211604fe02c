"""Two texts compared line by line, in time that hardly grows faster than they do.

`difflib` alone looks at every pair of lines in the worst case: two files of 10,000 lines, every other one changed, took
it a minute. Here lines that both texts have just once are matched first (as "patience diff" does), and only what lies
between two of those is left to `difflib`, as long as it is small.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SMALL = 250_000
"""Parts with at most so many pairs of lines are compared by `difflib`; larger ones are shown as replaced."""

CONTEXT = 3
"""So many lines around a change are shown."""

Match: TypeAlias = "tuple[int, int, int]"
"""Where equal lines begin in the old and the new text, and how many they are."""


def unified_patch(old: Sequence[str], new: Sequence[str], old_name: str, new_name: str) -> Iterator[str]:
    """Yield the lines of a unified patch; none where the texts are equal."""
    matcher: SequenceMatcher[str] = SequenceMatcher(None, "", "")
    matcher.opcodes = _opcodes(len(old), len(new), _joined(_matches(old, new)))  # pyright: ignore[reportAttributeAccessIssue]
    is_first = True
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if is_first:
            yield f"--- {old_name}"
            yield f"+++ {new_name}"
            is_first = False
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[a:b])
            else:
                yield from (f"-{line}" for line in old[a:b])
                yield from (f"+{line}" for line in new[c:d])


def _matches(old: Sequence[str], new: Sequence[str]) -> Iterator[Match]:
    """Yield where the texts are equal, in order."""
    open_parts = [(0, len(old), 0, len(new))]
    while open_parts:
        a, b, c, d = open_parts.pop()
        begin = a
        while a < b and c < d and old[a] == new[c]:
            a, c = a + 1, c + 1
        if a > begin:
            yield begin, c - (a - begin), a - begin
        tail = 0
        while a < b - tail and c < d - tail and old[b - tail - 1] == new[d - tail - 1]:
            tail += 1
        if tail:  # to come when all before it has
            open_parts.append((b - tail, b, d - tail, d))
            b, d = b - tail, d - tail
        if a == b or c == d:
            continue
        if anchors := _anchors(old, new, (a, b, c, d)):
            edges = [*anchors, (b, d)]
            inner = [(a, edges[0][0], c, edges[0][1])]
            inner += [(*_between(edges[at], edges[at + 1]),) for at in range(len(anchors))]
            open_parts += reversed(inner)
        elif (b - a) * (d - c) <= SMALL:
            blocks = SequenceMatcher(None, old[a:b], new[c:d], autojunk=False).get_matching_blocks()
            yield from ((a + block.a, c + block.b, block.size) for block in blocks if block.size)


def _between(anchor: tuple[int, int], following: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the part from one anchor, which both texts begin with there, to the next."""
    return anchor[0], following[0], anchor[1], following[1]


def _anchors(old: Sequence[str], new: Sequence[str], part: tuple[int, int, int, int]) -> list[tuple[int, int]]:
    """Return lines that a part has once in each text, as many as are in the same order in both."""
    a, b, c, d = part
    counts, others = Counter(old[a:b]), Counter(new[c:d])
    places = {new[at]: at for at in range(c, d) if others[new[at]] == 1}
    pairs = [(at, places[old[at]]) for at in range(a, b) if counts[old[at]] == 1 and old[at] in places]
    return _longest_rising(pairs)


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest run of pairs whose second numbers rise, too."""
    ends: list[int] = []  # the smallest last number of a run, by its length
    which: list[int] = []
    before: list[int] = []
    for at, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(which[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        which[length : length + 1] = [at]
    found: list[tuple[int, int]] = []
    at = which[-1] if which else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _joined(matches: Iterator[Match]) -> Iterator[Match]:
    """Put matches together that follow each other in both texts."""
    last: Match | None = None
    for match in matches:
        if last is not None and (last[0] + last[2], last[1] + last[2]) == match[:2]:
            last = (last[0], last[1], last[2] + match[2])
            continue
        if last is not None:
            yield last
        last = match
    if last is not None:
        yield last


def _opcodes(old: int, new: int, matches: Iterator[Match]) -> list[tuple[str, int, int, int, int]]:
    found: list[tuple[str, int, int, int, int]] = []
    a = c = 0
    for begin, place, size in (*matches, (old, new, 0)):
        if a < begin or c < place:
            tag = "replace" if a < begin and c < place else "delete" if a < begin else "insert"
            found.append((tag, a, begin, c, place))
        if size:
            found.append(("equal", begin, begin + size, place, place + size))
        a, c = begin + size, place + size
    return found


def _range(start: int, end: int) -> str:
    """Return lines as a patch names them."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
