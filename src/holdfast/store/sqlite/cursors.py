"""The cursor of a list: where the next page begins, signed so that nobody can make one up (B4)."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

import msgspec

from holdfast.errors import InvalidParams

_SIGNATURE_BYTES = 12


class Place(NamedTuple):
    """A place in a list: after the session with this time and number, under these filters."""

    updated_at: int
    n: int
    cwd: str | None
    archived: str


START = (1 << 62, 1 << 62)


def sign(place: Place, key: bytes) -> str:
    """Make a cursor."""
    body = msgspec.json.encode(place)
    return urlsafe_b64encode(_signature(body, key) + body).decode().rstrip("=")


def verify(cursor: str, key: bytes, cwd: str | None, archived: str) -> Place:
    """Read a cursor; refuse one that is not ours or belongs to another list."""
    try:
        data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        place = msgspec.json.decode(data[_SIGNATURE_BYTES:], type=Place)
    except ValueError:
        place = None
    # Decoding looks over much, so what counts is what we would have written.
    if place is None or not hmac.compare_digest(sign(place, key).encode(), cursor.encode()):
        raise InvalidParams("The cursor is not one that this store gave out")
    if (place.cwd, place.archived) != (cwd, archived):
        raise InvalidParams("The cursor belongs to a list with other filters")
    return place


def _signature(body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")[:_SIGNATURE_BYTES]
