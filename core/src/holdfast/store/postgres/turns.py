"""Turns in the database: how they begin, and how what was said in them becomes part of the history.

What is said in between goes through `flushing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import StoreError
from holdfast.store.port import Changes
from holdfast.store.postgres import histories
from holdfast.store.postgres.flushing import Beginning, begin_again
from holdfast.store.postgres.log_vacuum import LogVacuum
from holdfast.store.postgres.rows import change_columns
from holdfast.store.postgres.segments import NewSegments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.format import Line
    from holdfast.store.port import Claim, EventWindow
    from holdfast.store.postgres.claims import Claims, Held
    from holdfast.store.postgres.database import Database
    from holdfast.store.postgres.flushing import TurnRows
    from holdfast.store.postgres.scopes import Scopes

UNCHANGED = change_columns(Changes(), "", None)


class NewEntries(NamedTuple):
    """What a turn adds to a history, and beside it."""

    lines: Sequence[Line]
    messages: int
    private: Sequence[bytes]


class Turns:
    """Begins and seals the turns of the sessions that this process has claimed."""

    def __init__(self, database: Database, claims: Claims, scopes: Scopes) -> None:
        self.window: EventWindow | None = None
        """How long what was said stays readable after it was sealed; None: not at all."""
        self._database = database
        self._claims = claims
        self._scopes = scopes
        self._log_vacuum = LogVacuum(database)

    async def begin(
        self, claim: Claim, lines: Sequence[bytes], changes: Changes, *, activity: bool, durable: bool, opening: bytes
    ) -> TurnRows:
        """Begin a turn; see `Store.begin`.

        Where it need not be durable yet and changes nothing else about its session, only that it runs is stored now:
        nobody else can take the session from here on. Its prompt goes with the first flush, or with the seal.
        """
        beginning = Beginning(b"".join(line + b"\n" for line in lines), opening)
        held = await self._claims.check(claim)
        if held.is_running:
            raise StoreError("The last turn of this session is not sealed yet")
        columns = await self._scopes.change_columns(held, changes)
        turn, is_plain = held.turn + 1, columns == UNCHANGED
        is_written = durable or not activity or not is_plain
        mine = held.node.id, held.n, claim.epoch
        if not is_written:
            begun = await self._database.first("reserve_turn", *mine, turn)
        elif is_plain:
            begun = await self._database.first("begin_plain_turn", *mine, turn, activity, *beginning)
        else:
            begun = await self._database.first("begin_turn", *mine, *columns, turn, activity, *beginning)
        if begun is None:
            await self._check_begun(claim, held, turn)
        held.turn = turn
        held.note(changes)
        held.kept_bytes += len(beginning.prompt) + len(opening)
        if self.window is not None and held.kept_bytes > self.window.size:
            held.kept_bytes = await self._database.value("forget_large_events", held.n, self.window.size, turn)
        return self._claims.opened(claim, held, beginning, is_written=is_written)

    async def _check_begun(self, claim: Claim, held: Held, turn: int) -> None:
        """Raise why a turn was not begun, unless it was, and the answer was lost."""
        now = await self._database.first("is_held", held.node.id, claim.session, claim.epoch)
        if now is None:
            raise await self._claims.moved(claim)
        if now["turn"] != turn or not now["unsealed"]:
            raise StoreError("The last turn of this session is not sealed yet")

    async def seal(
        self, claim: Claim, new: NewEntries, changes: Changes, *, activity: bool, last: bytes | None
    ) -> None:
        """Put what was said in a turn behind the history; see `Store.seal`."""
        held = await self._claims.check(claim)
        columns = await self._scopes.change_columns(held, changes)
        segments = NewSegments(held.end, new.lines, held.principal)
        if segments.end.tail != held.end.tail:
            await histories.merge_tail(self._database, claim, held)
        last = None if self.window is None else last
        statement = _seal_statement(claim, held, columns, new, segments, activity=activity, last=last)
        done = await self._database.first(*statement)
        if done is None and held.log is not None and await begin_again(self._database, held.log):
            done = await self._database.first(*statement)
        if done is None:
            now = await self._database.first("is_held", held.node.id, claim.session, claim.epoch)
            if now is None or now["unsealed"] or now["lines"] != segments.end.lines:
                raise await self._claims.moved(claim)  # otherwise it was sealed, and the answer was lost
        self._sealed(held, segments, last)
        held.note(changes)

    def _sealed(self, held: Held, segments: NewSegments, last: bytes | None) -> None:
        """Take note that a turn was sealed."""
        held.end = segments.end
        if last is None:
            held.oldest_log = held.turn + 1
        if (log := held.log) is not None:
            held.kept_bytes += log.size + len(last or b"")
            if last is None and log.unwritten is None:
                self._log_vacuum.removed(log.seq + 1, log.size)
        held.is_running, held.log = False, None

    async def forget_events(self) -> None:
        """Remove logs that are past the window; see `Store.forget_events`."""
        if self.window is not None:
            rows, size = await self._database.first("forget_old_events", self.window.seconds)
            self._log_vacuum.removed(rows, size)

    async def close(self) -> None:
        """Let what goes on in the background come to its end."""
        await self._log_vacuum.close()


def _seal_statement(
    claim: Claim,
    held: Held,
    columns: tuple[Any, ...],
    new: NewEntries,
    segments: NewSegments,
    *,
    activity: bool,
    last: bytes | None,
) -> tuple[Any, ...]:
    """Return the name and the arguments of the query that seals a turn: the one that has the least to do."""
    mine, log = (held.node.id, held.n, claim.epoch), held.log
    sealed = held.end.lines, new.messages, *segments.end, activity
    kept = *_last_rows(held, last), held.oldest_log, last is not None
    is_plain = not new.private and columns[0] and columns[1:] == UNCHANGED[1:]
    if not is_plain or log is None or (only := segments.only) is None:
        return "seal_turn", *mine, *columns, *sealed, *segments.columns, [*new.private], *kept, held.turn
    if log.unwritten is not None and last is None and held.oldest_log == held.turn:
        return "seal_unwritten_turn", *mine, columns[0], *sealed, *only
    return "seal_plain_turn", *mine, columns[0], *sealed, *only, *kept


def _last_rows(held: Held, last: bytes | None) -> tuple[list[int | None], list[bytes]]:
    """Return the rows that a log ends with where it stays readable: their numbers, None for the next one, and lines."""
    log = held.log
    if last is None or (not last and (log is None or log.unwritten is None)):
        return [], []
    if log is not None and log.unwritten is None:
        return [log.seq + 1], [last]
    if log is None and held.has_rows:
        return [None], [last]  # those of a process that died
    prompt, opening = (b"", b"") if log is None or log.unwritten is None else log.unwritten
    return [0, 1], [prompt, opening + last]
