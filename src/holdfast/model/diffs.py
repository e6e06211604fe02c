"""A change of a file as both protocol versions show it: its old and new text, and a patch."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.model.events import Update

MAX_PATCH_BYTES = 512 << 10
"""Where more than this differs there is no patch: it would be sent and stored beside the texts."""

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
    shorter = min(len(old), len(new))
    begin = _same(shorter, lambda size: old[:size] == new[:size])
    end = _same(shorter - begin, lambda size: size == 0 or old[-size:] == new[-size:])
    return len(old) + len(new) - 2 * (begin + end)


def _same(most: int, are_same: Callable[[int], bool]) -> int:
    """Return the largest size up to `most` that two texts are the same in."""
    if are_same(most):
        return most
    return bisect_left(range(most), True, key=lambda size: not are_same(size + 1))  # noqa: FBT003  (false, then true)


def git_patch(path: str, old: str | None, new: str) -> str:
    """Return a change as git writes it, but with absolute paths and without `a/` and `b/` (C7)."""
    name = quoted_path(path)
    lines = [f"diff --git {name} {name}\n"]
    if old is None:
        lines.append("new file mode 100644\n")
    hunks = list(_hunks(_lines(old or ""), _lines(new)))
    if hunks:
        end = "\t" if " " in name and not name.startswith('"') else ""  # where git ends a name with spaces
        lines += [f"--- {'/dev/null' if old is None else name + end}\n", f"+++ {name}{end}\n"]
    lines += (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in hunks)
    return "".join(lines)


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield the lines of a unified diff, without its head."""
    from holdfast.model.line_matching import LineMatcher  # noqa: PLC0415  (few agents edit; `difflib` is slow to import)

    for group in LineMatcher(old, new).get_grouped_opcodes(3):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for tag, begin, end, begin_new, end_new in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[begin:end])
            else:
                yield from (f"-{line}" for line in old[begin:end])
                yield from (f"+{line}" for line in new[begin_new:end_new])


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
    encoded = path.encode("utf-8", "surrogateescape")
    if all(32 <= byte < 127 and byte not in _ESCAPES for byte in encoded):
        return path
    return '"' + "".join(map(_escaped, encoded)) + '"'


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
