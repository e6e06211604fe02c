"""A patch as HTML: one column, and two where there is room for them.

Lines that were taken out and what came in their place stand in one group, so that a style sheet alone can put them
beside each other. Of two lines that belong together, what differs is marked. Line numbers are attributes: who copies
code copies no numbers.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from holdfast_app.html.escaping import Html, escaped, escaped_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@(.*)")
_HEADERS = ("--- ", "+++ ", "diff --git ", "index ", "new file mode ", "deleted file mode ", "similarity index ")


class _Line(NamedTuple):
    sign: str
    text: str
    old: int
    new: int


class _Count:
    """How many lines were taken out and put in, and where in both files we are."""

    def __init__(self) -> None:
        self.old, self.new, self.removed, self.added = 0, 0, 0, 0

    def line(self, sign: str, text: str) -> _Line:
        line = _Line(sign, text, self.old, self.new)
        self.old += sign != "+"
        self.new += sign != "-"
        self.removed += sign == "-"
        self.added += sign == "+"
        return line


def draw_diff(patch: str, path: str = "") -> Html:
    """Return a unified patch; `path` heads it, with how many lines come and go."""
    count = _Count()
    body = "".join(_groups(patch, count, is_named=bool(path)))
    name = escaped_line(path) or "Changes"
    sums = f'<span class="added">+{count.added}</span> <span class="removed">&minus;{count.removed}</span>'
    return Html(
        f'<figure class="diff">\n<figcaption><span class="path">{name}</span> {sums}</figcaption>\n'
        f'<div class="lines" tabindex="0" role="group" aria-label="Changes in {name}">{body}</div>\n</figure>\n'
    )


def _groups(patch: str, count: _Count, *, is_named: bool) -> Iterator[str]:
    """Yield groups of lines: those that stay, and those that change together. Only one that `is_named` has one file."""
    removed: list[_Line] = []
    added: list[_Line] = []
    in_hunk = False
    for text in patch.splitlines():
        hunk = _HUNK.match(text)
        sign = text[:1] if in_hunk or not text.startswith(_HEADERS) else "#"
        if hunk is None and sign == "-":
            if added:
                yield _change(removed, added)
                removed, added = [], []
            removed.append(count.line("-", text[1:]))
            continue
        if hunk is None and sign == "+":
            added.append(count.line("+", text[1:]))
            continue
        if removed or added:
            yield _change(removed, added)
            removed, added = [], []
        if hunk is not None:
            count.old, count.new, in_hunk = int(hunk[1]), int(hunk[2]), True
            yield f'<div class="hunk">{escaped(hunk[0])}</div>'
        elif text.startswith("diff --git "):
            in_hunk = False
            if not is_named:
                yield f'<div class="hunk">{escaped(text)}</div>'
        elif sign == " " or (in_hunk and not text):
            yield _same(count.line(" ", text[1:]))
        elif sign != "#":
            yield f'<div class="hunk">{escaped(text)}</div>'
    if removed or added:
        yield _change(removed, added)


def _same(line: _Line) -> str:
    """Return a line that stays. It is there twice, for two columns; with one column the second is not shown."""
    text = escaped(line.text) or " "
    return (
        f'<div class="same"><span data-n="{line.old}">{text}</span>'
        f'<span class="again" aria-hidden="true" data-n="{line.new}">{text}</span></div>'
    )


def _change(removed: list[_Line], added: list[_Line]) -> str:
    pairs = len(removed) == len(added)
    old, new = _marked(removed, added) if pairs else (_plain(removed), _plain(added))
    lines = [f'<del data-n="{line.old}">{text}</del>' for line, text in zip(removed, old, strict=True)]
    lines += [f'<ins data-n="{line.new}">{text}</ins>' for line, text in zip(added, new, strict=True)]
    return f'<div class="change">{"".join(lines)}</div>'


def _plain(lines: list[_Line]) -> list[str]:
    return [escaped(line.text) or " " for line in lines]


def _marked(removed: list[_Line], added: list[_Line]) -> tuple[list[str], list[str]]:
    """Return pairs of lines, in each of which the part that differs is marked."""
    pairs = [_marked_pair(old.text, new.text) for old, new in zip(removed, added, strict=True)]
    return [old for old, _ in pairs], [new for _, new in pairs]


def _marked_pair(old: str, new: str) -> tuple[str, str]:
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    if start + end < min(len(old), len(new)) // 3:  # they have little in common: the mark would say nothing
        return escaped(old) or " ", escaped(new) or " "
    return _with_mark(old, start, end), _with_mark(new, start, end)


def _common(one: str, other: str) -> int:
    """Return how many characters at their beginning two texts share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _with_mark(text: str, start: int, end: int) -> str:
    middle = text[start : len(text) - end]
    marked = f"<b>{escaped(middle)}</b>" if middle else ""
    return f"{escaped(text[:start])}{marked}{escaped(text[len(text) - end :])}" or " "
