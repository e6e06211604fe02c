"""A conversation as Markdown, for people to read and to keep.

What was said is quoted, so that nothing in it can be taken for a part of the transcript: its headings, its fences that
never end and its HTML stay inside the quote and have no effect outside. Images become links, so that opening the file
loads nothing. What tools gave is fenced, by more backticks than it has itself. Pure: entries in, text out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.view.entries import view_entry
from holdfast.view.safe_text import safe_line, safe_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.model.history import Entry
    from holdfast.view.entries import EntryView, Part, Role

HEADINGS: dict[Role, str] = {
    "user": "You",
    "agent": "Agent",
    "thought": "Agent, thinking",
    "session": "Another session",
    "tool": "Tool",
    "plan": "Plan",
    "terminal": "Terminal",
    "note": "Note",
    "other": "Other",
}

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&$!^]")
_OPENING = re.compile(r"(`{3,})[^`]*$|(~{3,}).*$")
_CODE_OR_UNSAFE = re.compile(r"\\[!-/:-@\[-`{-~]|`+|<|!(?=\[)|~{3,}")
"""Escaped characters, code, and what begins HTML, an image or a fence that is not at the start of its line."""


def markdown(entries: Iterable[Entry]) -> str:
    """Return a conversation as Markdown: who said what, in order."""
    return "\n\n".join(map(markdown_entry, entries))


def markdown_entry(entry: Entry) -> str:
    """Return one entry as Markdown: a heading and its parts."""
    return markdown_view(view_entry(entry))


def markdown_view(view: EntryView) -> str:
    """Return the view of an entry as Markdown."""
    heading = f"## {HEADINGS[view.role]}"
    if view.title:
        heading += f": {inline(view.title)}"
    if view.status:
        heading += f" ({inline(view.status)})"
    return "\n\n".join((heading, *_parts(view.parts)))


def _parts(parts: Iterable[Part]) -> Iterator[str]:
    steps: list[str] = []
    for part in parts:
        if part.kind == "step":
            steps.append(_step(part))
            continue
        if steps:
            yield "\n".join(steps)
            steps = []
        yield _part(part)
    if steps:
        yield "\n".join(steps)


def _part(part: Part) -> str:
    match part.kind:
        case "prose":
            return quoted(part.text)
        case "code":
            return fenced(part.text, re.sub(r"[^\w+-]", "", part.label))
        case "diff":
            return fenced(part.text, "diff")
        case "link":
            address = inline(part.label)
            return address if part.label == part.text else f"{inline(part.text)}: {address}"
        case "image":
            return f"*Image: {inline(part.text)}*"
        case _:
            return f"*{inline(part.text)}*"


def _step(part: Part) -> str:
    box = "☑" if part.label == "completed" else "☐"  # brackets would be a link, if somebody has said what to
    state = f" ({inline(part.label.replace('_', ' '))})" if part.label not in ("", "completed", "pending") else ""
    return f"- {box} {inline(part.text)}{state}"


def inline(text: str) -> str:
    """Return text on one line, without any meaning as Markdown."""
    return _SPECIAL.sub(r"\\\g<0>", safe_line(text)) or "…"


def fenced(text: str, language: str = "") -> str:
    """Return text as it is, in a fence that it cannot end."""
    text = safe_text(text)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def quoted(text: str) -> str:
    """Return Markdown that somebody else wrote as a quote that it cannot leave, without HTML and images."""
    return "\n".join(f"> {line}".rstrip() for line in _without_effects(safe_text(text).rstrip()))


def _without_effects(text: str) -> Iterator[str]:
    """Yield lines whose HTML and images mean nothing, outside of code. What may or may not be code counts as none."""
    fence = ""
    for line in text.split("\n"):
        if fence:
            yield line
            stripped = line.lstrip(" ")
            if len(line) - len(stripped) < 4 and set(stripped.rstrip()) == {fence[0]}:
                fence = "" if len(stripped.rstrip()) >= len(fence) else fence
        elif opening := _OPENING.match(line):  # a fence that is indented may belong to something around it
            fence = opening[1] or opening[2]
            yield line
        else:
            yield _escaped(line)
    if fence:
        yield fence


def _escaped(line: str) -> str:
    """Escape what begins HTML, an image or a fence, and backticks that could reach into the next line."""
    done: list[str] = []
    at = 0
    while found := _CODE_OR_UNSAFE.search(line, at):
        done.append(line[at : found.start()])
        at = found.end()
        if found[0] in ("<", "!"):
            done.append(f"\\{found[0]}")
        elif found[0][0] == "~":
            done.append(found[0].replace("~", "\\~"))
        elif found[0][0] == "\\":
            done.append(found[0])
        elif partner := re.compile(f"(?<!`){found[0]}(?!`)").search(line, at):
            at = partner.end()
            done.append(line[found.start() : at])
        else:
            done.append(found[0].replace("`", "\\`"))
    done.append(line[at:])
    return "".join(done)
