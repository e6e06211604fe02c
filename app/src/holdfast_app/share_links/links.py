"""The links that were made: each a file, named by the hash of the link's secret. So none can be found without it."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import UsageError
from holdfast.secret_files import is_guessable, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST = 365 * 24 * 3600
"""No link lasts longer, in seconds."""

_ID = re.compile(r"[0-9a-f]{6,64}")


class ShareLink(msgspec.Struct, frozen=True):
    """A link as it is stored: all but its secret."""

    id: str
    """The hash of the secret. Its beginning is enough to revoke the link."""
    session: str
    principal: str
    """To whom the session belongs; to nobody else's it ever leads."""
    created: int
    """Seconds since 1970."""
    until: int
    redacts: bool
    """Whether secrets are taken out of what it shows."""
    credential: str = ""
    """With which of the principal's credentials it was made: it ends with that one. Empty where with none."""


class ShareLinks:
    """The links of a store. Changes of other processes are seen at once."""

    def __init__(self, directory: Path) -> None:
        """Keep links in a directory, which is made with the first of them."""
        self._directory = directory

    def add(
        self, session: str, principal: str, seconds: float, *, redacts: bool = True, credential: str = ""
    ) -> tuple[str, ShareLink]:
        """Make a link to a session; return its secret, which is nowhere else, and what is stored of it.

        It ends with a `credential` of the principal, if one is named.

        Raise `UsageError` for a time that is not between a minute and a year.
        """
        if not 60 <= seconds <= LONGEST:
            raise UsageError("a link lasts between a minute and a year")
        secret = secrets.token_urlsafe(32)
        now = int(time.time())
        link = ShareLink(_hash(secret), session, principal, now, now + int(seconds), redacts, credential)
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._path(link.id), msgspec.json.encode(link))
        return secret, link

    def find(self, secret: str) -> ShareLink | None:
        """Return the link with a secret; None where it has expired, was revoked or never was."""
        return None if is_guessable(secret) else self._read(_hash(secret))

    def links(self, principal: str | None = None, session: str | None = None) -> list[ShareLink]:
        """Return the links that lead somewhere, newest first: all, or those of a principal or to a session."""
        found = (
            link
            for link in map(self._read, self._ids())
            if link is not None and principal in (None, link.principal) and session in (None, link.session)
        )
        return sorted(found, key=lambda link: (-link.created, link.id))

    def still(self, link: ShareLink) -> bool:
        """Return whether a link that was found still leads somewhere."""
        return self._read(link.id) is not None

    def keep(self, link: ShareLink) -> None:
        """Let a link outlive the credential it was made with."""
        if link.credential:
            write_private(self._path(link.id), msgspec.json.encode(msgspec.structs.replace(link, credential="")))

    def revoke(self, link: ShareLink) -> None:
        """Let a link lead nowhere, from now on."""
        self._path(link.id).unlink(missing_ok=True)

    def _read(self, link_id: str) -> ShareLink | None:
        path = self._path(link_id)
        try:
            link = msgspec.json.decode(path.read_bytes(), type=ShareLink)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        if time.time() >= link.until:
            path.unlink(missing_ok=True)
            return None
        return link if link.id == link_id else None

    def _ids(self) -> Iterator[str]:
        if self._directory.is_dir():
            yield from (path.stem for path in self._directory.glob("*.json") if _ID.fullmatch(path.stem))

    def _path(self, link_id: str) -> Path:
        return self._directory / f"{link_id}.json"


def _hash(secret: str) -> str:
    """Return the hash of a secret: it has 256 random bits, so that a plain hash tells nothing of it."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
