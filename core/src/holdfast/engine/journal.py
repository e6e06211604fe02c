"""The journal: the one place where order and durability of a live session are decided.

Every event of a session goes through here, in a turn and between turns. There are two marks. What is *kept* survives
the death of the process and may be shown (P1); what is *durable* survives loss of power and may be acknowledged (P2).
Nothing is shown that is not kept; that is the whole rule.

A `Journal` is *open* from the first event to the seal: an `OpenLog` then holds what was said since the last seal. A
turn opens it with its prompt; between turns it opens by itself, and is sealed when it has been quiet for a moment. What
the store could not seal stays here until it can, ahead of everything else. `claim_session` recovers what a process
left unsealed when it died (P3).
"""

from __future__ import annotations

import asyncio
import logging
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.engine.background import background_ends, background_keys
from holdfast.engine.log import NoLog, OpenLog
from holdfast.engine.missed_events import ended_line, missed_events, opening_lines
from holdfast.errors import PositionLost, RequestError, StoreError, UsageError
from holdfast.format import Line, lines_of, stored
from holdfast.model import (
    FINAL_STATUSES,
    Event,
    History,
    Position,
    TurnEnd,
    check_update,
    event_from,
    is_object,
    latest,
)
from holdfast.model.kinds import DAMAGED, LOG_ONLY, PRIVATE, REMEMBERED
from holdfast.store import Changes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from holdfast.engine.session import LiveSession
    from holdfast.model import Entry, SessionState, Update
    from holdfast.store import Claim, Record, Store, TurnLog, UnsealedTurn

log: logging.Logger = logging.getLogger(__name__)

QUIET = 0.5
"""What happens between turns is sealed when nothing has happened for so many seconds."""

_MESSAGES = frozenset({"user_message", "agent_message"})


class _Seal(msgspec.Struct, frozen=True):
    """All that a seal puts into the store."""

    lines: list[Line]
    changes: Changes
    messages: int
    private: list[bytes]
    activity: bool
    unshown: list[Event]
    """What nobody may see before it is sealed."""
    last: bytes | None
    """The last line of the log, where it is kept for clients whose stream was cut; None where it cannot be."""


