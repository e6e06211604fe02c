"""A session as one file: Markdown or a page for people, JSON to be read again; secrets taken out.

Everything here is pure: it makes text of passages and values, piece by piece, so that a long session needs little
memory. Where sessions come from and where the file goes is the caller's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.model import Entry, SessionInfo, SessionState


class Writer(Protocol):
    """Writes a session, piece by piece. Whether secrets are taken out of it is decided before it comes here."""

    def opening(self, info: SessionInfo, state: SessionState) -> str:
        """Write what comes before the conversation."""
        ...

    def entry(self, entry: Entry) -> str:
        """Write an entry."""
        ...

    def closing(self, redacted: int) -> str:
        """Write what comes after the conversation; so many secrets were taken out."""
        ...
