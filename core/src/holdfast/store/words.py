"""What counts as a word in a search, what a search asks for, and where that stands in a text. Every store goes by this.

A search asks for terms, and all of them must be there: a word; the beginning of one, written ``recov*``; words in a
row, written ``"crash recovery"``. What is written without a space, as ``file.py`` or ``snake_case``, is words in a row
too. No other character means anything.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORD = re.compile("(?:[^\\W_]|[\u0300-\u036f])+")
"""A word: letters and digits, with their accents. It is also what SQLite's `unicode61` takes for one."""

_PIECE = re.compile(r'"(?P<phrase>[^"]*)"?|(?P<plain>[^\s"]+)')


class Term(NamedTuple):
    """Words in a row, most often one."""

    words: tuple[str, ...]
    """Without accents and capitals."""
    is_prefix: bool
    """Whether the last of them may be the beginning of a longer word."""
    written: tuple[str, ...]
    """The words as they were asked for: an index may have its own idea of accents and capitals."""


class Query(NamedTuple):
    """What a search asks for."""

    terms: tuple[Term, ...]

    def is_in(self, text: str) -> bool:
        """Return whether a text has all that is asked for."""
        words = [without_accents(found.group()) for found in _WORD.finditer(text)]
        return all(next(_places(words, term), None) is not None for term in self.terms)

    def marks(self, text: str) -> tuple[tuple[int, int], ...]:
        """Find what is asked for in a text, however it is written there; return pairs of offsets, in order."""
        found = list(_WORD.finditer(text))
        words = [without_accents(word.group()) for word in found]
        spans = {
            (found[at].start(), found[at + len(term.words) - 1].end())
            for term in self.terms
            for at in _places(words, term)
        }
        marks: list[tuple[int, int]] = []
        for start, end in sorted(spans):
            if marks and start < marks[-1][1]:
                marks[-1] = marks[-1][0], max(end, marks[-1][1])
            else:
                marks.append((start, end))
        return tuple(marks)


def parse_query(text: str) -> Query:
    """Return what a search asks for; no terms where the text has no word. No text makes this raise."""
    terms: dict[tuple[tuple[str, ...], bool], Term] = {}
    for piece in _PIECE.finditer(text):
        asked: str = piece["phrase"] or piece["plain"] or ""
        if written := tuple(_WORD.findall(asked)):
            words, is_prefix = tuple(map(without_accents, written)), asked.endswith("*")
            terms[words, is_prefix] = Term(words, is_prefix, written)
    return Query(tuple(terms.values()))


def words_in(text: str) -> dict[str, None]:
    """Return the words of a text as they are written, each once, in order."""
    return dict.fromkeys(_WORD.findall(text))


def without_accents(word: str) -> str:
    """Write a word without accents and capitals."""
    if not word.isascii():
        word = "".join(char for char in unicodedata.normalize("NFD", word) if not unicodedata.combining(char))
    return word.lower()


def _places(words: list[str], term: Term) -> Iterator[int]:
    """Find where a term begins among the words of a text."""
    *before, last = term.words
    count = len(before)
    for at in range(len(words) - count):
        end = words[at + count]
        if (end == last or (term.is_prefix and end.startswith(last))) and words[at : at + count] == before:
            yield at
