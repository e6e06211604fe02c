"""Changes of files as agents keep them: texts, hunks and patches, as the contents of tool calls. Pure functions."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, cast

from holdfast.model.diffs import diff_content
from holdfast_app.importers.found_session import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast_app.importers.found_session import Update

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_SECTION = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")


def change(path: object, old: object, new: object, cwd: str = "") -> Iterator[Update]:
    """Yield the content that shows a change, if it is one: `old` is None for a new file."""
    if isinstance(path, str) and isinstance(new, str) and (old is None or isinstance(old, str)) and old != new:
        absolute = posixpath.normpath(posixpath.join(cwd, path))
        if absolute.startswith("/"):
            yield diff_content(absolute, old, new)


def changes_in_hunks(path: object, hunks: object) -> Iterator[Update]:
    """Yield the changes in hunks, each an object that has its lines with what a unified diff puts before them."""
    for hunk in objects(hunks):
        lines = hunk.get("lines")
        if isinstance(lines, list):
            yield from change(path, *_sides([str(line) for line in cast("list[object]", lines)]))


def changes_in_diff(path: object, diff: object, cwd: str = "") -> Iterator[Update]:
    """Yield the changes in a unified diff of one file; what stands before its first hunk says nothing."""
    hunk: list[str] = []
    for line in diff.splitlines() if isinstance(diff, str) else ():
        if _HUNK.match(line):
            yield from change(path, *_sides(hunk), cwd)
            hunk = [line]
        elif hunk:
            hunk.append(line)
    yield from change(path, *_sides(hunk), cwd)


def changes_in_patch(text: str, cwd: str) -> Iterator[Update]:
    """Yield the changes in a patch as Codex's models write it, between `*** Begin Patch` and `*** End Patch`."""
    _, begins, rest = text.partition("*** Begin Patch\n")
    body = rest.partition("*** End Patch")[0]
    sections = list(_SECTION.finditer(body)) if begins else []
    for at, section in enumerate(sections):
        end = sections[at + 1].start() if at + 1 < len(sections) else len(body)
        lines = body[section.end() : end].splitlines()
        kind, path = section.groups()
        if kind == "Add":
            yield from change(path, None, "".join(f"{line[1:]}\n" for line in lines if line.startswith("+")), cwd)
        elif kind == "Update":
            yield from _updated(path, lines, cwd)


def _updated(path: str, lines: Sequence[str], cwd: str) -> Iterator[Update]:
    hunk: list[str] = []
    for line in lines:
        if line.startswith("*** Move to: "):
            path = line.removeprefix("*** Move to: ")
        elif line.startswith("@@"):
            yield from change(path, *_sides(hunk), cwd)
            hunk = []
        else:
            hunk.append(line)
    yield from change(path, *_sides(hunk), cwd)


def _sides(hunk: Sequence[str]) -> tuple[str, str]:
    """Return the text before and after a hunk."""
    sides = {"-": "", "+": ""}
    at = ""
    for line in hunk:
        if line[:1] in (" ", "-", "+"):
            at = "-+" if line[0] == " " else line[0]
            sides |= {side: f"{sides[side]}{line[1:]}\n" for side in at}
        elif line.startswith("\\"):  # "\\ No newline at end of file", about the line before
            sides |= {side: sides[side].removesuffix("\n") for side in at}
    return sides["-"], sides["+"]


def changes_of_input(about: Any) -> Iterator[Update]:
    """Yield the changes that a tool was asked to make, where nothing is known of those that it made."""
    if not isinstance(about, dict):
        return
    given = cast("Update", about)
    path = next((given[name] for name in ("file_path", "filePath", "absolute_path", "path") if given.get(name)), None)
    for edit in (given, *objects(given.get("edits"))):
        for old, new in (("old_string", "new_string"), ("oldString", "newString")):
            if new in edit:
                yield from change(path, edit.get(old) or None, edit[new])
    if "content" in given:
        yield from change(path, None, given["content"])
