"""`PostgresStore`: the ports' methods, each one statement, or a few where none depends on what another may change."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from holdfast.errors import SessionBusy, StoreError
from holdfast.format import Line, stored, with_texts
from holdfast.format.segments import Cut, checksum
from holdfast.model import UNBOUND, Page, Scope, SessionState
from holdfast.model.kinds import HAND_OVER
from holdfast.store import cursors
from holdfast.store.history_blocks import BlockReader
from holdfast.store.port import Alias, Changes, Claim, Forked, Owner, PrivateEntry, SearchArea
from holdfast.store.postgres import histories
from holdfast.store.postgres.adding import NewSession, add_copy, add_fork
from holdfast.store.postgres.claims import Claims, Held, called, is_storable, kept_logs
from holdfast.store.postgres.database import Database, parse_address
from holdfast.store.postgres.flushing import Flushes
from holdfast.store.postgres.nodes import LEASE, Nodes
from holdfast.store.postgres.rows import (
    EMPTY,
    HistoryEnd,
    change_columns,
    encode,
    info_columns,
    info_of,
    record_of,
    state_of,
    text_of,
)
from holdfast.store.postgres.scopes import Scopes, agents_of, cursor_key
from holdfast.store.postgres.segments import NewSegments
from holdfast.store.postgres.turns import NewEntries, Turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import Literal

    from holdfast.model import ArchiveFilter, SessionInfo
    from holdfast.store.port import Claimed, EventWindow, Hit, KeptLog, Record, Shared, Snapshot
    from holdfast.store.postgres.flushing import TurnRows
    from holdfast.store.postgres.nodes import Node
    from holdfast.store.reports import Finding, Size, Stats

ATTEMPTS = 20
"""How often something is tried again that others change at the same time."""

_ARCHIVED: dict[ArchiveFilter, bool | None] = {"exclude": False, "only": True, "include": None}


class PostgresStore:
    """See `holdfast.store.port.SessionStore`. Make one with `open`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._nodes = Nodes(database, self._node_fenced)
        self._flushes = Flushes(database, self._nodes)
        self._claims = Claims(database, self._nodes, self._flushes)
        self._scopes = Scopes(database)
        self._turns = Turns(database, self._claims, self._scopes)
        self._key = b""
        self._on_fenced: list[Callable[[], None]] = []

    @classmethod
    async def open(cls, address: str, *, lease: float = LEASE, node_url: str | None = None) -> PostgresStore:
        """Open the store in a database, or make one where there is none.

        Sessions of a node that has given no sign of life for `lease` seconds may be taken over; ``?lease=`` in the
        address goes before it. `node_url` is where other nodes reach this one.
        """
        store = cls(await Database.open(parse_address(address, lease)))
        store._nodes.url = node_url
        try:
            store._key = await cursor_key(store._database)
        except BaseException:
            await store.close()
            raise
        return store

    def _node_fenced(self, node: Node) -> None:
        self._flushes.node_fenced(node)
        for call in self._on_fenced:
            call()

    def when_fenced(self, call: Callable[[], None]) -> None:
        self._on_fenced.append(call)

    # Sessions

    async def create(self, info: SessionInfo, state: SessionState) -> Claim:
        columns = info_columns(info, state, 0)
        scope = await self._scopes.number(info.principal, info.agent)
        row, node = await self._made("create_session", (columns[0], scope, *columns[2:]), info.id)
        return self._new_claim(node, info, row["n"], EMPTY)

    async def get(self, session: str) -> Record:
        return record_of(await self._claims.find(session))

    async def snapshot(self, session: str) -> Snapshot:
        return await self._claims.snapshot(session)

    async def find(self, prefix: str, *, limit: int, after: str = "") -> list[SessionInfo]:
        if not is_storable(prefix + after):
            return []
        found = await self._database.fetch("find_sessions", prefix, prefix + "\U0010ffff", limit, after)
        return [info_of(row) for row in found]

    async def list(
        self, scope: Scope, *, cwd: str | None, archived: ArchiveFilter, cursor: str | None, limit: int
    ) -> Page:
        filters = cursors.filters_of(scope, cwd, archived)
        after = cursors.verify(cursor, self._key, filters)
        if not is_storable(scope.principal + (scope.agent or "")):
            return Page((), None)
        arguments = (scope.principal, agents_of(scope), _ARCHIVED[archived], after.updated_at, after.n)
        if cwd is None:
            rows = await self._database.fetch_rows("list_in_scope", limit + 1, *arguments)
        else:
            rows = await self._database.fetch_rows("list_in_directory", limit + 1, *arguments, encode(cwd))
        page = tuple(info_of(row) for row in rows[:limit])
        if len(rows) <= limit:
            return Page(page, None)
        last = rows[limit - 1]
        return Page(page, cursors.sign(cursors.Cursor(last["updated_at"], last["n"], filters), self._key))

    async def owners(self) -> dict[str, Owner]:
        rows = await self._database.fetch("owners")
        return {row["id"]: Owner(called(row), row["node_url"]) for row in rows}

    async def scopes(self) -> list[Scope]:
        rows = await self._database.fetch("used_scopes")
        return [Scope(row["principal"], row["agent"]) for row in rows]

    async def agents(self, principal: str) -> list[str]:
        if not is_storable(principal):
            return []
        return [row["agent"] for row in await self._database.fetch("agents_of_principal", principal)]

    async def save(self, claim: Claim, changes: Changes) -> None:
        held = await self._claims.check(claim)
        columns = await self._scopes.change_columns(held, changes)
        if await self._database.first("change_session", held.node.id, held.n, claim.epoch, *columns) is None:
            raise await self._claims.moved(claim)
        held.note(changes)

    async def edit(
        self, session: str, *, title: str | UnsetType | None = UNSET, archived: bool | UnsetType = UNSET
    ) -> None:
        for _ in range(ATTEMPTS):
            row = await self._claims.find(session)
            state = state_of(row)
            if title is not UNSET:
                state.title_by = "user"
            changes = Changes(state=state, title=title, archived=archived)
            new_state, *columns = change_columns(changes, row["principal"], None)[:5]
            if await self._database.first("edit_session", session, row["state"], new_state, *columns) is not None:
                return
        raise StoreError("The session changes all the time; try again")

    async def hand_over(self, session: str, agent: str) -> None:
        for _ in range(ATTEMPTS):
            row = await self._claims.find(session)
            if row["unsealed"]:
                await self._claims.make_free(row)
                raise SessionBusy("The last turn of this session broke; open the session once, then hand it over")
            if row["agent"] == agent or await self._hand_over(row, agent):
                return
        raise StoreError("The session changes all the time; try again")

    async def _hand_over(self, row: Any, agent: str) -> bool:
        old = state_of(row)
        kept = SessionState(title_by=old.title_by, forked_from=old.forked_from, interrupted=old.interrupted)
        body = stored({"sessionUpdate": HAND_OVER, "from": row["agent"], "to": agent})
        scope = await self._scopes.number(row["principal"], agent)
        arguments = (row["n"], row["epoch"], row["state"], row["lines"], scope, encode(kept), checksum(body), body)
        return await self._database.first("hand_over", *arguments) is not None

    async def add(
        self,
        info: SessionInfo,
        state: SessionState,
        lines: Sequence[Line],
        *,
        private: Sequence[PrivateEntry] = (),
        shared: Shared | None = None,
    ) -> None:
        new = NewSession(info, state, await self._scopes.number(info.principal, info.agent))
        await add_copy(self._database, new, lines, private, shared)

    async def private_entries(self, session: str) -> list[PrivateEntry]:
        row = await self._claims.find(session)
        return [PrivateEntry(*entry) for entry in await self._database.fetch("read_private", row["n"])]

    async def aliases(self) -> list[Alias]:
        rows = await self._database.fetch("every_alias")
        return [Alias(row["principal"], row["agent"], text_of(row["name"]), row["session"]) for row in rows]

    async def set_alias(self, scope: Scope, name: str, session: str | None) -> None:
        number = await self._scopes.number(scope.principal, scope.agent or UNBOUND)
        await self._database.fetch("set_alias", number, encode(name), session)

    async def find_aliases(self, scope: Scope, names: Sequence[str]) -> dict[str, str | None]:
        asked = {encode(name): name for name in names}
        rows = await self._database.fetch("find_aliases", scope.principal, agents_of(scope), list(asked))
        return {asked[row["name"]]: row["session"] for row in rows}

    async def delete(self, session: str) -> None:
        for _ in range(ATTEMPTS):
            row = await self._database.first("get_session", session) if is_storable(session) else None
            if row is None:
                return
            await self._claims.make_free(row)
            if await self._delete(row):
                return
        raise StoreError("The session changes all the time; try again")

    async def _delete(self, row: Any) -> bool:
        deleted = await self._database.transact(
            # Two that share a segment would each leave it to the other.
            ("lock_deleting", ()),
            # Whoever forks it is waited for; what comes next sees the fork.
            ("lock_session", (row["id"], row["epoch"])),
            ("delete_session", (row["n"], row["epoch"], self._nodes.current_id)),
        )
        return bool(deleted)

    async def prune(self, before: int) -> int:
        deleted = 0
        for (session,) in await self._database.fetch("old_sessions", before):
            row = await self._database.first("get_session", session)
            if row is None or row["updated_at"] >= before or row["is_alive"]:
                continue
            await self._claims.make_free(row)
            deleted += await self._delete(row)
        return deleted

    # Ownership

    @property
    def address(self) -> str | None:
        return self._nodes.url

    def introduce(self, name: str) -> None: ...

    async def claim(self, session: str, *, take_over: bool = True) -> Claimed:
        return await self._claims.claim(session, take_over=take_over)

    async def release(self, claim: Claim) -> None:
        await self._claims.release(claim)

    # Turns

    async def begin(
        self,
        claim: Claim,
        lines: Sequence[bytes],
        changes: Changes,
        *,
        activity: bool = True,
        durable: bool = True,
        opening: bytes = b"",
    ) -> TurnRows:
        return await self._turns.begin(claim, lines, changes, activity=activity, durable=durable, opening=opening)

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
        new = NewEntries(lines, messages, private)
        await self._turns.seal(claim, new, changes, activity=activity, last=last)

    def keep_events(self, window: EventWindow) -> None:
        self._turns.window = window

    async def read_events(self, session: str) -> list[KeptLog]:
        row = await self._claims.find(session)
        return kept_logs(await self._database.fetch("read_events", row["n"]))

    async def forget_events(self) -> None:
        await self._turns.forget_events()

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
        columns = info_columns(info, state, 0)
        if not lines and not self._claims.is_held(claim):
            return await self._fork_of_others(claim, info, state, up_to, earlier)
        source = await self._claims.check(claim)
        scope = await self._scopes.number(info.principal, info.agent)
        cut, messages = Cut(source.end.lines, []), info.messages
        if up_to is not None:
            cut, messages = await histories.find_cut(self._database, claim.session, source.n, up_to, lines)
        is_earlier = cut.end < source.end.lines
        added = [*with_texts(cut.lines), *lines, *(earlier if is_earlier else ())]
        segments = NewSegments(HistoryEnd(cut.position, cut.position, 0), added, info.principal)
        columns = (columns[0], scope, *columns[2:9], messages, *columns[10:])
        is_same_agent = (source.principal, source.agent) == (info.principal, info.agent)
        row = await self._forked(
            info.id,
            (source.node.id, source.n, claim.epoch, source.end.lines, *columns, *segments.end, cut.position,
             *segments.columns, is_same_agent, cut.end),
        )  # fmt: skip
        if row is None:
            raise await self._claims.moved(claim)
        source.end = HistoryEnd(source.end.lines, source.end.lines, 0)
        forked = self._new_claim(source.node, info, row["n"], segments.end)
        return Forked(forked, segments.end.lines, bool(lines) or row["cuts_private"], is_earlier)

    async def _fork_of_others(
        self, claim: Claim, info: SessionInfo, state: SessionState, up_to: str | None, earlier: Sequence[Line]
    ) -> Forked:
        """Fork a session under the claim that somebody else has, or nobody."""
        row = await self._claims.find(claim.session)
        if row["epoch"] != claim.epoch:
            raise await self._claims.moved(claim)
        new = NewSession(info, state, await self._scopes.number(info.principal, info.agent))
        added = await add_fork(self._database, row, new, up_to, earlier)
        return Forked((await self.claim(info.id)).claim, added.lines, added.cuts_private, added.is_earlier)

    async def _forked(self, session: str, arguments: tuple[Any, ...]) -> Any:
        try:
            return await self._database.first("fork_session", *arguments)
        except StoreError:
            made = await self._database.first("get_session", session)
            if made is None or made["node"] != arguments[0] or made["epoch"] != 1:
                raise
            return {"n": made["n"], "cuts_private": False}  # it was made, and the answer was lost

    # Reading

    async def read(
        self, session: str, start: int, end: int, *, damaged: Literal["raise", "mark"] = "raise"
    ) -> AsyncIterator[list[bytes]]:
        row = await self._claims.find(session)
        reader = BlockReader(session, start, min(end, row["lines"]), marks=damaged == "mark")
        async with aclosing(histories.read_blocks(self._database, row["n"], session, reader)) as reading:
            async for blocks in reading:
                yield blocks

    async def read_private(self, session: str) -> list[bytes]:
        return [entry.data for entry in await self.private_entries(session)]

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
        from holdfast.store.postgres import search  # noqa: PLC0415  (an agent never asks)

        if not is_storable(scope.principal + (scope.agent or "")):
            return []
        return await search.find(self._database, text, SearchArea(scope, cwd, archived, since), limit)

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
        from holdfast.store.postgres import search  # noqa: PLC0415

        if not is_storable(scope.principal + (scope.agent or "")):
            return 0
        return await search.count(self._database, text, SearchArea(scope, cwd, archived, since), most)

    # Upkeep

    async def vacuum(self) -> None:
        from holdfast.store.postgres import upkeep  # noqa: PLC0415

        await upkeep.vacuum(self._database)

    async def size(self) -> Size:
        from holdfast.store.postgres import upkeep  # noqa: PLC0415

        return await upkeep.size(self._database)

    async def stats(self) -> Stats:
        from holdfast.store.postgres import upkeep  # noqa: PLC0415

        return await upkeep.stats(self._database)

    async def examine(self) -> AsyncIterator[Finding]:
        from holdfast.store.postgres import doctor  # noqa: PLC0415

        async for finding in doctor.examine(self._database):
            yield finding

    async def repair(self, finding: Finding) -> str:
        from holdfast.store.postgres import doctor  # noqa: PLC0415

        return await doctor.repair(self._database, finding.repair)

    async def close(self) -> None:
        try:
            await self._flushes.close()
            await self._nodes.close()
            await self._turns.close()
        except StoreError:  # a database that is gone finds out by itself
            pass
        finally:
            await self._database.close()

    # Inside

    async def _made(self, name: str, columns: tuple[Any, ...], session: str) -> tuple[Any, Node]:
        """Add a session that this node owns."""
        while True:
            node = await self._nodes.get()
            try:
                row = await self._database.first(name, node.id, *columns)
            except StoreError:
                row = await self._database.first("get_session", session)
                if row is None or row["node"] != node.id or row["epoch"] != 1 or row["turn"] != 0:
                    raise
                if self._claims.is_held(Claim(session, 1)):
                    raise
            if row is not None:
                return row, node
            self._nodes.fence(node)

    def _new_claim(self, node: Node, info: SessionInfo, n: int, end: HistoryEnd) -> Claim:
        claim, held = Claim(info.id, 1), Held(node, n, 0, end, info.principal, info.agent)
        held.kept_bytes = 0
        self._claims.hold_new(claim, held)
        return claim
