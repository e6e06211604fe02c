"""The persistence ports: `Store` is what the engine asks for, `Library` what people and upkeep ask for.

What a method has returned is on disk for good (P2). `TurnLog.append` alone promises less: what is *kept* survives the
death of the process, not that of the machine (P1). Every write names a claim, and a claim that another process has
outdated is refused (P4). `holdfast.store.address` opens the store that an address names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.model import ArchiveFilter, Scope, SessionInfo, SessionState, text_without_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from holdfast.format import Line
    from holdfast.model import Page
    from holdfast.store.reports import Finding, Size, Stats
    from holdfast.store.turn_log import TurnLog


class Claim(msgspec.Struct, frozen=True):
    """The right to write a session, until another process takes it over."""

    session: str
    epoch: int


class Record(msgspec.Struct, frozen=True):
    """A session as it is stored, without its conversation."""

    info: SessionInfo
    state: SessionState
    lines: int
    """How many lines its history has."""
    epoch: int
    """The epoch of the claim that holds now."""
    turn: int
    """How many logs were ever begun in it; each `Store.begin` adds one."""


class UnsealedTurn(msgspec.Struct, frozen=True):
    """A turn that was begun and not sealed: what was accepted, and what was said so far."""

    lines: list[bytes]
    running_in: str | None = None
    """The process it runs in, in words; None where that process died, and the turn with it."""


class EventWindow(msgspec.Struct, frozen=True):
    """How much of what was said stays readable after it was sealed, for clients whose stream was cut (H4)."""

    seconds: float = 600.0
    """So long after the last event of a session…"""
    size: int = 16 << 20
    """…and about so many bytes of a session: what is older goes first."""


class KeptLog(msgspec.Struct, frozen=True):
    """What was written into the log of a turn, or of the time between two, sealed or not."""

    turn: int
    """Its number: see `Record.turn`."""
    lines: list[bytes]


class Owner(msgspec.Struct, frozen=True):
    """A living process that has a session open."""

    name: str
    """What people call it: the name of its client."""
    address: str | None
    """Where it listens, as in `SessionElsewhere`."""


class Claimed(msgspec.Struct, frozen=True):
    """What one gets with a claim; `broken` is the turn that its last writer left unsealed."""

    claim: Claim
    record: Record
    broken: UnsealedTurn | None


class Snapshot(msgspec.Struct, frozen=True):
    """A session as it is now, for readers: nobody is disturbed by taking one."""

    record: Record
    unsealed: UnsealedTurn | None


class Forked(msgspec.Struct, frozen=True):
    """A fork that was made."""

    claim: Claim
    lines: int
    """How many lines its history has."""
    cut_turn: bool
    """Whether it ends inside a turn; the private entries of that turn are not in it."""
    is_earlier: bool = False
    """True if its source goes on from there; a `FORKED_EARLIER` ends it."""


class PrivateEntry(msgspec.Struct, frozen=True):
    """A private entry, and how many lines the history had when its turn began and when it was sealed."""

    start: int
    position: int
    data: bytes


class Shared(msgspec.Struct, frozen=True):
    """How many lines at its beginning a history has in common with that of another session."""

    session: str
    lines: int


class Alias(msgspec.Struct, frozen=True):
    """Another name of a session; None for the session once it was deleted."""

    principal: str
    agent: str
    name: str
    session: str | None


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What to change about a session besides its conversation; what is not named stays."""

    state: SessionState | UnsetType = UNSET
    title: str | UnsetType | None = UNSET
    archived: bool | UnsetType = UNSET
    additional: tuple[str, ...] | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    """The agent it belongs to from now on (F6: the first prompt binds a session that belongs to none)."""

    def __post_init__(self) -> None:
        """Take a title whatever is in it: it may be an argument that is not Unicode, or of agent code (A2)."""
        if isinstance(self.title, str):
            msgspec.structs.force_setattr(self, "title", text_without_lone_surrogates(self.title))


class SearchArea(msgspec.Struct, frozen=True):
    """The sessions that a search looks through."""

    scope: Scope
    cwd: str | None = None
    archived: ArchiveFilter = "include"
    since: int = 0
    """Their last activity is not older, in microseconds since 1970."""

    @property
    def is_part(self) -> bool:
        """Whether some sessions of the scope are not in it."""
        return self.cwd is not None or self.archived != "include" or self.since > 0

    @property
    def archived_values(self) -> tuple[bool, ...]:
        """What `archived` may be of a session in it."""
        return {"exclude": (False,), "only": (True,), "include": (False, True)}[self.archived]

    def covers(self, info: SessionInfo) -> bool:
        """Return whether a session is in it."""
        return (
            self.scope.covers(info.principal, info.agent)
            and self.cwd in (None, info.cwd)
            and info.archived in self.archived_values
            and info.updated_at >= self.since
        )


