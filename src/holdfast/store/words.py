"""What counts as a word in a search, and where it stands in a text. Every store goes by this."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile("(?:[^\\W_]|[\u0300-\u036f])+")
"""A word: letters and digits, with their accents. It is also what SQLite's `unicode61` takes for one."""


def words_in(text: str) -> dict[str, None]:
    """Return the words of a text as they are written, each once, in order."""
    return dict.fromkeys(_WORD.findall(text))


def without_accents(word: str) -> str:
    """Write a word without accents and capitals."""
    if not word.isascii():
        word = "".join(char for char in unicodedata.normalize("NFD", word) if not unicodedata.combining(char))
    return word.lower()


def marks(text: str, wanted: set[str]) -> tuple[tuple[int, int], ...]:
    """Find words in a text, however they are written there; `wanted` are without accents and capitals."""
    return tuple(found.span() for found in _WORD.finditer(text) if without_accents(found.group()) in wanted)
