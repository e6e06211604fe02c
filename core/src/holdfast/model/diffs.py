"""A change of a file as both protocol versions show it: its old and new text, and a patch."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from holdfast.model.events import text_without_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.model.events import Update

MAX_PATCH_BYTES = 512 << 10
"""Where more than this differs there is no patch: it would be sent and stored beside the texts."""

LONG_TEXT = 256 << 10
"""Texts of more characters are cut down to what differs before they are compared line by line."""

CONTEXT = 3
"""So many lines around a change are shown with it."""

_BLOCK = 64 << 10

_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def diff_content(path: str, old: str | None, new: str) -> Update:
    """Return the content of a tool call that shows a change."""
    return {"type": "diff", **version_2_members(path, old, new), "path": path, "oldText": old, "newText": new}


def version_2_members(path: str, old: str | None, new: str) -> Update:
    """Return what version 2 says of a change in the place of the old and the new text."""
    members: Update = {"changes": [{"operation": "add" if old is None else "modify", "path": path, "fileType": "text"}]}
    if _differing(old or "", new) <= MAX_PATCH_BYTES:
        members["patch"] = {"format": "git_patch", "text": git_patch(path, old, new)}
    return members


def _differing(old: str, new: str) -> int:
    """Return how many characters of both texts there are between where they begin and where they end to be the same."""
    return len(old) + len(new) - 2 * sum(_same_ends(old, new))


def _same_ends(old: str, new: str) -> tuple[int, int]:
    """Return how many characters two texts have in common at their beginning, and then at their end."""
    shorter = min(len(old), len(new))
    begin = _same(shorter, lambda at, to: old[at:to] == new[at:to])
    ends = len(old), len(new)
    end = _same(shorter - begin, lambda at, to: old[ends[0] - to : ends[0] - at] == new[ends[1] - to : ends[1] - at])
    return begin, end


def _same(most: int, are_same: Callable[[int, int], bool]) -> int:
    """Return the largest size up to `most` that two texts are the same in; `are_same` tells it of a part of them."""
    at = 0
    while at < most:
        to = min(at + _BLOCK, most)
        if not are_same(at, to):
            begin = at
            return at + bisect_left(range(to - at), True, key=lambda size: not are_same(begin, begin + size + 1))  # noqa: FBT003
        at = to
    return most


def git_patch(path: str, old: str | None, new: str) -> str:
    """Return a change as git writes it, but with absolute paths and without `a/` and `b/` (C7)."""
    name = quoted_path(path)
    lines = [f"diff --git {name} {name}\n"]
    if old is None:
        lines.append("new file mode 100644\n")
    hunks = list(_hunks(old or "", new))
    if hunks:
        end = "\t" if " " in name and not name.startswith('"') else ""  # where git ends a name with spaces
        lines += [f"--- {'/dev/null' if old is None else name + end}\n", f"+++ {name}{end}\n"]
    lines += (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in hunks)
    return "".join(lines)


def _hunks(old: str, new: str) -> Iterator[str]:
    """Yield the lines of a unified diff, without its head."""
    from holdfast.model.line_matching import LineMatcher  # noqa: PLC0415  (few agents edit; `difflib` is slow to import)

    is_long = len(old) + len(new) > LONG_TEXT
    begin, end = _around_change(old, new) if is_long else (0, 0)
    before = old.count("\n", 0, begin)
    lines, new_lines = (_lines(text[begin : len(text) - end]) for text in (old, new))
    for group in LineMatcher(lines, new_lines, cut=is_long).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        olds, news = _range(before + first[1], before + last[2]), _range(before + first[3], before + last[4])
        yield f"@@ -{olds} +{news} @@\n"
        for tag, at, to, at_new, to_new in group:
            if tag == "equal":
                yield from (f" {line}" for line in lines[at:to])
            else:
                yield from (f"-{line}" for line in lines[at:to])
                yield from (f"+{line}" for line in new_lines[at_new:to_new])


def _around_change(old: str, new: str) -> tuple[int, int]:
    """Return how much of both texts is before what differs and its context, and how much behind: whole lines."""
    begin, end = _same_ends(old, new)
    behind = len(old) - end
    for _ in range(CONTEXT + 1):  # the line in which they differ first may begin the same
        begin = old.rfind("\n", 0, max(begin - 1, 0)) + 1
        behind = (old.find("\n", behind) + 1) or len(old)
    return begin, len(old) - behind


def _range(begin: int, end: int) -> str:
    """Return which lines, as a hunk says it: an empty range names the line before it."""
    length = end - begin
    if length == 1:
        return f"{begin + 1}"
    return f"{begin + 1 if length else begin},{length}"


def _lines(text: str) -> list[str]:
    """Cut a text into lines as git does: at newlines only."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def quoted_path(path: str) -> str:
    """Return a path as git quotes it: in double quotes where it has unusual characters, those as escapes."""
    try:
        encoded = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # another half of a character than those that stand for bytes of file names
        encoded = text_without_lone_surrogates(path).encode()
    if all(32 <= byte < 127 and byte not in _ESCAPES for byte in encoded):
        return path
    return '"' + "".join(map(_escaped, encoded)) + '"'


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
