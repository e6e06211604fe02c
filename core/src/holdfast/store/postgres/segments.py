"""Lines cut into segments, and what of them a search should find, as columns for a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.format import event_in
from holdfast.format.lines import OTHER
from holdfast.format.segments import SEGMENT_BYTES, checksum, runs
from holdfast.store.postgres.rows import HistoryEnd
from holdfast.store.postgres.search_words import indexed_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.format import Line


class NewSegments:
    """Segments to put behind a history."""

    def __init__(self, end: HistoryEnd, lines: Sequence[Line], principal: str) -> None:
        self.end: HistoryEnd = end
        """Where the history ends once they are there."""
        self._parts: list[tuple[int, int, int, bytes]] = []
        self._texts: list[tuple[int, int, int, str]] = []
        if lines:
            self._cut(lines, principal)

    @property
    def columns(self) -> tuple[list[Any], ...]:
        """Their positions, lines, checksums and bodies; numbers of segments, places, sizes and words of texts."""
        parts = tuple(list(column) for column in zip(*self._parts, strict=True)) or ([], [], [], [])
        texts = tuple(list(column) for column in zip(*self._texts, strict=True)) or ([], [], [], [])
        return (*parts, *texts)

    @property
    def only(self) -> tuple[Any, ...] | None:
        """The lines, checksum and body of the only one, and places, sizes and words of its texts; None for several."""
        if len(self._parts) != 1:
            return None
        (_, *part), texts = self._parts[0], self._texts
        return (*part, [text[1] for text in texts], [text[2] for text in texts], [text[3] for text in texts])

    def _cut(self, lines: Sequence[Line], principal: str) -> None:
        position, tail, tail_bytes = self.end
        for number, run in enumerate(runs(lines), start=1):
            body = b"\n".join([line.body for line in run])
            if tail_bytes + len(body) > SEGMENT_BYTES:
                tail, tail_bytes = position, 0
            self._parts.append((position, len(run), checksum(body), body))
            self._texts += [(number, *place, indexed_words(text, principal)) for place, text in texts_in(run)]
            position, tail_bytes = position + len(run), tail_bytes + len(body)
        self.end = HistoryEnd(position, tail, tail_bytes)


def texts_in(run: Sequence[Line]) -> Iterator[tuple[tuple[int, int], str]]:
    """Find the texts in the lines of a segment: the first byte of each and how many there are, and the text."""
    at = 0
    for number, line in enumerate(run):
        if line.text:
            end = _end_of_entry(run, number)
            yield (at, sum(len(part.body) + 1 for part in run[number:end]) - 1), line.text
        at += len(line.body) + 1


def _end_of_entry(run: Sequence[Line], first: int) -> int:
    """Return the line behind an entry: it may go on, on lines that are not plain and have no text of their own."""
    end = first + 1
    if end < len(run) and not run[end].text and run[end].body.startswith(OTHER):
        begun = event_in(run[first].body)
        while end < len(run) and not run[end].text and run[end].body.startswith(OTHER):
            event = event_in(run[end].body)
            if (event.rule.entity, event.key) != (begun.rule.entity, begun.key):
                break
            end += 1
    return end
