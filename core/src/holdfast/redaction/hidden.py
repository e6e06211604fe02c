"""Secrets in disguise: a text as it looks, where characters that nobody sees stand inside a secret.

A terminal shows what was written last over itself (backspaces, carriage returns, movements to the left); a page shows
nothing of zero-width characters, soft hyphens or controls. People read the secret in both, so both are looked at.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from holdfast.view.safe_text import ESCAPES

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONTROLS = re.compile(r"[\0-\x08\x0b-\x1f\x7f]")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Me", "Mn"})
"""Categories of characters without a width of their own: controls, formats, lone surrogates, combining marks."""
_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that are drawn as nothing."""

_RUNS = re.compile(
    rf"(?P<back>\x08+)|(?P<start>\r+)|(?:\x1b\[|\x9b)(?P<count>[0-9]{{0,6}})(?P<move>[DG])|{ESCAPES.pattern}"
    r"|(?P<text>[^\x08\r\x1b\x9b]+|.)"
)
"""What a line is made of for a terminal: backspaces, returns, moves of the cursor, colours, and text."""


def disguises_removed(text: str) -> Iterator[str]:
    """Yield a text as a terminal shows it, and without all that is invisible; nothing where neither differs."""
    text = text.replace("\r\n", "\n")
    if text.isascii() and not _CONTROLS.search(text):
        return
    if "\x08" in text or "\r" in text or "\x1b" in text or "\x9b" in text:
        yield without_invisible("\n".join(map(_overwritten, text.split("\n"))))
    plain = without_invisible(ESCAPES.sub("", text))
    if plain != text:
        yield plain


def without_invisible(text: str) -> str:
    """Return a text without the characters that nobody sees; tabs and line ends stay."""
    unseen = {ord(character): None for character in set(text) if _is_unseen(character)}
    return text.translate(unseen) if unseen else text


def _is_unseen(character: str) -> bool:
    return character in _BLANKS or (character not in "\t\n" and unicodedata.category(character) in _UNSEEN)


def _overwritten(line: str) -> str:
    """Return a line as it stands on a terminal in the end: what is written after a move to the left replaces."""
    if not ("\x08" in line or "\r" in line or "\x1b" in line or "\x9b" in line):
        return line
    cells: list[str] = []
    at = 0
    for found in _RUNS.finditer(line):
        if run := found["text"]:
            cells[at : at + len(run)] = run
            at += len(run)
        elif found["back"]:
            at -= len(found["back"])
        elif found["start"]:
            at = 0
        elif found["move"]:
            count = max(1, int(found["count"] or 1))
            at = count - 1 if found["move"] == "G" else at - count
        at = max(0, min(at, len(cells)))
    return "".join(cells)