class Journal:
    """Order and durability of one live session."""

    __slots__ = (
        "_event", "_keeps_events", "_left", "_opening", "_quiet", "_sealing", "_session", "_store", "_storing", "_turn",
        "_waiters", "_waiting", "claim", "lines", "open",
    )  # fmt: skip

    def __init__(
        self, store: Store, session: LiveSession, claim: Claim, lines: int, at: Position, *, keeps_events: bool
    ) -> None:
        """Begin at a position; `keeps_events` says whether clients whose stream was cut can go on where it was."""
        self.claim: Claim = claim
        self.lines: int = lines
        """How many lines are sealed."""
        self.open: OpenLog | None = None
        self._store = store
        self._session = session
        self._left: tuple[_Seal, RequestError] | None = None  # what the store could not seal, and why
        self._sealing: asyncio.Lock | None = None
        # A seal and a change both store the whole state: a store that does two things at once may do the older last.
        self._storing: asyncio.Lock | None = None
        self._opening: asyncio.Future[None] | None = None
        self._waiting: list[tuple[Event, bool]] = []  # said while no log took it, and whether it is to be stored
        self._waiters = 0  # how many wait until all that was said is shown
        self._quiet: asyncio.TimerHandle | None = None  # set while what is open is between turns
        self._turn = at.turn
        self._event = at.event
        self._keeps_events = keeps_events

    @property
    def failure(self) -> RequestError | None:
        """Why a part of what was said is not stored, where that is so."""
        if self._left is not None:
            return self._left[1]
        return self.open.failure if self.open is not None else None

    @property
    def position(self) -> Position:
        """The position of the last event that was shown."""
        return Position(self.claim.epoch, self._turn, self._event)

    def count(self, events: int) -> Position:
        """Give the next positions to so many events that are shown now; return the position before them."""
        before = Position(self.claim.epoch, self._turn, self._event)
        self._event += events
        return before

    async def missed(self, since: Position, until: Position) -> list[tuple[Position, list[Event]]]:
        """Return the stored events after a position, up to and with another; raise `PositionLost` where some are gone.

        See `missed_events`.
        """
        if since == until:
            return []
        if not self._keeps_events or since > until:
            raise PositionLost(since)
        return missed_events(await self._store.read_events(self.claim.session), since, until)

    @property
    def is_idle(self) -> bool:
        """Whether all that was said is sealed."""
        return self.open is None and self._left is None and self._opening is None

    async def shown(self) -> None:
        """Wait until all that was said so far has been shown, or cannot be.

        At the moment when this returns, what `open` has folded and what clients were shown is the same.
        """
        self._waiters += 1
        try:
            while True:
                await self._opened()
                opened = self.open
                if opened is not None:
                    await opened.shown()
                if self.open is opened:
                    return
        finally:
            self._waiters -= 1

    async def durable(self) -> None:
        """Make all that was said so far durable (P2); raise the `RequestError` that prevents it."""
        await self.shown()
        opened = self.open
        if opened is not None:
            try:
                if not opened.sealing:
                    await opened.durable()
            except StoreError:
                if not opened.sealing:
                    raise
            if opened.sealing:
                async with self._one_at_a_time():
                    pass  # what is sealed is durable
        if self.failure is not None:
            raise self.failure

    async def begin(
        self, first: Sequence[Event], changes: Changes, failed: Callable[[], None], *, whole: bool, durable: bool
    ) -> OpenLog:
        """Open the log of a turn with its prompt, which is `durable` when this returns, and shown.

        Where it need not be durable it is shown once it is kept, like all that is said after it. `first` is the prompt,
        and what else is shown as the turn begins.
        """
        while not self.is_idle:
            await self.settle()
        self._opening = asyncio.get_running_loop().create_future()
        try:
            opening = self._opening_lines(first)
            turn_log = await self._store.begin(self.claim, [first[0].body], changes, durable=durable, opening=opening)
            self._open(turn_log, failed, whole=whole).begin_with(first, is_kept=durable)
        finally:
            self._now_open()
        assert self.open is not None
        return self.open

    def _opening_lines(self, first: Sequence[Event]) -> bytes:
        return opening_lines(self.claim.epoch, first) if self._keeps_events else b""

    def _open(self, turn_log: TurnLog, failed: Callable[[], None] | None, *, whole: bool) -> OpenLog:
        """Begin a log, and with it a new number of positions."""
        self._turn, self._event = self._turn + 1, 0
        background = self._session.state.background
        earlier = background_keys(background) if background else ()
        self.open = OpenLog(
            turn_log, self._session.show, failed, whole=whole, earlier=earlier, tells_positions=self._keeps_events
        )
        return self.open

    async def seal(self, end: TurnEnd) -> TurnEnd:
        """Seal a turn, before anyone hears of its end (P2). What the store cannot take is kept here for later.

        Raise `SessionMoved` or `SessionNotFound` where the session is not ours any more.
        """
        opened = self.open
        assert opened is not None
        if self._waiters:
            await opened.shown()  # they shall not wait for one seal after the other
        else:
            await opened.shown_or_held()
        opened.sealing = True
        seal = self._seal(opened, end_mark(end), activity=True)
        try:
            await self._write(seal)
        except StoreError as e:
            failed = TurnEnd("error", e.message)
            if end.reason == "end_turn":
                seal = self._seal(opened, end_mark(failed), activity=False)
            self._left = msgspec.structs.replace(seal, activity=False, last=None), e
            return failed
        finally:
            self.open = None
            opened.is_sealed()
        self._session.show(seal.unshown)
        self._take_waiting()
        return end

    def append(self, event: Event) -> None:
        """Take an event, in a turn or between turns. Between turns a log is opened first; showing waits for that."""
        if self.open is not None and not self.open.sealing:
            self.open.append(event)
            if self._quiet is not None:
                self._seal_when_quiet()
            return
        self._waiting.append((event, True))
        if self.open is None and self._opening is None:
            self._open_between()

    def announce(self, event: Event) -> None:
        """Show an event that is stored already, or never is, in order with all that was said before."""
        if self.open is not None and not self.open.sealing:
            self.open.announce(event)
        elif self.open is None and self._opening is None:
            self._session.show([event])
        else:
            self._waiting.append((event, False))

    async def settle(self) -> None:
        """Seal what was said between turns, and what the store could not take before.

        Raise `StoreError` where it still cannot be, `SessionMoved` or `SessionNotFound` where it is not ours any more.
        """
        await self._opened()
        if self._left is None and self._quiet is None:
            return
        if self._sealing is None:
            self._sealing = asyncio.Lock()
        async with self._sealing:
            if self._quiet is not None:
                await self._seal_between()
            await self._seal_left()

    # Between turns

    def _open_between(self) -> None:
        self._opening = opening = asyncio.get_running_loop().create_future()

        async def open_log() -> None:
            try:
                await self._seal_left()
                first = self._opening_lines(())
                turn_log = await self._store.begin(self.claim, [], Changes(), activity=False, opening=first)
                self._open(turn_log, None, whole=False)
            except StoreError as e:
                self.open = OpenLog(NoLog(e), self._session.show, None, whole=False)
            except RequestError as e:
                self._waiting.clear()
                self._opening = None
                opening.set_result(None)
                await self._session.evict(e.message)
                return
            self._seal_when_quiet()
            self._now_open()

        self._session.start(open_log())

    def _now_open(self) -> None:
        """Let what has waited for a log go into it."""
        opening, self._opening = self._opening, None
        self._take_waiting()
        if opening is not None:
            opening.set_result(None)

    def _take_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for event, to_be_stored in waiting:
            if to_be_stored:
                self.append(event)
            else:
                self.announce(event)

    async def _opened(self) -> None:
        while self._opening is not None:
            await asyncio.shield(self._opening)

    def _seal_when_quiet(self) -> None:
        if self._quiet is not None:
            self._quiet.cancel()
        self._quiet = asyncio.get_running_loop().call_later(QUIET, self._session.settle_soon)

    async def _seal_between(self) -> None:
        opened = self.open
        assert opened is not None and self._quiet is not None
        self._quiet.cancel()
        await opened.shown()
        opened.sealing = True
        seal = self._seal(opened, [], activity=False)
        try:
            await self._write(msgspec.structs.replace(seal, activity=seal.messages > 0))
        except StoreError as e:
            self._left = msgspec.structs.replace(seal, last=None), e
            raise
        finally:
            self._quiet, self.open = None, None
        self._session.show(seal.unshown)
        self._take_waiting()

    async def _seal_left(self) -> None:
        if self._left is not None:
            seal, _ = self._left
            await self._write(seal)
            self._left = None
            self._session.show(seal.unshown)

    # Sealing

    def _seal(self, opened: OpenLog, marks: list[Event], *, activity: bool) -> _Seal:
        """Work out what to put into the store. The mark of a bad end is shown, like anything else, once it is there."""
        lines, changes, messages = sealed_lines(opened.history, marks, self._session.state)
        if changes.title is not UNSET:
            # The user may be giving it another one right now, and came later.
            changes = msgspec.structs.replace(changes, title=self._session.title)
        passed = opened.passed
        last = None if passed is None else opened.rest + ended_line(self.claim.epoch, marks, passed=passed)
        return _Seal(lines, changes, messages, opened.private, activity, [*opened.unshown, *marks], last)

    async def save(self, changes: Changes) -> None:
        """Store what is known of the session besides the conversation."""
        async with self._one_at_a_time():
            await self._store.save(self.claim, changes)

    def _one_at_a_time(self) -> asyncio.Lock:
        self._storing = self._storing or asyncio.Lock()
        return self._storing

    async def _write(self, seal: _Seal) -> None:
        async with self._one_at_a_time():
            await self._store.seal(
                self.claim,
                seal.lines,
                seal.changes,
                messages=seal.messages,
                private=seal.private,
                activity=seal.activity,
                last=seal.last,
            )
        self.lines += len(seal.lines)


