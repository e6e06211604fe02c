"""The words of a text as the database indexes them, and the question for words as the database takes it.

Words are found here, not by the database: its own parser takes a path or a name with a dot for one word. With the words
of a text goes whose it is, so that a search in the sessions of one principal never passes over those of others.
"""

from __future__ import annotations

import zlib
from base64 import b32encode
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from holdfast.store.words import without_accents, words_in

if TYPE_CHECKING:
    from holdfast.store.words import Query

LONGEST_WORD = 500
"""A word may have so many bytes; of a longer one a digest is stored."""

MANY_BYTES = 900_000
"""So many bytes of different words may a text have. For a longer one only short digests of its words are stored."""

MOST_ASKED = 200
"""Of more words than these the rest is not looked for in the index."""

_LONG = "#"
"""The word of a text whose words are stored as digests only."""


def indexed_words(text: str, principal: str) -> str:
    """Return what to store for a text, in the notation of a `tsvector`."""
    if text.isascii() and len(text) <= LONGEST_WORD:  # most are, and no word of it is too long
        words = set(words_in(text.lower()))
    else:
        words = {_fitting(without_accents(word)) for word in words_in(text)}
        if sum(len(word.encode()) for word in words) > MANY_BYTES:
            words = {_LONG, *map(_digest, words)}
    return " ".join(f"'{word}'" for word in (_owner(principal), *sorted(words)))


def asked_words(query: Query) -> str:
    """Return the question for texts, in the notation of a `tsquery`.

    It asks for all of the words. Whether they are in a row, and in a long text whether they are there, is to be looked
    up in the text.
    """
    whole = {word for term in query.terms for word in term.words[: -1 if term.is_prefix else None]}
    begun = {term.words[-1] for term in query.terms if term.is_prefix}
    asked = [f"('{_fitting(word)}' | '{_digest(word)}')" for word in sorted(whole)]
    asked += [f"('{_beginning(word)}':* | '{_LONG}')" for word in sorted(begun)]
    return " & ".join(asked[:MOST_ASKED])


def asked_owner(principal: str) -> str:
    """Return the question for texts of a principal, in the notation of a `tsquery`."""
    return f"'{_owner(principal)}'"


@lru_cache(maxsize=1024)
def _owner(principal: str) -> str:
    """Return the word that says whose a text is. No text has it: it is no letter or digit it begins with."""
    return f"@{blake2b(principal.encode(errors='replace'), digest_size=8).hexdigest()}"


def _fitting(word: str) -> str:
    if len(encoded := word.encode()) <= LONGEST_WORD:
        return word
    return f"##{blake2b(encoded, digest_size=16).hexdigest()}"


def _beginning(word: str) -> str:
    """Return as much of the beginning of a word as the index has; of a longer word it has a digest."""
    return word.encode()[:LONGEST_WORD].decode(errors="ignore")


def _digest(word: str) -> str:
    """Return three characters for a word: as many different ones as there are always fit."""
    return "#" + b32encode(zlib.crc32(word.encode()).to_bytes(4)).decode()[:3]
