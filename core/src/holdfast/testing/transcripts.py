"""A conversation as a text to compare: who said what, without ids, times and paths, which differ each time.

::

    > How warm is it?
    * Read thermometer (read, completed)
        21
    ? Write report.txt? → allow_once
    It is 21 °C.
    = end_turn
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.view.entries import view_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model import Entry
    from holdfast.view.entries import Part

_ID = re.compile(r"\b(call|elicit|msg|plan|ref|sess|term|terminal|compaction)_[0-9a-f]{8,}\b")

_GIT_HEADERS = ("diff --git ", "index ", "new file mode ", "deleted file mode ")

_SIGNS = {"user": "> ", "thought": "~ ", "note": "! ", "other": "! ", "session": "< "}


def draw_entry(entry: Entry) -> Iterator[str]:
    """Yield the lines of a message, tool call, plan or terminal."""
    view = view_entry(entry)
    match view.role:
        case "tool" | "terminal":
            yield f"{'*' if view.role == 'tool' else '$'} {view.title}{f' ({view.status})' if view.status else ''}"
            for part in view.parts:
                yield from (f"    {line}" for line in _part_lines(part))
        case "plan":
            for part in view.parts:
                box = {"completed": "[x]", "in_progress": "[~]"}.get(part.label, "[ ]")
                yield from (f"# {box} {line}" if part.kind == "step" else f"# {line}" for line in _part_lines(part))
        case role:
            sign = _SIGNS.get(role, "")
            if view.title:
                yield f"{sign}{view.title}"
            for part in view.parts:
                yield from (f"{sign}{line}" for line in _part_lines(part))


def draw_ask(title: str, answer: str) -> str:
    """Return the line of a question and its answer."""
    return f"? {' '.join(title.split())} → {answer}"


def without_chance(text: str, cwd: str) -> str:
    """Return a text without what differs from run to run: ids, and the session's directory."""
    return _ID.sub(r"\1_…", text.replace(cwd, "."))


def _part_lines(part: Part) -> list[str]:
    match part.kind:
        case "image":
            return [f"[image {part.text}]"]
        case "diff":  # what says nothing more depends on the version
            return [line for line in part.text.rstrip("\n").split("\n") if not line.startswith(_GIT_HEADERS)]
        case "link" if part.label and part.label != part.text:
            return [f"[{part.text}]({part.label})"]
        case _:
            return part.text.rstrip("\n").split("\n")