# How a turn ends


def closing_events(
    history: History, *, status: str, whole: bool, besides: Collection[tuple[str, str]] = ()
) -> list[Event]:
    """Return how what a turn left open ends: tool calls that were not finished, terminals that had not exited.

    Unless every entry begins in its turn (`whole`), a tool call may be one that an earlier turn has finished. What goes
    on `besides` the turn stays open.
    """
    events: list[Event] = []
    for entry in history:
        if (entry.entity, entry.key) in besides:
            continue
        began_here = whole or "status" in entry.members or "title" in entry.members
        if entry.entity == "tool_call_update" and began_here and entry.members.get("status") not in FINAL_STATUSES:
            update: Update = {"sessionUpdate": "tool_call_update", "toolCallId": entry.key, "status": status}
            events.append(event_from(update | _without_controls(entry)))
        elif entry.entity == "terminal_update" and not isinstance(entry.members.get("exitStatus"), dict):
            update = {"sessionUpdate": "terminal_update", "terminalId": entry.key, "exitStatus": {}}
            events.append(event_from(update | _without_controls(entry)))
    return events


def _without_controls(entry: Entry) -> Update:
    """Return the members that say that nothing of an entry can be cancelled any more."""
    return {} if entry.members.get("capabilities") is None else {"capabilities": None}


