"""`SqliteStore`: the ports' methods, each a piece of work for one of two threads: one writes, one reads."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.errors import SessionBusy, StoreError
from holdfast.format.log_records import Beginning
from holdfast.model import encode_state
from holdfast.store.history_blocks import parts
from holdfast.store.port import Alias, Changes, Claim, Forked, PrivateEntry, SearchArea, Snapshot
from holdfast.store.reports import Finding
from holdfast.store.sqlite import histories, scopes, search, search_index, sessions
from holdfast.store.sqlite.claims import Claims
from holdfast.store.sqlite.files import StoreFiles, plain_error
from holdfast.store.sqlite.histories import EMPTY, HistoryEnd, HistoryReader
from holdfast.store.sqlite.listing import cursor_key, list_page
from holdfast.store.sqlite.processes import Processes
from holdfast.store.sqlite.rows import BegunRow, SessionRow, find_by_prefix, find_session
from holdfast.store.sqlite.short_turns import short_turn
from holdfast.store.sqlite.threads import DatabaseThread
from holdfast.store.sqlite.turn_logs import TurnLogs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import Literal

    from holdfast.format import Line
    from holdfast.model import ArchiveFilter, Page, Scope, SessionInfo, SessionState
    from holdfast.store.port import Claimed, EventWindow, Hit, KeptLog, Owner, Record, Shared
    from holdfast.store.reports import Size, Stats
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.doctor import ExaminedStore
    from holdfast.store.sqlite.threads import Transaction
    from holdfast.store.sqlite.turn_file import MemoryLog, TurnFile

T = TypeVar("T")

MEMORY = ":memory:"

NOTHING = Changes()

INDEX_SECONDS, INDEX_TURNS, INDEX_TEXT = 2.0, 256, 1 << 20
"""What was sealed is indexed after so long, or when it is so many turns or characters; a search waits for none."""

NOTE_SECONDS = 0.5
"""A turn that began in its log alone, and lasts so long, is noted in the database: other processes list it then."""

UNUSED_SECONDS = 15.0
"""A log in which no turn has begun for so long, or for twice that, is closed: each takes one of the open files that the
process may have. The next turn of its session opens it again."""


class SqliteStore:
    """See `holdfast.store.port.SessionStore`. Make one with `open`."""

    def __init__(self, path: str, *, vfs: str | None = None) -> None:
        self._files = None if path == MEMORY else StoreFiles(path)
        if self._files is not None:
            self._files.prepare()
            path = str(self._files.database)
        self._logs = TurnLogs(self._files and self._files.turns)
        self._processes = Processes(self._files and self._files.processes, self._files and self._files.sockets)
        self._claims = Claims(self._processes, self._logs)
        self._writer = DatabaseThread(path, vfs, "writer", self._files and self._files.count)
        # What is in memory is in one connection's memory.
        self._reader = self._writer if self._files is None else DatabaseThread(path, vfs, "reader")
        self._key = b""
        self._noting: asyncio.TimerHandle | None = None  # set while a turn may have to be noted
        self._closing: asyncio.TimerHandle | None = None  # set while logs are open that nothing may be in
        self._indexing: asyncio.TimerHandle | None = None  # set while something is to be indexed…
        self._unindexed = self._unindexed_text = 0  # …and how many turns and characters that are

    @classmethod
    async def open(cls, path: str, *, vfs: str | None = None) -> SqliteStore:
        """Open a store, or make one where there is none; only the user may read it."""
        try:
            store = cls(path, vfs=vfs)
        except OSError as e:
            raise plain_error(e, f"The session store {path} cannot be opened") from e
        try:
            store._key = await store._writer.run(cursor_key)
            if store._files is not None:
                store._files.make_private()  # when it is known to be ours
        except BaseException:
            await store.close()
            raise
        return store

    # Sessions

    async def create(self, info: SessionInfo, state: SessionState) -> Claim:
        encoded = encode_state(state)

        def work(transaction: Transaction) -> Claim:
            return sessions.add_session(transaction.db, info, encoded, self._processes.me)[1]

        return await self._writer.write(info.id, work)

    async def get(self, session: str) -> Record:
        await self._noted()
        return await self._reader.run(lambda db: find_session(db, session).record())

    async def snapshot(self, session: str) -> Snapshot:
        await self._noted()
        row, is_begun = await self._reader.run(lambda db: self._look(db, session))
        if row.accepted is None and not is_begun:
            return Snapshot(row.record(), None)
        # Inside a transaction: its turn is not sealed meanwhile, and only one at a time may ask who is alive.
        return await self._writer.write(session, lambda transaction: self._claims.snapshot(transaction, session))

    def _look(self, db: Database, session: str) -> tuple[SessionRow, bool]:
        row = find_session(db, session)
        return row, self._claims.begun_in_log(row)

    async def find(self, prefix: str, *, limit: int, after: str = "") -> list[SessionInfo]:
        return await self._reader.run(lambda db: find_by_prefix(db, prefix, limit, after))

    async def list(
        self, scope: Scope, *, cwd: str | None, archived: ArchiveFilter, cursor: str | None, limit: int
    ) -> Page:
        await self._noted()
        return await self._reader.run(lambda db: list_page(db, self._key, scope, cwd, archived, cursor, limit))

    async def owners(self) -> dict[str, Owner]:
        return await self._writer.write("", lambda transaction: self._claims.owners(transaction.db))

    async def scopes(self) -> list[Scope]:
        return await self._reader.run(scopes.used_scopes)

    async def agents(self, principal: str) -> list[str]:
        return await self._reader.run(lambda db: scopes.agents_of(db, principal))

    async def save(self, claim: Claim, changes: Changes) -> None:
        state = sessions.encoded_state(changes)

        def work(transaction: Transaction) -> None:
            row = self._claims.check(transaction.db, claim)
            if state is not None:
                transaction.db.run("set_state", n=row.n, state=state)
            sessions.change_session(transaction.db, row, changes)

        await self._writer.write(claim.session, work)

    async def edit(
        self, session: str, *, title: str | UnsetType | None = UNSET, archived: bool | UnsetType = UNSET
    ) -> None:
        def work(transaction: Transaction) -> None:
            db = transaction.db
            row = find_session(db, session)
            if title is not UNSET:
                state = msgspec.structs.replace(row.read_state(), title_by="user")
                db.run("set_state", n=row.n, state=encode_state(state))
            sessions.change_session(db, row, Changes(title=title, archived=archived))

        await self._writer.write(session, work)

    async def hand_over(self, session: str, agent: str) -> None:
        def work(transaction: Transaction) -> None:
            row, _ = self._claims.take_log(transaction, find_session(transaction.db, session))
            if row.accepted is not None:
                raise SessionBusy("The last turn of this session broke; open the session once, then hand it over")
            if row.agent != agent:
                sessions.hand_over(transaction.db, row, agent)
                self._logs.remove(row.n)  # a stream that went on would lack what the history says of it

        await self._writer.write(session, work)

    async def add(
        self,
        info: SessionInfo,
        state: SessionState,
        lines: Sequence[Line],
        *,
        private: Sequence[PrivateEntry] = (),
        shared: Shared | None = None,
    ) -> None:
        encoded = encode_state(state)

        def work(transaction: Transaction) -> None:
            db = transaction.db
            n, _ = sessions.add_session(db, info, encoded, None)
            end = EMPTY
            if shared is not None:
                end = histories.share_beginning(db, find_session(db, shared.session).n, n, shared.lines)
            sessions.set_end(db, n, histories.extend_history(db, n, end, lines[end.lines :]))
            for entry in private:
                sessions.add_private(db, n, entry.start, entry.position, [entry.data])
            search_index.index_new_texts(db)

        await self._writer.write(info.id, work)

    async def private_entries(self, session: str) -> list[PrivateEntry]:
        return await self._reader.run(lambda db: sessions.private_entries(db, find_session(db, session).n))

    async def aliases(self) -> list[Alias]:
        return await self._reader.run(lambda db: [Alias(*row) for row in db.rows("every_alias")])

    async def set_alias(self, scope: Scope, name: str, session: str | None) -> None:
        await self._writer.write(
            session or name, lambda transaction: scopes.set_alias(transaction.db, scope, name, session)
        )

    async def find_aliases(self, scope: Scope, names: Sequence[str]) -> dict[str, str | None]:
        return await self._reader.run(lambda db: scopes.find_aliases(db, scope, names))

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
        encoded = encode_state(state)

        def work(transaction: Transaction) -> Forked:
            db = transaction.db
            source = self._claims.check(db, claim)
            n, forked = sessions.add_session(db, info, encoded, self._processes.me)
            source_end = HistoryEnd(source.lines, source.tail, source.tail_bytes)
            end, shared = histories.copy_history(db, claim.session, source_end, source.n, n, up_to)
            is_earlier = shared < source.lines
            end = histories.extend_history(db, n, end, [*lines, *(earlier if is_earlier else ())])
            sessions.set_end(db, n, end)
            if up_to is not None:
                db.run("set_messages", n=n, messages=histories.count_messages(db, n))
            if source.scope == scopes.scope_number(db, info.principal, info.agent):
                sessions.copy_private(db, source.n, n, shared)
            cuts_turn = bool(lines) or sessions.cuts_private(db, source.n, shared)
            return Forked(forked, end.lines, cuts_turn, is_earlier)

        return await self._writer.write(claim.session, work)

    async def delete(self, session: str) -> None:
        def work(transaction: Transaction) -> None:
            row = transaction.db.first(SessionRow, "get_session", id=session)
            if row is not None:
                self._delete(transaction, row)

        await self._writer.write(session, work)

    async def prune(self, before: int) -> int:
        old = await self._reader.run(lambda db: [session for (session,) in db.rows("old_sessions", before=before)])
        deleted = 0
        for session in old:
            deleted += await self._writer.write(session, partial(self._prune, session, before))
        return deleted

    def _prune(self, session: str, before: int, transaction: Transaction) -> bool:
        row = transaction.db.first(SessionRow, "get_session", id=session)
        if row is None or row.updated_at >= before or self._claims.has_writer(row.n, row.owner):
            return False
        self._delete(transaction, row)
        return True

    def _delete(self, transaction: Transaction, row: SessionRow) -> None:
        row, log = self._claims.take_log(transaction, row)
        sessions.delete_session(transaction.db, row)
        transaction.after_commit(lambda: self._logs.forget(Claim(row.id, row.epoch), row.n, row.turn))
        if log is not None:
            transaction.after_commit(log.close)

    # Ownership

    @property
    def address(self) -> str | None:
        return self._processes.address_of(self._processes.me)

    def when_fenced(self, call: Callable[[], None]) -> None: ...

    def introduce(self, name: str) -> None:
        self._processes.introduce(name)

    async def claim(self, session: str, *, take_over: bool = True) -> Claimed:
        return await self._writer.write(session, lambda to: self._claims.claim(to, session, take_over=take_over))

    async def release(self, claim: Claim) -> None:
        await self._writer.write(claim.session, lambda transaction: self._claims.release(transaction, claim))

    # Turns

    async def begin(
        self, claim: Claim, lines: Sequence[bytes], changes: Changes, *, activity: bool = True, durable: bool = True,
        opening: bytes = b"",
    ) -> TurnFile | MemoryLog:  # fmt: skip
        accepted, state, now = b"\n".join(lines), sessions.encoded_state(changes), _now()

        def work(transaction: Transaction) -> TurnFile | MemoryLog:
            db = transaction.db
            row = db.first(
                BegunRow,
                "begin_turn",
                id=claim.session,
                epoch=claim.epoch,
                accepted=accepted,
                state=state,
                activity=activity,
                now=now,
            )
            if row is None:
                self._claims.check(db, claim)
                raise StoreError("The last turn of this session is not sealed yet")
            sessions.change_session(db, row, changes)
            return self._logs.begin(transaction, claim, row.n, row.turn, accepted, opening)

        def alone(*, durable: bool = True) -> TurnFile | None:
            return self._logs.begin_alone(claim, Beginning(now, accepted), opening, durable=durable)

        if not accepted or not activity or changes != NOTHING:
            return await self._writer.write(claim.session, work)
        log = None if durable else alone(durable=False)
        log = log or await self._writer.write(claim.session, work, alone)
        if self._noting is None:
            self._noting = asyncio.get_running_loop().call_later(NOTE_SECONDS, self._note_turns)
        return log

    async def _noted(self) -> None:
        """Note all turns that run here, so that what is read next knows of them."""
        for claim in self._logs.unnoted():
            with suppress(StoreError):  # on a full disk all can be read
                await self._writer.write(claim.session, partial(self._claims.note_turn, claim=claim))

    def _note_turns(self) -> None:
        """Store what turns began with that have lasted for a while, and that only their logs know of."""
        self._noting = None
        for claim in self._logs.unnoted():
            noting = self._writer.write(claim.session, partial(self._claims.note_turn, claim=claim))
            noting.add_done_callback(_ignore)

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
        state = sessions.encoded_state(changes)
        short = None
        if not private and changes == Changes(state=changes.state):
            short = short_turn(self._logs, claim, lines, state, messages, last, activity=activity, now=_now())

        def work(transaction: Transaction) -> None:
            db = transaction.db
            if short is not None and short.seal(db):
                transaction.after_commit(lambda: self._logs.put_away(claim))
                return
            row = self._claims.check(db, claim)
            end = histories.extend_history(db, row.n, HistoryEnd(row.lines, row.tail, row.tail_bytes), lines)
            sessions.add_private(db, row.n, row.lines, end.lines, private)
            turn, began_at = self._logs.number(claim, row.turn)
            db.run(
                "seal_turn", n=row.n, turn=turn, began_at=began_at, state=state, messages=messages, activity=activity,
                now=_now(), lines=end.lines, tail=end.tail, tail_bytes=end.tail_bytes,
            )  # fmt: skip
            sessions.change_session(db, row, changes)
            self._logs.seal(transaction, claim, row.n, row.turn, last if short is None else b"")

        await self._writer.write(claim.session, work)
        self._index_soon(lines)
        if self._closing is None:
            self._close_unused_later()

    def _close_unused_later(self) -> None:
        self._closing = asyncio.get_running_loop().call_later(UNUSED_SECONDS, self._close_unused)

    def _close_unused(self) -> None:
        """Close the logs that have not been used for a while, and look again as long as others are open."""
        self._closing = None
        if self._logs.has_idle:
            self._writer.run(lambda _: self._logs.close_unused()).add_done_callback(_ignore)
            self._close_unused_later()

    # Search

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
        await self._index_now()
        return await self._reader.run(lambda db: search.find(db, text, SearchArea(scope, cwd, archived, since), limit))

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
        await self._index_now()
        return await self._reader.run(lambda db: search.count(db, text, SearchArea(scope, cwd, archived, since), most))

    async def _index_now(self) -> None:
        """Index what is not yet."""
        if await self._reader.run(search_index.has_new_texts):
            with suppress(StoreError):  # on a full disk all can be found
                await self._writer.run(search_index.index_now)

    def _index_soon(self, lines: Sequence[Line]) -> None:
        """Let what was sealed be indexed when there is enough of it, or after a while."""
        self._unindexed += 1
        self._unindexed_text += sum([len(line.text) for line in lines])
        if self._indexing is None:
            self._indexing = asyncio.get_running_loop().call_later(INDEX_SECONDS, self._index)
        elif self._unindexed >= INDEX_TURNS or self._unindexed_text >= INDEX_TEXT:
            self._index()

    def _index(self) -> None:
        if self._indexing is not None:
            self._indexing.cancel()
        self._unindexed, self._unindexed_text, self._indexing = 0, 0, None
        self._writer.run(search_index.index_now).add_done_callback(_ignore)  # where it fails, the next search tells

    def keep_events(self, window: EventWindow) -> None:
        self._logs.window = window

    async def read_events(self, session: str) -> list[KeptLog]:
        return await self._reader.run(lambda db: self._logs.read_kept(find_session(db, session).n))

    async def forget_events(self) -> None:
        def work(transaction: Transaction) -> None:
            self._logs.remove_past_window(lambda n: self._claims.is_log_unused(transaction.db, n))

        await self._writer.write("", work)

    # Reading

    async def read(
        self, session: str, start: int, end: int, *, damaged: Literal["raise", "mark"] = "raise"
    ) -> AsyncIterator[list[bytes]]:
        reading = HistoryReader(session, start, end, marks=damaged == "mark")
        while blocks := await self._reader.run(reading.next_blocks):
            for part in parts(blocks):
                yield part
            if reading.is_done:
                return

    async def read_private(self, session: str) -> list[bytes]:
        return await self._reader.run(lambda db: sessions.read_private(db, find_session(db, session).n))

    # Upkeep

    async def vacuum(self) -> None:
        await self._run_long(self._writer, lambda db: db.vacuum())

    async def size(self) -> Size:
        from holdfast.store.sqlite import statistics  # noqa: PLC0415  (an agent never asks)

        return await self._reader.run(lambda db: statistics.size(db, self._files))

    async def stats(self) -> Stats:
        from holdfast.store.sqlite import statistics  # noqa: PLC0415

        await self._noted()
        with suppress(StoreError):
            await self._writer.run(search_index.index_now)
        return await self._run_long(self._reader, lambda db: statistics.stats(db, self._files))

    async def examine(self) -> AsyncIterator[Finding]:
        from holdfast.store.sqlite import doctor  # noqa: PLC0415

        for check in doctor.CHECKS:
            try:
                yield await self._run_long(self._writer, lambda db, check=check: check(db, self._examined()))
            except StoreError as e:
                yield Finding(check.__name__.removeprefix("check_"), "problem", str(e))

    async def repair(self, finding: Finding) -> str:
        from holdfast.store.sqlite import doctor  # noqa: PLC0415

        return await self._run_long(self._writer, lambda db: doctor.repair(db, self._examined(), finding.repair))

    def _examined(self) -> ExaminedStore:
        from holdfast.store.sqlite.doctor import ExaminedStore  # noqa: PLC0415

        return ExaminedStore(self._files, self._processes, self._claims)

    async def _run_long(self, thread: DatabaseThread, work: Callable[[Database], T]) -> T:
        """Do something that takes long, for as long as somebody waits for it."""
        stop = threading.Event()

        def guarded(db: Database) -> T:
            with db.stopped_by(stop):
                return work(db)

        try:
            return await thread.run(guarded)
        except asyncio.CancelledError:
            stop.set()
            raise

    async def close(self) -> None:
        for timer in (self._noting, self._closing):
            if timer is not None:
                timer.cancel()
        if self._indexing is not None:
            self._index()
        try:
            with suppress(StoreError):
                if self._logs.idle():
                    await self._writer.write("", self._remove_idle_logs)
            if self._reader is not self._writer:
                await self._reader.close()
            await self._writer.close()
        finally:
            self._logs.close()
            self._processes.close()

    def _remove_idle_logs(self, transaction: Transaction) -> None:
        for claim in self._logs.idle():
            row = sessions.find_claimed(transaction.db, claim)
            self._logs.release(claim)
            if row is not None:  # otherwise it is the log of another process
                self._logs.remove_sealed(row.n)


def _ignore(abandoned: asyncio.Future[Any]) -> None:
    """Take note of an error that nobody waits for any more."""
    if not abandoned.cancelled():
        abandoned.exception()


def _now() -> int:
    return time.time_ns() // 1_000