class Hit(msgspec.Struct, frozen=True):
    """Something a search found: `text` with the places of what was asked for in it, as pairs of offsets."""

    session: SessionInfo
    kind: str
    key: str
    text: str
    marks: tuple[tuple[int, int], ...]


class Store(Protocol):
    """What the engine needs."""

    async def create(self, info: SessionInfo, state: SessionState) -> Claim:
        """Add a session, claimed."""
        ...

    async def get(self, session: str) -> Record:
        """Look a session up; raise `SessionNotFound` if there is none."""
        ...

    async def list(
        self, scope: Scope, *, cwd: str | None, archived: ArchiveFilter, cursor: str | None, limit: int
    ) -> Page:
        """List the sessions of a scope that ever got a prompt, newest activity first (B4, B5)."""
        ...

    @property
    def address(self) -> str | None:
        """Where the others on this store find this process, as in `SessionElsewhere`; None where there are none."""
        ...

    def introduce(self, name: str) -> None:
        """Tell the others on this store who works here: the name of a client, for messages to people."""
        ...

    def when_fenced(self, call: Callable[[], None]) -> None:
        """Call this whenever none of the claims of this process holds any more, as when its node's lease was over.

        A store on which each claim is lost by itself never does.
        """
        ...

    async def claim(self, session: str, *, take_over: bool = True) -> Claimed:
        """Become the one writer of a session.

        One that is idle in another process is taken over; one whose turn runs in a live process is refused with
        `SessionBusy`; one whose process died is taken, along with the turn that broke. Without `take_over` nothing is
        taken from a live process: `SessionElsewhere` says where it can be asked.
        """
        ...

    async def release(self, claim: Claim) -> None:
        """Stop being the writer. A turn that could not be sealed is left, broken, to the next claim."""
        ...

    async def begin(
        self,
        claim: Claim,
        lines: Sequence[bytes],
        changes: Changes,
        *,
        activity: bool = True,
        durable: bool = True,
        opening: bytes = b"",
    ) -> TurnLog:
        """Open the log of a turn with what was accepted, as a prompt.

        Without `durable` that may be kept a moment later: when what `TurnLog.append` returns then, be it called with no
        events, has completed. It is durable within a second, and in any case with the next `TurnLog.sync` and with the
        seal. Nobody else can take the session any more when this returns, in any case.

        Without `activity` it is the log of what happens between two turns: the session's last activity stays what it
        was, and one that never got a prompt stays out of lists.

        Where `keep_events` was called, `opening` has the first lines that `read_events` returns of the log, a newline
        behind each; what was accepted is not among those.
        """
        ...

    async def seal(
        self,
        claim: Claim,
        lines: Sequence[Line],
        changes: Changes,
        *,
        messages: int,
        private: Sequence[bytes] = (),
        activity: bool = True,
        last: bytes | None = None,
    ) -> None:
        """Put the entries of the open log behind the history, its private entries beside it, and empty the log.

        `messages` of the entries are messages. Without `activity` the session's last activity stays what it was (B10).

        Where `keep_events` was called and `last` is given, the log stays readable by `read_events`, with `last` behind
        its other lines; each ends with a newline. Without `last` no log of the session stays readable.
        """
        ...

    def keep_events(self, window: EventWindow) -> None:
        """Keep the logs of sealed turns readable for a while, from now on; also across the death of the process."""
        ...

    async def read_events(self, session: str) -> list[KeptLog]:
        """Read the logs of a session that are still there, the open one too, in order.

        One that is missing between two others has been given up, and all before it with it.
        """
        ...

    async def forget_events(self) -> None:
        """Remove the logs that are past the window of `keep_events`; to be called now and then."""
        ...

    async def save(self, claim: Claim, changes: Changes) -> None:
        """Change what is known of a session besides its conversation. Its last activity stays what it was."""
        ...

    def read(self, session: str, start: int, end: int) -> AsyncIterator[list[bytes]]:
        """Read the lines `start` to `end` of the history: blocks of lines joined by newlines, a few at a time.

        A reader that reads while the session goes on says how many lines there were when it began, and sees those.
        Raise `StoreDamaged` at the first line that cannot be read (P11).
        """
        ...

    async def read_private(self, session: str) -> list[bytes]:
        """Read the private entries of a session, in order."""
        ...

    async def fork(
        self,
        claim: Claim,
        info: SessionInfo,
        state: SessionState,
        *,
        up_to: str | None,
        lines: Sequence[Line],
        earlier: Sequence[Line] = (),
    ) -> Forked:
        """Add a session that begins with another's history, up to and with the entry of that key or all of it.

        Then come `lines`, which the other session does not have yet, and, if the other session goes on from there,
        those of `earlier`. Private entries come along where the whole of their turn does and `info` names the same
        agent. Where `up_to` names no message or tool call: `InvalidParams`.
        """
        ...

    async def add(
        self,
        info: SessionInfo,
        state: SessionState,
        lines: Sequence[Line],
        *,
        private: Sequence[PrivateEntry] = (),
        shared: Shared | None = None,
    ) -> None:
        """Add a session with all of its history, that nobody claims. Its id must be new.

        With `shared`, its first lines are those of a session that is there: they are stored once, as for a fork.
        """
        ...

    async def set_alias(self, scope: Scope, name: str, session: str | None) -> None:
        """Let a session of a principal and an agent be found by another name too, in the place of any it named before.

        None says that the session of this name was deleted, and is not to come back.
        """
        ...

    async def find_aliases(self, scope: Scope, names: Sequence[str]) -> dict[str, str | None]:
        """Return those of the names that `set_alias` has given, each with its session, None once that was deleted."""
        ...

    async def delete(self, session: str) -> None:
        """Remove a session; its forks stay whole. One that is not there is removed already."""
        ...

    async def prune(self, before: int) -> int:
        """Delete the sessions whose last activity is older than that and that nobody uses; return how many."""
        ...

    async def close(self) -> None:
        """Finish what is in hand and let go."""
        ...