def end_mark(end: TurnEnd) -> list[Event]:
    """Return the mark that a turn which did not end well leaves in the history (C4); none for one that did."""
    if end.reason == "end_turn":
        return []
    mark: Update = {"sessionUpdate": "_holdfast/turn_end", "reason": end.reason}
    return [event_from(mark if end.error is None else {**mark, "error": end.error})]


def sealed_lines(history: History, marks: list[Event], state: SessionState) -> tuple[list[Line], Changes, int]:
    """Return what a log leaves behind: lines, changes, and how many messages the lines add."""
    title: str | UnsetType | None = UNSET
    for kind, update in history.state.items():
        keep_latest(state, update)
        if kind == "session_info_update" and "title" in update:
            title = update["title"]
    messages = sum([entry.entity in _MESSAGES for entry in history])
    lines = [*lines_of(history), *(Line(stored(mark.update()), "") for mark in marks)]
    return lines, Changes(state=state, title=title), messages


def keep_latest(state: SessionState, update: Update) -> None:
    """Remember the latest that was said about the session itself. Titles and options are kept elsewhere."""
    kind = update["sessionUpdate"]
    if kind == "session_info_update":
        if "title" in update and state.title_by != "user":
            state.title_by = "agent"
    elif kind != "config_option_update":
        state.latest[kind] = latest(state.latest.get(kind), update)


# What a process left behind when it died


class ClaimedSession(NamedTuple):
    """A session that this process may write from now on."""

    claim: Claim
    record: Record
    at: Position
    """Where the stream of its events goes on."""


