"""The words of a text as the database indexes them, and the question for words as the database takes it.

Words are found here, not by the database: its own parser takes a path or a name with a dot for one word. With the words
of a text goes whose it is, so that a search in the sessions of one principal never passes over those of others.
"""

from __future__ import annotations

import zlib
from base64 import b32encode
from hashlib import blake2b

from holdfast.store.words import without_accents, words_in

LONGEST_WORD = 500
"""A word may have so many bytes; of a longer one a digest is stored."""

MANY_BYTES = 900_000
"""So many bytes of different words may a text have. For a longer one only short digests of its words are stored."""

MOST_ASKED = 200
"""Of more words than these the rest is not looked for in the index."""


def indexed_words(text: str, principal: str) -> str:
    """Return what to store for a text, in the notation of a `tsvector`."""
    words = {_fitting(without_accents(word)) for word in words_in(text)}
    if sum(len(word.encode()) for word in words) > MANY_BYTES:
        words = {_digest(word) for word in words}
    return " ".join(f"'{word}'" for word in (_owner(principal), *sorted(words)))


def asked_words(wanted: set[str], principal: str) -> str:
    """Return the question for texts of a principal that have all of the words, in the notation of a `tsquery`."""
    words = sorted(_fitting(word) for word in wanted)[:MOST_ASKED]
    return " & ".join([f"'{_owner(principal)}'", *(f"('{word}' | '{_digest(word)}')" for word in words)])


def _owner(principal: str) -> str:
    """Return the word that says whose a text is. No text has it: it is no letter or digit it begins with."""
    return f"@{blake2b(principal.encode(errors='replace'), digest_size=8).hexdigest()}"


def _fitting(word: str) -> str:
    if len(encoded := word.encode()) <= LONGEST_WORD:
        return word
    return f"##{blake2b(encoded, digest_size=16).hexdigest()}"


def _digest(word: str) -> str:
    """Return three characters for a word: as many different ones as there are always fit."""
    return "#" + b32encode(zlib.crc32(word.encode()).to_bytes(4)).decode()[:3]
