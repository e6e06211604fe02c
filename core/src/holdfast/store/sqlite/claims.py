"""Who may write a session (P4): claims given, checked and let go, and what becomes of turns whose writer died.

All methods run inside a transaction, so that of several processes only one looks at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import SessionBusy, SessionElsewhere, SessionMoved
from holdfast.store.port import Claim, Claimed, Owner, Snapshot, UnsealedTurn
from holdfast.store.sqlite.rows import ClaimedRow, ReleasedRow, SessionRow, find_session

if TYPE_CHECKING:
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.processes import Processes
    from holdfast.store.sqlite.threads import Transaction
    from holdfast.store.sqlite.turn_file import TurnFile
    from holdfast.store.sqlite.turn_logs import TurnLogs


class Claims:
    """The claims to the sessions of one store, as this process sees them."""

    def __init__(self, processes: Processes, logs: TurnLogs) -> None:
        self._processes = processes
        self._logs = logs

    def claim(self, transaction: Transaction, session: str, *, take_over: bool) -> Claimed:
        """Become the one writer of a session; see `holdfast.store.port.Store.claim`."""
        db = transaction.db
        found = find_session(db, session)
        if not take_over and found.owner is not None and self._runs_elsewhere(found.owner):
            owner = self._processes.describe(found.owner)
            raise SessionElsewhere(owner, self._processes.address_of(found.owner), found.epoch)
        row, log = self.take_log(transaction, found)
        record = row.record()
        broken = None if row.accepted is None else UnsealedTurn(self._lines(row, row.accepted, log))
        claim = Claim(session, db.value("take_session", n=row.n, owner=self._processes.me))
        if row.accepted is not None:
            self._logs.keep(transaction, Claim(session, row.epoch), claim, log)
        if row.owner not in (None, self._processes.me):
            self._processes.forget_dead()
        return Claimed(claim, msgspec.structs.replace(record, epoch=claim.epoch), broken)

    def release(self, transaction: Transaction, claim: Claim) -> None:
        """Stop being the writer of a session; see `holdfast.store.port.Store.release`."""
        self.note_turn(transaction, claim)
        self._logs.release(claim)
        row = transaction.db.first(ReleasedRow, "release_session", id=claim.session, epoch=claim.epoch)
        if row is not None and not row.is_unsealed:
            self._logs.remove_sealed(row.n)  # before the commit: after it the log may be that of another process

    def check(self, db: Database, claim: Claim) -> ClaimedRow:
        """Find a session that a claim holds; raise `SessionMoved` where another process has taken it over."""
        row = db.first(ClaimedRow, "get_claimed", id=claim.session, epoch=claim.epoch)
        if row is None:
            raise self.moved(db, claim)
        return row

    def moved(self, db: Database, claim: Claim) -> SessionMoved:
        """Make the error that says who has a session now; raise `SessionNotFound` if it was deleted."""
        owner = find_session(db, claim.session).owner
        where = self._processes.describe(owner) if owner else "another process"
        return SessionMoved(f"This session was taken over by {where}; try again")

    def take_log(self, transaction: Transaction, row: SessionRow) -> tuple[SessionRow, TurnFile | None]:
        """Take the log of a session's unsealed turn, if it has one; return the session as it is then, and the log.

        A log that has nothing unsealed is removed: its writer cannot begin a turn in it any more (P4). Raise
        `SessionBusy` where a turn runs.
        """
        last = Claim(row.id, row.epoch)
        if self._logs.is_running(last) or (row.accepted is not None and self._runs_elsewhere(row.owner)):
            raise SessionBusy(f"A turn of this session is running in {self._processes.describe(row.owner or '')}")
        try:
            if row.accepted is not None:
                return row, self._logs.take(transaction, last, row.n, row.turn)
            log = self._logs.take_begun(transaction, last, row.n, row.turn)
        except BlockingIOError:
            where = "another process" if row.owner is None else self._processes.describe(row.owner)
            raise SessionBusy(f"A turn of this session is running in {where}") from None
        if log is not None:
            _note_turn(transaction, last, log)
            row = find_session(transaction.db, row.id)
        return row, log

    def note_turn(self, transaction: Transaction, claim: Claim) -> None:
        """Store what a turn began with that is in its log alone, so that lists and readers know of it."""
        log = self._logs.unsealed(claim)
        if log is not None:
            _note_turn(transaction, claim, log)

    def snapshot(self, transaction: Transaction, session: str) -> Snapshot:
        """Return a session and what its unsealed turn has said so far."""
        row = find_session(transaction.db, session)
        unsealed = None
        if row.accepted is not None:
            unsealed = UnsealedTurn(self._lines(row, row.accepted, None), self._running_in(row))
        elif (begun := self._logs.read(row.n, row.turn + 1).beginning) is not None:
            row = msgspec.structs.replace(row, turn=row.turn + 1)
            unsealed = UnsealedTurn(self._lines(row, begun.accepted, None), self._running_in(row))
        return Snapshot(row.record(), unsealed)

    def begun_in_log(self, row: SessionRow) -> bool:
        """Return whether a turn of a session has begun of which its log alone knows."""
        return row.accepted is None and self._logs.read(row.n, row.turn + 1).beginning is not None

    def owners(self, db: Database) -> dict[str, Owner]:
        """Return which sessions living processes have open; see `holdfast.store.port.Library.owners`."""
        owned: list[tuple[str, str]] = list(db.rows("owners"))
        alive = {process for process in {process for _, process in owned} if self._processes.is_alive(process)}
        known = {
            process: Owner(self._processes.describe(process), self._processes.address_of(process)) for process in alive
        }
        return {session: known[process] for session, process in owned if process in alive}

    def has_writer(self, n: int, owner: str | None) -> bool:
        """Return whether the owner of a session is alive, or whoever has something unsealed in its log."""
        return (owner is not None and self._processes.is_alive(owner)) or self._logs.is_locked(n)

    def is_log_unused(self, db: Database, n: int) -> bool:
        """Return whether nobody writes the log of a session, and nothing in it is unsealed."""
        row = db.first(SessionRow, "get_session_by_number", n=n)
        return row is None or not (row.accepted is not None or self.begun_in_log(row) or self.has_writer(n, row.owner))

    def _running_in(self, row: SessionRow) -> str | None:
        if not self.has_writer(row.n, row.owner):
            return None
        return self._processes.describe(row.owner or "")

    def _runs_elsewhere(self, owner: str | None) -> bool:
        return owner not in (None, self._processes.me) and self._processes.is_alive(owner)

    def _lines(self, row: SessionRow, accepted: bytes, log: TurnFile | None) -> list[bytes]:
        return (accepted.split(b"\n") if accepted else []) + self._logs.lines(log, row.n, row.turn)


def _note_turn(transaction: Transaction, claim: Claim, log: TurnFile) -> None:
    if log.beginning is None:
        return
    began_at, accepted = log.beginning
    transaction.db.run(
        "note_turn", id=claim.session, epoch=claim.epoch, turn=log.turn, accepted=accepted, began_at=began_at
    )
    transaction.after_commit(log.is_noted)
