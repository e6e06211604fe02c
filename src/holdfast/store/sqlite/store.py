"""`SqliteStore`: the port's methods, each a piece of work for one of two threads: one writes, one reads."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from holdfast.errors import InvalidParams, SessionBusy, SessionMoved, SessionNotFound, StoreError
from holdfast.model import Page
from holdfast.store.port import Broken, Changes, Claim, Claimed
from holdfast.store.sqlite import cursors, search, segments
from holdfast.store.sqlite.owners import Owners
from holdfast.store.sqlite.rows import read_info, read_session
from holdfast.store.sqlite.turns import NoFile, TurnFile, read_log
from holdfast.store.sqlite.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from holdfast.model import ArchiveFilter, Line, SessionInfo, SessionState
    from holdfast.store.port import Hit, Record
    from holdfast.store.sqlite.database import Database

FIRST_READ_BYTES, READ_BYTES = 32 << 10, 512 << 10
"""How much of a history is read at a time: a little, so that something can be shown soon, then much."""


class SqliteStore:
    """See `holdfast.store.port.Store`. Make one with `open`."""

    def __init__(self, path: str, *, vfs: str | None = None) -> None:
        self._in_memory = path == ":memory:"
        self._path = Path(path)
        if not self._in_memory:
            _make_private(self._path)
        self._turns = self._path.with_name(f"{self._path.name}.turns")
        self._owners = Owners(None if self._in_memory else self._path.with_name(f"{self._path.name}.owners"))
        self._logs: dict[Claim, TurnFile | NoFile] = {}
        self._writer = Worker(path, vfs)
        # What is in memory is in one connection's memory.
        self._reader = self._writer if self._in_memory else Worker(path, vfs)
        self._key = b""

    @classmethod
    async def open(cls, path: str, *, vfs: str | None = None) -> SqliteStore:
        """Open a store, or make one where there is none; only the user may read it."""
        try:
            store = cls(path, vfs=vfs)
        except OSError as e:
            raise StoreError(f"The session store {path} cannot be opened ({e.strerror})") from e
        await store._writer.run(store._prepare)
        return store

    def _prepare(self, db: Database) -> None:
        found = db.row("get_setting", name="cursor key")
        if found is None:
            with db.transaction():
                db.run("add_setting", name="cursor key", value=secrets.token_bytes(32))
            found = db.row("get_setting", name="cursor key")
        assert found
        self._key = found[0]

    # Sessions

    async def create(self, info: SessionInfo, state: SessionState) -> Claim:
        def work(db: Database) -> Claim:
            with db.transaction():
                return self._add(db, info, state)[1]

        return await self._writer.run(work)

    async def get(self, session: str) -> Record:
        return await self._reader.run(lambda db: read_session(_row(db, session)))

    async def list(self, *, cwd: str | None, archived: ArchiveFilter, cursor: str | None, limit: int) -> Page:
        after = cursors.verify(cursor, self._key, cwd, archived)[:2] if cursor is not None else cursors.START
        names = {"exclude": ("recent",), "only": ("archived",), "include": ("recent", "archived")}[archived]

        def work(db: Database) -> Page:
            bindings: dict[str, Any] = {"updated_at": after[0], "n": after[1], "limit": limit + 1}
            if cwd is not None:
                bindings["cwd"] = cwd
            rows: list[Any] = []
            for name in names:
                rows += db.rows(f"list_{name}" if cwd is None else f"list_{name}_in", **bindings)
            rows.sort(key=lambda row: (row[6], row[0]), reverse=True)
            found = tuple(read_info(row) for row in rows[:limit])
            if len(rows) <= limit:
                return Page(found, None)
            last = rows[limit - 1]
            return Page(found, cursors.sign(cursors.Place(last[6], last[0], cwd, archived), self._key))

        return await self._reader.run(work)

    async def save(self, claim: Claim, changes: Changes) -> None:
        state = _encoded(changes)

        def work(db: Database) -> None:
            with db.transaction():
                self._change(db, self._checked(db, db.row("check_claim", **claim_of(claim)), claim), changes, state)

        await self._writer.run(work)

    async def fork(
        self, claim: Claim, info: SessionInfo, state: SessionState, *, up_to: str | None, lines: Sequence[Line]
    ) -> Claim:
        def work(db: Database) -> Claim:
            with db.transaction():
                source = self._checked(db, db.row("check_claim", **claim_of(claim)), claim)
                n, forked = self._add(db, info, state)
                if not segments.copy_history(db, source, n, up_to):
                    raise InvalidParams(f"The session has no message or tool call {up_to!r}")
                if up_to is not None:
                    db.run("set_messages", n=n, messages=segments.count_messages(db, n))
                segments.extend_history(db, n, lines)
                return forked

        return await self._writer.run(work)

    async def delete(self, session: str) -> None:
        def work(db: Database) -> None:
            with db.transaction():
                row = db.row("get_session", id=session)
                if row is not None:
                    self._refuse_if_running(row)
                    self._delete(db, row[0])
            if row is not None and not self._in_memory:
                self._log_path(row).unlink(missing_ok=True)

        await self._writer.run(work)

    async def prune(self, before: int) -> int:
        def work(db: Database) -> int:
            deleted = 0
            for (session,) in list(db.rows("old_sessions", before=before)):
                with db.transaction():
                    row = db.row("get_session", id=session)
                    if row and row[6] < before and not (row[11] and self._owners.is_alive(row[11])):
                        self._delete(db, row[0])
                        deleted += 1
            return deleted

        return await self._writer.run(work)

    # Ownership

    async def claim(self, session: str) -> Claimed:
        def work(db: Database) -> Claimed:
            with db.transaction():
                row = _row(db, session)
                self._refuse_if_running(row)
                taken = db.row("take_session", n=row[0], owner=self._owners.me)
                assert taken
            broken = None if row[13] is None else Broken([*row[13].split(b"\n"), *read_log(self._log_path(row))])
            return Claimed(Claim(session, taken[0]), read_session(row), broken)

        return await self._writer.run(work)

    async def release(self, claim: Claim) -> None:
        self._close_log(claim)

        def work(db: Database) -> None:
            with db.transaction():
                db.run("release_session", **claim_of(claim))

        await self._writer.run(work)

    def _refuse_if_running(self, row: tuple[Any, ...]) -> None:
        owner = row[11]
        if row[13] is None or owner is None:
            return
        mine = owner == self._owners.me and Claim(row[1], row[10]) in self._logs
        if mine or (owner != self._owners.me and self._owners.is_alive(owner)):
            raise SessionBusy(f"A turn of this session is running in {self._owners.describe(owner)}")

    # Turns

    async def begin(self, claim: Claim, lines: Sequence[bytes], changes: Changes) -> TurnFile | NoFile:
        state = _encoded(changes)

        def work(db: Database) -> TurnFile | NoFile:
            try:
                with db.transaction():
                    row = db.row("begin_turn", **claim_of(claim), prompt=b"\n".join(lines), now=_now())
                    n = self._checked(db, row, claim)
                    self._change(db, n, changes, state)
                    assert row
                    log = self._logs[claim] = self._open_log(n, row[1])
            except BaseException:
                self._close_log(claim)
                raise
            return log

        return await self._writer.run(work)

    async def seal(self, claim: Claim, lines: Sequence[Line], changes: Changes, *, messages: int) -> None:
        state = _encoded(changes)

        def work(db: Database) -> None:
            with db.transaction():
                row = db.row("end_turn", **claim_of(claim), messages=messages, now=_now())
                n = self._checked(db, row, claim)
                segments.extend_history(db, n, lines)
                self._change(db, n, changes, state)
            assert row
            self._forget_log(claim, n, row[1])

        await self._writer.run(work)

    def _open_log(self, n: int, turn: int) -> TurnFile | NoFile:
        if self._in_memory:
            return NoFile()
        path = self._turns / f"{n}-{turn}.jsonl"
        try:
            self._turns.mkdir(mode=0o700, exist_ok=True)
            path.unlink(missing_ok=True)
            return TurnFile(path)
        except OSError as e:
            raise StoreError(f"The log of the turn cannot be written ({e.strerror})") from e

    def _close_log(self, claim: Claim) -> None:
        log = self._logs.pop(claim, None)
        if log is not None:
            log.close()

    def _forget_log(self, claim: Claim, n: int, turn: int) -> None:
        self._close_log(claim)
        if not self._in_memory:
            (self._turns / f"{n}-{turn}.jsonl").unlink(missing_ok=True)

    def _log_path(self, row: tuple[Any, ...]) -> Path:
        return self._turns / f"{row[0]}-{row[12]}.jsonl"

    # Reading

    async def read(self, session: str, lines: int) -> AsyncIterator[list[bytes]]:
        n = (await self._reader.run(lambda db: _row(db, session)))[0]
        after, size = -1, FIRST_READ_BYTES
        while lines > 0:

            def work(db: Database, at: tuple[int, int, int] = (after, lines, size)) -> tuple[int, int, list[bytes]]:
                return segments.read_some(db, n, *at)

            after, lines, bodies = await self._reader.run(work)
            if not bodies:
                return
            yield bodies
            size = READ_BYTES

    async def search(self, words: str, *, cwd: str | None, limit: int) -> list[Hit]:
        return await self._reader.run(lambda db: search.find(db, words, cwd, limit))

    async def vacuum(self) -> None:
        await self._writer.run(lambda db: db.vacuum())

    async def close(self) -> None:
        for log in self._logs.values():
            log.close()
        self._logs.clear()
        if self._reader is not self._writer:
            await self._reader.close()
        await self._writer.close()
        self._owners.close()

    # Inside a transaction

    def _add(self, db: Database, info: SessionInfo, state: SessionState) -> tuple[int, Claim]:
        row = db.row(
            "add_session",
            id=info.id,
            cwd=info.cwd,
            additional=msgspec.json.encode(info.additional).decode(),
            title=None,
            created_at=info.created_at,
            updated_at=info.updated_at,
            listed=info.messages > 0,
            archived=info.archived,
            messages=info.messages,
            state=msgspec.json.encode(state),
            owner=self._owners.me,
        )
        assert row
        if info.title:
            self._set_title(db, row[0], info.title)
        return row[0], Claim(info.id, row[1])

    def _change(self, db: Database, n: int, changes: Changes, state: bytes | None) -> None:
        if state is not None:
            db.run("set_state", n=n, state=state)
        if changes.title is not UNSET:
            self._set_title(db, n, changes.title)
        if changes.archived is not UNSET:
            db.run("set_archived", n=n, archived=changes.archived)
        if changes.additional is not UNSET:
            db.run("set_additional", n=n, additional=msgspec.json.encode(changes.additional).decode())

    def _set_title(self, db: Database, n: int, title: str | None) -> None:
        row = db.row("get_title_doc", n=n)
        if row and row[0] is not None:
            segments.delete_words(db, row[0])
        doc = segments.add_words(db, title, session=n) if title else None
        db.run("set_title", n=n, title=title, doc=doc)

    def _delete(self, db: Database, n: int) -> None:
        self._set_title(db, n, None)
        segments.delete_history(db, n)
        db.run("delete_session", n=n)

    def _checked(self, db: Database, row: tuple[Any, ...] | None, claim: Claim) -> int:
        """Make sure that the claim held; find out why where it did not (P4)."""
        if row is not None:
            return row[0]
        current = _row(db, claim.session)
        where = self._owners.describe(current[11]) if current[11] else "another process"
        raise SessionMoved(f"This session was taken over by {where}; load it again to go on with it here")


def _encoded(changes: Changes) -> bytes | None:
    """Encode a state before a thread has it: its owner may go on changing it."""
    return None if changes.state is UNSET else msgspec.json.encode(changes.state)


def claim_of(claim: Claim) -> dict[str, Any]:
    """Give the bindings that check a claim."""
    return {"id": claim.session, "epoch": claim.epoch}


def _row(db: Database, session: str) -> tuple[Any, ...]:
    row = db.row("get_session", id=session)
    if row is None:
        raise SessionNotFound(session)
    return row


def _make_private(path: Path) -> None:
    """Make the directory and the file of a store so that only the user can read them."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600, exist_ok=True)


def _now() -> int:
    return time.time_ns() // 1_000
