"""A conversation as Markdown, for people to read and to keep.

What was said is quoted, so that nothing in it can be taken for a part of the transcript: its headings, its fences that
never end and its HTML stay inside the quote and have no effect outside. What tools gave is fenced, by more backticks
than it has itself. Pure: entries in, text out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.model.passages import passage_of
from holdfast.model.plain import one_line, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.model.history import Entry
    from holdfast.model.passages import Passage, Piece, Role

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
_CODE_OR_HTML = re.compile(r"\\[!-/:-@\[-`{-~]|`+|<")


def markdown(entries: Iterable[Entry]) -> str:
    """Write a conversation: who said what, in order."""
    return "\n\n".join(map(markdown_entry, entries))


def markdown_entry(entry: Entry) -> str:
    """Write one entry: a heading, and what there is to say."""
    return markdown_passage(passage_of(entry))


def markdown_passage(passage: Passage) -> str:
    """Write what an entry says."""
    heading = f"## {HEADINGS[passage.role]}"
    if passage.title:
        heading += f": {inline(passage.title)}"
    if passage.status:
        heading += f" ({inline(passage.status)})"
    return "\n\n".join((heading, *_parts(passage.pieces)))


def _parts(pieces: Iterable[Piece]) -> Iterator[str]:
    steps: list[str] = []
    for piece in pieces:
        if piece.kind == "step":
            steps.append(_step(piece))
            continue
        if steps:
            yield "\n".join(steps)
            steps = []
        yield _part(piece)
    if steps:
        yield "\n".join(steps)


def _part(piece: Piece) -> str:
    match piece.kind:
        case "prose":
            return quoted(piece.text)
        case "code":
            return fenced(piece.text, re.sub(r"[^\w+-]", "", piece.label))
        case "diff":
            return fenced(piece.text, "diff")
        case "link":
            address = inline(piece.label)
            return address if piece.label == piece.text else f"{inline(piece.text)}: {address}"
        case "image":
            return f"*Image: {inline(piece.text)}*"
        case _:
            return f"*{inline(piece.text)}*"


def _step(piece: Piece) -> str:
    box = "☑" if piece.label == "completed" else "☐"  # brackets would be a link, if somebody has said what to
    state = f" ({inline(piece.label.replace('_', ' '))})" if piece.label not in ("", "completed", "pending") else ""
    return f"- {box} {inline(piece.text)}{state}"


def inline(text: str) -> str:
    """Write text that is nothing but text, on one line."""
    return _SPECIAL.sub(r"\\\g<0>", one_line(text)) or "…"


def fenced(text: str, language: str = "") -> str:
    """Write text as it is, in a fence that it cannot end."""
    text = plain(text)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def quoted(text: str) -> str:
    """Write Markdown of somebody else's, without its HTML, as a quote that it cannot leave."""
    return "\n".join(f"> {line}".rstrip() for line in _without_html(plain(text).rstrip()))


def _without_html(text: str) -> Iterator[str]:
    """Take the meaning of HTML away, outside of code. Where it is not sure what is code, it is taken away there too."""
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
    """Escape what begins HTML in a line, and backticks that have no partner in it: those could reach into the next."""
    done: list[str] = []
    at = 0
    while found := _CODE_OR_HTML.search(line, at):
        done.append(line[at : found.start()])
        at = found.end()
        if found[0] == "<":
            done.append("\\<")
        elif found[0][0] == "\\":
            done.append(found[0])
        elif partner := re.compile(f"(?<!`){found[0]}(?!`)").search(line, at):
            at = partner.end()
            done.append(line[found.start() : at])
        else:
            done.append(found[0].replace("`", "\\`"))
    done.append(line[at:])
    return "".join(done)
