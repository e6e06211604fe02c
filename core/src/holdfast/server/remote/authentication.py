"""Who asks: an `Authenticator` tells on whose behalf a request is made. Tokens are one way, others can be brought."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import msgspec

from holdfast.errors import UsageError
from holdfast.model import LOCAL
from holdfast.secret_files import is_guessable, only_process, write_private

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from holdfast.server.remote.requests import RemoteRequest

log: logging.Logger = logging.getLogger(__name__)

PREFIX = "hf_"
"""Tokens begin with it, so that people and scanners see what they are."""

ID_DIGITS = 32
"""So much of the hash of a token names it: as unlikely to be that of another as the token is to be guessed."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._+-]{0,99}")


TICK_NS = 100_000_000
"""No clock of a file system is coarser where tokens are changed by programs."""


class Credential(NamedTuple):
    """On whose behalf somebody asks, and by which secret."""

    principal: str
    id: str = ""
    """Names the secret without telling it. Empty where there is none that could be revoked."""


class Authenticator(Protocol):
    """Tells who asks."""

    async def principal(self, request: RemoteRequest) -> str | None:
        """Return on whose behalf a request is made; None where it is not known, and the request gets 401.

        It is called for every request and must be quick. The same person must always get the same name: sessions
        belong to it.
        """
        ...


@runtime_checkable
class RevokingAuthenticator(Authenticator, Protocol):
    """Tells, besides, who has no right to be here any more: open connections of such a principal are ended."""

    def knows(self, principal: str) -> bool:
        """Return whether a principal may still be let in. It is called every second for all who are connected."""
        ...


class Everybody:
    """Lets everybody in as the user of this machine: for loopback alone."""

    async def principal(self, request: RemoteRequest) -> str | None:  # noqa: ARG002
        """Return the local principal."""
        return LOCAL


class TokenEntry(msgspec.Struct, frozen=True):
    """A token as it is stored: never itself, only its hash."""

    name: str
    sha256: str
    created: str = ""

    @property
    def credential(self) -> Credential:
        """What is bound to it."""
        return Credential(self.name, self.sha256[:ID_DIGITS])


class PrincipalEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is said of a principal, besides its tokens."""

    workspaces: tuple[str, ...] = ()
    """The directories in which it may open sessions (H10)."""


class _TokenFile(msgspec.Struct):
    token: list[TokenEntry] = []
    principal: dict[str, PrincipalEntry] = {}


class TokenFile:
    """Tokens in a TOML file. A change of the file is seen at the next request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_at: tuple[int, int, int] | None = None
        self._read = _TokenFile()

    async def principal(self, request: RemoteRequest) -> str | None:
        """Return whom the token of a request names."""
        credential = await self.credential(request)
        return None if credential is None else credential.principal

    async def credential(self, request: RemoteRequest) -> Credential | None:
        """Return the token of a request, without the secret."""
        token = request.bearer
        return None if token is None else self.find(token)

    def holds(self, credential: Credential) -> bool:
        """Return whether a token is still there; while the file makes no sense nobody is turned out."""
        try:
            return any(entry.credential == credential for entry in self.entries())
        except UsageError:
            return True

    def find(self, token: str) -> Credential | None:
        """Return the entry of a token. Takes as long for a wrong one as for a right one (H6)."""
        if is_guessable(token):
            return None
        hashed = hash_token(token)
        found: Credential | None = None
        for entry in self.entries():
            if hmac.compare_digest(hashed, entry.sha256):
                found = entry.credential
        return found

    def entries(self) -> list[TokenEntry]:
        """Return the tokens there are; raise `UsageError` where the file makes no sense."""
        return self._file().token

    def workspaces(self, principal: str) -> tuple[str, ...]:
        """Return the directories that the file gives to a principal, if it does."""
        entry = self._file().principal.get(principal)
        return () if entry is None else entry.workspaces

    def _file(self) -> _TokenFile:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._read, self._read_at = _TokenFile(), None
            return self._read
        seen = (status.st_ino, status.st_mtime_ns, status.st_size)
        # A file that was written just now may be written once more within the same tick of the system's clock.
        if seen != self._read_at or time.time_ns() - status.st_mtime_ns < TICK_NS:
            try:
                self._read = msgspec.toml.decode(self.path.read_bytes(), type=_TokenFile)
            except msgspec.DecodeError as e:
                raise UsageError(f"{self.path} makes no sense: {e}") from None
            self._read_at = seen
        return self._read

    def add(self, name: str, workspaces: Sequence[str] = ()) -> str:
        """Create a token for a principal and store its hash; return the token, which is nowhere else.

        `workspaces` are the directories the principal may work in, instead of what was said of it before.
        """
        if not NAME.fullmatch(name):
            raise UsageError(f"{name!r} is no name for a principal; use letters, digits and @ . _ + -")
        for directory in workspaces:
            if not os.path.isabs(directory):  # noqa: PTH117
                raise UsageError(f"{directory!r} is no absolute path")
        token = new_token()
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with only_process(self.path.parent):
            principals = dict(self._file().principal)
            if workspaces:
                principals[name] = PrincipalEntry(tuple(workspaces))
            self._write([*self.entries(), TokenEntry(name, hash_token(token), created)], principals)
        return token

    def remove(self, name: str) -> int:
        """Remove the tokens of a principal, and what is said of it; return how many tokens there were."""
        if not self.path.exists():
            return 0
        with only_process(self.path.parent):
            kept = [entry for entry in self.entries() if entry.name != name]
            removed = len(self.entries()) - len(kept)
            if removed:
                principals = {known: entry for known, entry in self._file().principal.items() if known != name}
                self._write(kept, principals)
            return removed

    def _write(self, entries: list[TokenEntry], principals: Mapping[str, PrincipalEntry]) -> None:
        tables = [
            f'[[token]]\nname = "{entry.name}"\nsha256 = "{entry.sha256}"\ncreated = "{entry.created}"\n'
            for entry in entries
        ]
        tables += [
            f'[principal."{name}"]\nworkspaces = {msgspec.json.encode(entry.workspaces).decode()}\n'
            for name, entry in principals.items()
        ]
        text = "# Tokens of `holdfast serve`. Only their hashes are here; see `holdfast token --help`.\n\n"
        write_private(self.path, (text + "\n".join(tables)).encode())
        self._read_at = None


def new_token() -> str:
    """Return a token that nobody has."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """Return the hash of a token: it has 256 random bits, so that a plain hash tells nothing of it."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
