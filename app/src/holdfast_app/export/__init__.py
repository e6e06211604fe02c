"""A session as one file: Markdown or a page for people, JSON to be read again; secrets taken out.

Everything here is pure: it makes text of entries and values, piece by piece, so that a long session needs little
memory. Where sessions come from and where the file goes is the caller's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.model import Entry, SessionInfo, SessionState


class Writer(Protocol):
    """Writes a session piece by piece. Secrets are taken out before, by `redact`."""

    def opening(self, info: SessionInfo, state: SessionState) -> str:
        """Return what comes before the conversation."""
        ...

    def entry(self, entry: Entry) -> str:
        """Return an entry as it is written."""
        ...

    def closing(self, redacted: int) -> str:
        """Return what comes after the conversation. `redacted` is how many secrets were taken out."""
        ...
