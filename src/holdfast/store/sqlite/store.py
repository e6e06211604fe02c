"""`SqliteStore`: the port's methods, each a piece of work for one of two threads: one writes, one reads."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.errors import InvalidParams, SessionBusy, SessionMoved, StoreDamaged, StoreError
from holdfast.model import Page
from holdfast.store.port import Broken, Changes, Claim, Claimed, Seen, Unfinished
from holdfast.store.reports import Finding
from holdfast.store.sqlite import cursors, rows, search, segments
from holdfast.store.sqlite.files import explained, make_directory
from holdfast.store.sqlite.owners import Owners
from holdfast.store.sqlite.turns import TurnLogs
from holdfast.store.sqlite.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from holdfast.format import Line
    from holdfast.model import ArchiveFilter, SessionInfo, SessionState
    from holdfast.store.port import Hit, Record
    from holdfast.store.reports import Size, Stats
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.turns import NoFile, TurnFile

T = TypeVar("T")

FIRST_READ_BYTES, READ_BYTES = 32 << 10, 768 << 10
"""How much of a history is read at a time: a little, so that something can be shown soon, then much."""


BESIDE = ("turns", "owners")
"""What the directories beside the file are called, behind its name."""


class SqliteStore:
    """See `holdfast.store.port.Store`. Make one with `open`."""

    def __init__(self, path: str, *, vfs: str | None = None) -> None:
        self._in_memory = path == ":memory:"
        self._path = Path(path)
        turns, owners = (None if self._in_memory else self._path.with_name(f"{self._path.name}.{it}") for it in BESIDE)
        if turns is not None:
            _make_private(self._path, turns)
        self._logs = TurnLogs(turns)
        self._owners = Owners(owners)
        self._turns = turns
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
            raise explained(e, f"The session store {path} cannot be opened") from e
        try:
            await store._writer.run(store._prepare)
        except BaseException:
            await store.close()
            raise
        return store

    def _prepare(self, db: Database) -> None:
        found = db.row("get_setting", name="cursor key")
        if found is None:
            with db.transaction():
                db.run("add_setting", name="cursor key", value=secrets.token_bytes(32))
            found = db.only("get_setting", name="cursor key")
        self._key = found[0]

    # Sessions

    async def create(self, info: SessionInfo, state: SessionState) -> Claim:
        encoded = msgspec.json.encode(state)

        def work(db: Database) -> Claim:
            with db.transaction():
                return rows.add_session(db, info, encoded, self._owners.me)[1]

        return await self._writer.run(work)

    async def get(self, session: str) -> Record:
        return await self._reader.run(lambda db: rows.read_session(rows.find_session(db, session)))

    async def look(self, session: str) -> Seen:
        row = await self._reader.run(lambda db: rows.find_session(db, session))
        if row[13] is None:
            return Seen(rows.read_session(row), None)

        def work(db: Database) -> Seen:
            with db.transaction():  # its turn does not end meanwhile; and only one at a time may ask who is alive
                row = rows.find_session(db, session)
                record, broken, owner = rows.read_session(row), self._broken(row), row[11]
                where = self._owners.describe(owner) if owner is not None and self._owners.is_alive(owner) else None
            return Seen(record, None if broken is None else Unfinished(broken.lines, where))

        return await self._writer.run(work)

    async def find(self, prefix: str, *, limit: int) -> list[SessionInfo]:
        end = prefix + "\U0010ffff"
        return await self._reader.run(
            lambda db: [rows.read_info(it) for it in db.rows("find_sessions", first=prefix, end=end, limit=limit)]
        )

    async def list(self, *, cwd: str | None, archived: ArchiveFilter, cursor: str | None, limit: int) -> Page:
        after = cursors.verify(cursor, self._key, cwd, archived)[:2] if cursor is not None else cursors.START
        names = {"exclude": ("recent",), "only": ("archived",), "include": ("recent", "archived")}[archived]

        def work(db: Database) -> Page:
            bindings: dict[str, Any] = {"updated_at": after[0], "n": after[1], "limit": limit + 1}
            if cwd is not None:
                bindings["cwd"] = cwd
            found: list[Any] = []
            with db.snapshot():
                for name in names:
                    found += db.rows(f"list_{name}" if cwd is None else f"list_{name}_in", **bindings)
            found.sort(key=lambda row: (row[6], row[0]), reverse=True)
            page = tuple(rows.read_info(row) for row in found[:limit])
            if len(found) <= limit:
                return Page(page, None)
            last = found[limit - 1]
            return Page(page, cursors.sign(cursors.Place(last[6], last[0], cwd, archived), self._key))

        return await self._reader.run(work)

    async def save(self, claim: Claim, changes: Changes) -> None:
        state = rows.encoded(changes)

        def work(db: Database) -> None:
            with db.transaction():
                rows.change_session(db, self._checked(db, rows.check(db, claim), claim), changes, state)

        await self._writer.run(work)

    async def amend(
        self, session: str, *, title: str | UnsetType | None = UNSET, archived: bool | UnsetType = UNSET
    ) -> None:
        def work(db: Database) -> None:
            with db.transaction():
                row = rows.find_session(db, session)
                state = None
                if title is not UNSET:
                    state = msgspec.json.encode(msgspec.structs.replace(rows.read_session(row).state, title_by="user"))
                rows.change_session(db, row[0], Changes(title=title, archived=archived), state)

        await self._writer.run(work)

    async def add(self, info: SessionInfo, state: SessionState, lines: Sequence[Line]) -> None:
        encoded = msgspec.json.encode(state)

        def work(db: Database) -> None:
            with db.transaction():
                n, claim = rows.add_session(db, info, encoded, self._owners.me)
                segments.extend_history(db, n, lines)
                db.run("release_session", **rows.claim_of(claim))

        await self._writer.run(work)

    async def fork(
        self, claim: Claim, info: SessionInfo, state: SessionState, *, up_to: str | None, lines: Sequence[Line]
    ) -> Claim:
        encoded = msgspec.json.encode(state)

        def work(db: Database) -> Claim:
            with db.transaction():
                source = self._checked(db, rows.check(db, claim), claim)
                n, forked = rows.add_session(db, info, encoded, self._owners.me)
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
                    rows.delete_session(db, row[0])
            if row is not None:
                self._logs.forget(row[0], row[12])

        await self._writer.run(work)

    async def prune(self, before: int) -> int:
        def work(db: Database) -> int:
            deleted = 0
            for (session,) in list(db.rows("old_sessions", before=before)):
                with db.transaction():
                    row = db.row("get_session", id=session)
                    if row is None or row[6] >= before or (row[11] and self._owners.is_alive(row[11])):
                        continue
                    rows.delete_session(db, row[0])
                self._logs.forget(row[0], row[12])
                deleted += 1
            return deleted

        return await self._writer.run(work)

    # Ownership

    async def claim(self, session: str) -> Claimed:
        def work(db: Database) -> Claimed:
            with db.transaction():
                row = rows.find_session(db, session)
                self._refuse_if_running(row)
                taken = db.only("take_session", n=row[0], owner=self._owners.me)
                # Inside: whoever cannot read what the broken turn has said must not keep others from it.
                record, broken = rows.read_session(row), self._broken(row)
                if row[11] not in (None, self._owners.me):
                    self._owners.forget_dead()
            if broken is None:
                self._logs.forget(row[0], row[12])  # its process may have died just before it did so
            return Claimed(Claim(session, taken[0]), record._replace(epoch=taken[0]), broken)

        return await self._writer.run(work)

    async def release(self, claim: Claim) -> None:
        self._logs.close(claim)

        def work(db: Database) -> None:
            with db.transaction():
                db.run("release_session", **rows.claim_of(claim))

        await self._writer.run(work)

    def _broken(self, row: tuple[Any, ...]) -> Broken | None:
        n, turn, prompt = row[0], row[12], row[13]
        if prompt is None:
            return None
        accepted: list[bytes] = prompt.split(b"\n") if prompt else []
        return Broken(accepted + self._logs.read(n, turn))

    def _refuse_if_running(self, row: tuple[Any, ...]) -> None:
        owner = row[11]
        if row[13] is None or owner is None:
            return
        mine = owner == self._owners.me and Claim(row[1], row[10]) in self._logs
        if mine or (owner != self._owners.me and self._owners.is_alive(owner)):
            raise SessionBusy(f"A turn of this session is running in {self._owners.describe(owner)}")

    # Turns

    async def begin(self, claim: Claim, lines: Sequence[bytes], changes: Changes) -> TurnFile | NoFile:
        state = rows.encoded(changes)

        def work(db: Database) -> TurnFile | NoFile:
            try:
                with db.transaction():
                    row = db.row("begin_turn", **rows.claim_of(claim), prompt=b"\n".join(lines), now=_now())
                    n = self._checked(db, row, claim)
                    rows.change_session(db, n, changes, state)
                    assert row
                    log = self._logs.begin(claim, n, row[1])
            except BaseException:
                self._logs.close(claim)
                raise
            return log

        return await self._writer.run(work)

    async def seal(
        self, claim: Claim, lines: Sequence[Line], changes: Changes, *, messages: int, late: bool = False
    ) -> None:
        state = rows.encoded(changes)

        def work(db: Database) -> None:
            with db.transaction():
                row = db.row("end_turn", **rows.claim_of(claim), messages=messages, now=_now(), late=late)
                n = self._checked(db, row, claim)
                segments.extend_history(db, n, lines)
                rows.change_session(db, n, changes, state)
            assert row
            self._logs.close(claim)
            self._logs.forget(n, row[1])

        await self._writer.run(work)

    # Reading

    async def read(self, session: str, lines: int) -> AsyncIterator[list[bytes]]:
        n = (await self._reader.run(lambda db: rows.find_session(db, session)))[0]
        line, size = 0, FIRST_READ_BYTES
        while line < lines:
            some = partial(segments.read_some, n=n, line=line, end=lines, size=size)
            line, bodies = await self._reader.run(some)
            if not bodies:
                await self.get(session)  # it ends too early: it may have been deleted meanwhile
                return
            yield bodies
            size = READ_BYTES

    async def search(self, words: str, *, cwd: str | None, limit: int) -> list[Hit]:
        return await self._reader.run(lambda db: search.find(db, words, cwd, limit))

    # Upkeep

    async def vacuum(self) -> None:
        await self._long(self._writer, lambda db: db.vacuum())

    async def size(self) -> Size:
        return await self._reader.run(self._size)

    def _size(self, db: Database) -> Size:
        from holdfast.store.sqlite import upkeep  # noqa: PLC0415  (an agent never asks)

        return upkeep.size(db, self._path, self._turns)

    async def stats(self) -> Stats:
        from holdfast.store.sqlite import upkeep  # noqa: PLC0415

        return await self._long(self._reader, lambda db: upkeep.stats(db, self._size(db)))

    async def examine(self) -> AsyncIterator[Finding]:
        from holdfast.store.sqlite import health  # noqa: PLC0415

        premises = health.Premises(self._path, self._turns, self._owners)
        for check in health.CHECKS:
            try:
                yield await self._long(self._writer, lambda db, it=check: it(db, premises))
            except StoreError as e:
                yield Finding(check.__name__.removeprefix("check_"), "problem", str(e))

    async def repair(self, finding: Finding) -> str:
        from holdfast.store.sqlite import health  # noqa: PLC0415

        premises = health.Premises(self._path, self._turns, self._owners)
        return await self._long(self._writer, lambda db: health.repair(db, premises, finding.repair))

    async def _long(self, worker: Worker, work: Callable[[Database], T]) -> T:
        """Do something that takes long, for as long as somebody waits for it."""
        stop = threading.Event()

        def guarded(db: Database) -> T:
            with db.unless(stop):
                return work(db)

        try:
            return await worker.run(guarded)
        except asyncio.CancelledError:
            stop.set()
            raise

    async def close(self) -> None:
        self._logs.close_all()
        try:
            if self._reader is not self._writer:
                await self._reader.close()
            await self._writer.close()
        finally:
            self._owners.close()

    def _checked(self, db: Database, row: tuple[Any, ...] | None, claim: Claim) -> int:
        """Make sure that the claim held; find out why where it did not (P4)."""
        if row is not None:
            return row[0]
        current = rows.find_session(db, claim.session)
        where = self._owners.describe(current[11]) if current[11] else "another process"
        raise SessionMoved(f"This session was taken over by {where}; load it again to go on with it here")


def _make_private(path: Path, turns: Path) -> None:
    """Make the directory and the file of a store so that only the user can read them."""
    # Where there were turns there was something in the file. One byte is as good as none to SQLite.
    if turns.exists() and path.exists() and path.stat().st_size <= 1:
        raise StoreDamaged(
            f"The session store {path} has lost all its data. Restore a backup, or remove it to begin anew"
        )
    make_directory(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _now() -> int:
    return time.time_ns() // 1_000
