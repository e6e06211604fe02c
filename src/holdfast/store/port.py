"""The persistence port: what the engine asks of a store, and what a store promises.

Whatever a method has returned is on disk for good (P2); `TurnLog.append` alone promises less: what it has taken
survives the death of the process, not that of the machine (P1). Every write names a claim, and a claim that another
process has outdated is refused (P4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.model import SessionInfo, SessionState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from holdfast.format import Line
    from holdfast.model import ArchiveFilter, Page
    from holdfast.store.reports import Finding, Size, Stats


class Claim(NamedTuple):
    """The right to write a session, until somebody takes it over."""

    session: str
    epoch: int


class Record(NamedTuple):
    """A session as it is stored, without its conversation."""

    info: SessionInfo
    state: SessionState
    lines: int
    """How many lines its history has."""
    epoch: int
    """The epoch of the claim that holds now."""


class Broken(NamedTuple):
    """A turn whose process died: what had been accepted and what had been said, to be folded and sealed."""

    lines: list[bytes]


class Claimed(NamedTuple):
    """What one gets with a claim."""

    claim: Claim
    record: Record
    broken: Broken | None


class Unfinished(NamedTuple):
    """A turn that is not sealed yet: what had been accepted and what was said so far."""

    lines: list[bytes]
    where: str | None
    """Where it runs, in words; None where its process died, and the turn with it."""


class Seen(NamedTuple):
    """A session as somebody sees it who only looks."""

    record: Record
    unfinished: Unfinished | None


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What to change about a session besides its conversation; what is not named stays."""

    state: SessionState | UnsetType = UNSET
    title: str | UnsetType | None = UNSET
    archived: bool | UnsetType = UNSET
    additional: tuple[str, ...] | UnsetType = UNSET


class Hit(msgspec.Struct, frozen=True):
    """Something a search found: `text` with the places of the words in it, as pairs of offsets."""

    session: SessionInfo
    kind: str
    key: str
    text: str
    marks: tuple[tuple[int, int], ...]


class TurnLog(Protocol):
    """The events of a turn while it runs."""

    def append(self, lines: bytes) -> None:
        """Keep encoded events, a newline after each. Fast enough to be called from the event loop."""
        ...

    async def sync(self) -> None:
        """Make what was appended so far survive the death of the machine too."""
        ...


class Store(Protocol):
    """Keeps sessions."""

    async def create(self, info: SessionInfo, state: SessionState) -> Claim:
        """Add a session, claimed."""
        ...

    async def get(self, session: str) -> Record:
        """Look a session up; `SessionNotFound` if there is none."""
        ...

    async def look(self, session: str) -> Seen:
        """Look a session up, and what its turn has said so far if it is in one; nobody is disturbed by it."""
        ...

    async def find(self, prefix: str, *, limit: int) -> list[SessionInfo]:
        """Find the sessions whose ids begin so, those that never got a prompt too, in the order of their ids."""
        ...

    async def list(self, *, cwd: str | None, archived: ArchiveFilter, cursor: str | None, limit: int) -> Page:
        """List the sessions that ever got a prompt, newest activity first (B4, B5)."""
        ...

    async def claim(self, session: str) -> Claimed:
        """Become the one writer of a session.

        One that is idle in another process is taken over; one whose turn runs in a live process is refused with
        `SessionBusy`; one whose process died is taken, along with the turn that broke.
        """
        ...

    async def release(self, claim: Claim) -> None:
        """Stop being the writer, so that nobody has to wonder who is.

        A turn that was begun and could not be sealed is left, broken, to whoever claims the session next.
        """
        ...

    async def begin(self, claim: Claim, lines: Sequence[bytes], changes: Changes) -> TurnLog:
        """Begin a turn with what was accepted, as a prompt."""
        ...

    async def seal(
        self, claim: Claim, lines: Sequence[Line], changes: Changes, *, messages: int, late: bool = False
    ) -> None:
        """End the turn: put its entries behind the history and forget its log. `messages` were added by it.

        A turn that is sealed `late` had ended before: the session's last activity stays what it was (B10).
        """
        ...

    async def save(self, claim: Claim, changes: Changes) -> None:
        """Change what is known of a session besides its conversation. Its last activity stays what it was."""
        ...

    async def amend(
        self, session: str, *, title: str | UnsetType | None = UNSET, archived: bool | UnsetType = UNSET
    ) -> None:
        """Change for the user what no turn depends on, whoever is the writer of the session, and leave it to them.

        A writer that is alive goes by the title it knows until it opens the session again.
        """
        ...

    def read(self, session: str, lines: int) -> AsyncIterator[list[bytes]]:
        """Read the first so many lines of the history: blocks of lines joined by newlines, a few blocks at a time.

        Whoever reads while the session goes on says how many lines there were when it began, and sees those.
        """
        ...

    async def fork(
        self, claim: Claim, info: SessionInfo, state: SessionState, *, up_to: str | None, lines: Sequence[Line]
    ) -> Claim:
        """Add a session that begins with another's history, up to and with the entry of that key or all of it.

        Then come `lines`, which the other session does not have yet.
        """
        ...

    async def add(self, info: SessionInfo, state: SessionState, lines: Sequence[Line]) -> None:
        """Add a session with all of its history, that nobody claims. Its id must be new."""
        ...

    async def delete(self, session: str) -> None:
        """Remove a session; its forks stay whole. One that is not there is removed already."""
        ...

    async def search(self, words: str, *, cwd: str | None, limit: int) -> list[Hit]:
        """Find words in titles, messages and titles of tool calls, newest first."""
        ...

    async def prune(self, before: int) -> int:
        """Delete the sessions whose last activity is older than that and that nobody uses; say how many."""
        ...

    async def vacuum(self) -> None:
        """Give back the space of what was deleted. It takes a while; whoever waits no longer stops it."""
        ...

    async def size(self) -> Size:
        """Measure the space it takes."""
        ...

    async def stats(self) -> Stats:
        """Count what is in it."""
        ...

    def examine(self) -> AsyncIterator[Finding]:
        """Look for damage and leftovers, one thing after the other; nothing is changed."""
        ...

    async def repair(self, finding: Finding) -> str:
        """Put right what a finding says can be put right, without losing anything; say what was done."""
        ...

    async def close(self) -> None:
        """Finish what is in hand and let go."""
        ...
