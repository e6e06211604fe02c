"""Signing in a browser: a link that works once sets a cookie (H6).

The cookie names the principal and the credential it was made with, and says until when; it is signed, so that nothing
has to be kept for it. Whoever has the key's file can sign, and whoever deletes it signs everybody out. A cookie holds
as long as its credential does (F3).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast.secret_files import is_guessable, read_or_make
from holdfast.server.remote.authentication import Credential

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.server.remote.requests import RemoteRequest

COOKIE = "holdfast"

COOKIE_SECONDS = 30 * 24 * 3600
LINK_SECONDS = 3600
LINKS, LINKS_EACH = 1_000, 20
"""So many links may wait to be used, of all and of one principal; the oldest are forgotten."""


class _Ticket(msgspec.Struct, array_like=True, frozen=True):
    principal: str
    until: int
    credential: str = ""


class _Link(NamedTuple):
    credential: Credential
    until: float


class SignIn:
    """Links that were made and not used, and the key that signs cookies."""

    def __init__(self, key_file: Path | None = None) -> None:
        """Use the key in a file, which is made if there is none; without a file, a key that ends with the process."""
        self._key = _new_key() if key_file is None else read_or_make(key_file, _new_key)
        self._links: dict[str, _Link] = {}

    def new_link(self, credential: Credential) -> str:
        """Return the secret of a new link, which signs in one browser as long as a credential holds."""
        secret = secrets.token_urlsafe(32)
        own = [hashed for hashed, link in self._links.items() if link.credential.principal == credential.principal]
        if len(own) >= LINKS_EACH:
            del self._links[own[0]]
        self._links[hashlib.sha256(secret.encode()).hexdigest()] = _Link(credential, time.time() + LINK_SECONDS)
        while len(self._links) > LINKS:
            del self._links[next(iter(self._links))]
        return secret

    def use_link(self, secret: str) -> Credential | None:
        """Return whom a link signs in, once; None for one that was used, is too old or never was."""
        if is_guessable(secret):
            return None
        link = self._links.pop(hashlib.sha256(secret.encode(errors="replace")).hexdigest(), None)
        return link.credential if link is not None and time.time() < link.until else None

    def cookie_for(self, credential: Credential, *, secure: bool, name: str = COOKIE) -> str:
        """Return the value of a `Set-Cookie` header that signs in by a credential."""
        until = int(time.time()) + COOKIE_SECONDS
        ticket = msgspec.json.encode(_Ticket(credential.principal, until, credential.id))
        value = base64.urlsafe_b64encode(ticket + self._signature(ticket)).decode()
        return (
            f"{name}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"
        )

    def credential_of(self, cookie: str) -> Credential | None:
        """Return by what a cookie signs in; None for one that is not ours, or no longer valid."""
        try:
            signed = base64.urlsafe_b64decode(cookie.encode())
            ticket = msgspec.json.decode(signed[:-32], type=_Ticket)
        except (ValueError, msgspec.DecodeError):
            return None
        valid = hmac.compare_digest(signed[-32:], self._signature(signed[:-32]))
        return Credential(ticket.principal, ticket.credential) if valid and time.time() < ticket.until else None

    def _signature(self, ticket: bytes) -> bytes:
        return hmac.digest(self._key, ticket, "sha256")


def cookie_name(request: RemoteRequest) -> str:
    """Return what our cookie is called: by the port, since a browser keeps one jar for all servers of a machine."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}-{port}" if port.isdecimal() and port.isascii() else COOKIE


def how_to_get_a_link(request: RemoteRequest) -> str:
    """Return what to type for another link to the server that a request was made to."""
    return f"the person who runs the server gets a new one with `holdfast link {address_of(request)}`"


def address_of(request: RemoteRequest) -> str:
    """Return the address of the server that a request was made to."""
    return f"{'https' if request.secure else 'http'}://{request.headers.get('host', '')}"


def _new_key() -> bytes:
    return secrets.token_bytes(32)