class Library(Protocol):
    """What people and upkeep need: sessions of all agents, whoever writes them."""

    async def get(self, session: str) -> Record:
        """Look a session up; raise `SessionNotFound` if there is none."""
        ...

    async def snapshot(self, session: str) -> Snapshot:
        """Look a session up, and what its unsealed turn has said so far."""
        ...

    async def find(self, prefix: str, *, limit: int, after: str = "") -> list[SessionInfo]:
        """Find the sessions whose ids begin so, those that never got a prompt too, in the order of their ids.

        With `after`, only those whose ids come behind it.
        """
        ...

    async def list(
        self, scope: Scope, *, cwd: str | None, archived: ArchiveFilter, cursor: str | None, limit: int
    ) -> Page:
        """List the sessions of a scope that ever got a prompt, newest activity first."""
        ...

    async def owners(self) -> dict[str, Owner]:
        """Return, by their ids, which sessions living processes have open."""
        ...

    async def scopes(self) -> list[Scope]:
        """Return whose sessions there are: every principal with every agent that it has sessions of."""
        ...

    async def agents(self, principal: str) -> list[str]:
        """Name the agents that a principal has sessions of, in alphabetical order."""
        ...

    async def search(
        self,
        text: str,
        scope: Scope,
        *,
        cwd: str | None,
        limit: int,
        archived: ArchiveFilter = "include",
        since: int = 0,
    ) -> list[Hit]:
        """Find words, phrases and beginnings of words in titles, messages, thoughts and tool calls, newest first.

        How `text` asks for them: `holdfast.store.words`. With `since` (microseconds since 1970) only sessions whose
        last activity is not older are looked through.
        """
        ...

    async def count_places(
        self,
        text: str,
        scope: Scope,
        *,
        cwd: str | None,
        most: int,
        archived: ArchiveFilter = "include",
        since: int = 0,
    ) -> int:
        """Count what `search` finds without a limit, but only to `most`."""
        ...

    def read(
        self, session: str, start: int, end: int, *, damaged: Literal["raise", "mark"] = "raise"
    ) -> AsyncIterator[list[bytes]]:
        """Read a part of a history; see `Store.read`.

        With ``damaged="mark"`` an entry of kind ``_holdfast/damaged`` stands where something cannot be read: `lines`
        says how many lines that were, `firstLine` how many are before them.
        """
        ...

    async def edit(
        self, session: str, *, title: str | UnsetType | None = UNSET, archived: bool | UnsetType = UNSET
    ) -> None:
        """Change for the user what no turn depends on, whoever is the writer of the session, and leave it to them.

        A writer that is alive goes by the title it knows until it opens the session again.
        """
        ...

    async def hand_over(self, session: str, agent: str) -> None:
        """Let a session belong to another agent (F2).

        The history stays and says so at its end; answers given for ever, state and private entries are removed. Raise
        `SessionBusy` while a turn runs, or where one broke and is not sealed yet; a live writer loses its claim.
        """
        ...

    async def add(
        self,
        info: SessionInfo,
        state: SessionState,
        lines: Sequence[Line],
        *,
        private: Sequence[PrivateEntry] = (),
        shared: Shared | None = None,
    ) -> None:
        """Add a session with all of its history, that nobody claims; see `Store.add`."""
        ...

    async def private_entries(self, session: str) -> list[PrivateEntry]:
        """Read the private entries of a session, in order, with where they are in the history."""
        ...

    async def aliases(self) -> list[Alias]:
        """Return all other names of sessions, those of deleted ones too."""
        ...

    async def delete(self, session: str) -> None:
        """Remove a session; see `Store.delete`."""
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
        """Put right what a finding says can be put right, without losing anything; return what was done."""
        ...

    async def close(self) -> None:
        """Finish what is in hand and let go."""
        ...


class SessionStore(Library, Store, Protocol):
    """A store for both."""