async def claim_session(
    store: Store, session_id: str, *, begins_entries: bool, keeps_events: bool = False, take_over: bool = True
) -> ClaimedSession:
    """Become the one writer of a session; a turn that a crash broke is ended first (P3). See `Store.claim`."""
    claimed = await store.claim(session_id, take_over=take_over)
    claim, record, broken = claimed.claim, claimed.record, claimed.broken
    at = Position(claim.epoch, record.turn, 0)
    if broken is None and not record.state.background:
        return ClaimedSession(claim, record, at)
    seal = recovered(broken, record, begins_entries=begins_entries)
    if keeps_events:
        seal = msgspec.structs.replace(seal, last=ended_line(claim.epoch, seal.unshown))
    try:
        await store.seal(
            claim, seal.lines, seal.changes,
            messages=seal.messages, private=seal.private, activity=False, last=seal.last,
        )  # fmt: skip
    except BaseException:
        await store.release(claim)
        raise
    state = record.state if isinstance(seal.changes.state, UnsetType) else seal.changes.state
    title = record.info.title if isinstance(seal.changes.title, UnsetType) else seal.changes.title
    info = msgspec.structs.replace(record.info, title=title)
    record = msgspec.structs.replace(record, info=info, state=state, lines=record.lines + len(seal.lines))
    return ClaimedSession(claim, record, at.after(len(seal.unshown)))


def recovered(broken: UnsealedTurn | None, record: Record, *, begins_entries: bool) -> _Seal:
    """Fold what a dead process left behind into what is to be sealed: a broken turn, work beside the turns.

    `unshown` is how it ends, which no client has seen yet.
    """
    lines = [] if broken is None else broken.lines
    try:
        return _recovered(lines, record, begins_entries=begins_entries)
    except Exception:
        # It may have been what broke the turn. One event that cannot be kept is no reason to lose the others.
        log.exception("Something that a broken turn had said makes no sense; a mark stands in its place")
        return _recovered(_with_marks(lines), record, begins_entries=begins_entries)


def _recovered(lines: Sequence[bytes], record: Record, *, begins_entries: bool) -> _Seal:
    updates = [msgspec.json.decode(line) for line in lines]
    in_turn = bool(updates) and updates[0]["sessionUpdate"] == "user_message"  # otherwise it was between turns
    whole = begins_entries and in_turn
    earlier = background_keys(record.state.background)
    history, private = History(complete=whole, earlier=earlier), list[bytes]()
    for update, line in zip(updates, lines, strict=True):
        if update["sessionUpdate"] == REMEMBERED:
            given = msgspec.convert(update, _Remembered)
            record.state.permissions[given.subject] = given.allow
        elif update["sessionUpdate"] == PRIVATE:
            private.append(msgspec.json.encode(update["data"]))
        elif update["sessionUpdate"] not in LOG_ONLY:
            history.apply(event_from(update, line))
    marks, closing = list[Event](), background_ends(record.state, history)
    record.state.background = ()
    if in_turn:
        record.state.interrupted = True
        marks = end_mark(TurnEnd("interrupted"))
        closing += closing_events(history, status="failed", whole=whole, besides=earlier)
    for event in closing:
        history.apply(event)
    sealed, changes, messages = sealed_lines(history, marks, record.state)
    return _Seal(sealed, changes, messages, private, activity=False, unshown=[*closing, *marks], last=None)


def _with_marks(lines: Sequence[bytes]) -> list[bytes]:
    """Return the lines of a log with a mark in place of each run of lines that make no sense (P11)."""
    marked: list[bytes] = []
    for reason, run in groupby(lines, key=_nonsense):
        if reason:
            count = sum(1 for _ in run)
            marked.append(event_from({"sessionUpdate": DAMAGED, "lines": count, "reason": reason}).body)
        else:
            marked += run
    return marked


def _nonsense(line: bytes) -> str:
    """Return why a line of a log makes no sense; an empty text for one that does."""
    try:
        update: Any = msgspec.json.decode(line)
        if not is_object(update):
            return "It is no update of a session"
        kind: object = update.get("sessionUpdate")
        if kind == REMEMBERED:
            msgspec.convert(update, _Remembered)
        elif kind == PRIVATE:
            msgspec.convert(update, _Private)
        elif not isinstance(kind, str) or kind not in LOG_ONLY:
            check_update(update)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UsageError) as e:
        return str(e)
    return ""


class _Remembered(msgspec.Struct):
    """What the line of a permission that was given for ever must have."""

    subject: str
    allow: bool


class _Private(msgspec.Struct):
    """What the line of a private entry must have."""

    data: Any
