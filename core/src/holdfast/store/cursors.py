"""The cursor of a list: where the next page begins, signed so that nobody can make one up (B4)."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast.errors import InvalidParams

if TYPE_CHECKING:
    from holdfast.model import ArchiveFilter, Scope

_SIGNATURE_BYTES = 12


class Filters(NamedTuple):
    """Which sessions a list shows."""

    principal: str
    agent: str | None
    cwd: str | None
    archived: str


class Cursor(NamedTuple):
    """A place in a list: after the session with this time and number."""

    updated_at: int
    n: int
    filters: Filters


BEGINNING = 1 << 62


def filters_of(scope: Scope, cwd: str | None, archived: ArchiveFilter) -> Filters:
    """Return what a list is asked for."""
    return Filters(scope.principal, scope.agent, cwd, archived)


def sign(cursor: Cursor, key: bytes) -> str:
    """Encode a cursor."""
    body = msgspec.json.encode(cursor)
    return urlsafe_b64encode(_signature(body, key) + body).decode().rstrip("=")


def verify(text: str | None, key: bytes, filters: Filters) -> Cursor:
    """Decode a cursor, or return the beginning of the list where there is none.

    Raise `InvalidParams` for one that this store did not give out, or that belongs to another list.
    """
    if text is None:
        return Cursor(BEGINNING, BEGINNING, filters)
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        cursor = msgspec.json.decode(data[_SIGNATURE_BYTES:], type=Cursor)
    except ValueError:
        cursor = None
    # Decoding looks over much, so what counts is what we would have written.
    if cursor is None or not hmac.compare_digest(sign(cursor, key).encode(), text.encode()):
        raise InvalidParams("The cursor is not one that this store gave out")
    if cursor.filters != filters:
        raise InvalidParams("The cursor belongs to a list with other filters")
    return cursor


def _signature(body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")[:_SIGNATURE_BYTES]
