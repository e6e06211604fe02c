"""`Engine`: the sessions of one process, and everything that can be done with them from outside.

Every operation names a scope, the principal and the agent on whose behalf it is done: what belongs to others is not
there (F1).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.background import background_ends, background_keys
from holdfast.engine.journal import ClaimedSession, claim_session
from holdfast.engine.limits import EngineLimits
from holdfast.engine.own_sessions import OwnSessions, merged, split_cursor
from holdfast.engine.registry import Registry, check_cwd
from holdfast.engine.session import LiveSession
from holdfast.errors import NeighbourLost, SessionBusy, SessionElsewhere, SessionNotFound
from holdfast.format import event_in, fork_note, lines_of
from holdfast.model import (
    FINAL_STATUSES,
    UNBOUND,
    History,
    Position,
    Scope,
    SessionInfo,
    SessionState,
    checked_roots,
    forked,
    new_session_id,
)
from holdfast.store import Changes, Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.engine.cluster import Link, LinkUser, Neighbours
    from holdfast.engine.ports import AgentPort, ConnectedClient, OpenSession, SessionClient
    from holdfast.engine.relay.messages import OperationName
    from holdfast.engine.relay.owner import RelayService
    from holdfast.format import Line
    from holdfast.model import ArchiveFilter, Entry, Page, Update
    from holdfast.store import Forked, Store

PAGE = 50

LOCAL_SCOPE = Scope()

_SPEECH = frozenset({"agent_message", "agent_thought"})


class Engine:
    """The sessions of one process."""

    def __init__(self, store: Store, port: AgentPort, *, limits: EngineLimits | None = None) -> None:
        self.store = store
        self._port = port
        self._own = OwnSessions(store, port)
        self._registry = Registry(store, port, limits or EngineLimits())
        self._relay: RelayService | None = None

    async def join(self, neighbours: Neighbours) -> None:
        """Share sessions with the other processes on the store, from now on: be reached, and follow what they own.

        Without it an idle session of another process is taken over, and a busy one refused.
        """
        self._registry.neighbours = neighbours
        await neighbours.listen(self._serve)

    def _serve(self, link: Link) -> LinkUser:
        if self._relay is None:
            from holdfast.engine.relay.owner import RelayService  # noqa: PLC0415  (few sessions are shared)

            assert self._registry.neighbours is not None
            self._relay = RelayService(self, self._registry, self._registry.neighbours)
        return self._relay.accept(link)

    def introduce(self, name: str) -> None:
        """Tell the other processes what people call the client of this one."""
        self._registry.client_name = name
        self.store.introduce(name)

    # Creating, finding, restoring

    async def create(
        self,
        cwd: object,
        additional: object = (),
        *,
        session_id: str | None = None,
        scope: Scope = LOCAL_SCOPE,
        client: SessionClient | None = None,
    ) -> LiveSession:
        """Create a session; it is durable when this returns (B1). `session_id` must be a new one."""
        path, others = checked_roots(cwd, additional)
        self._registry.agent_name = scope.agent or UNBOUND
        info = _new_info(session_id, path, others, scope)
        state = SessionState()
        claim = await self.store.create(info, state)
        try:
            return await self._registry.add(LiveSession(self._registry, claim, info, state, 0), client, "new")
        except BaseException:
            await self._registry.finish(self.store.delete(info.id))  # the agent refused it, and nobody knows of it
            raise

    async def restore(
        self,
        session_id: str,
        cwd: object,
        additional: object = (),
        *,
        scope: Scope = LOCAL_SCOPE,
        client: SessionClient | None = None,
    ) -> LiveSession:
        """Bring a session back, from memory or from the store, for a client with the roots it names now (B3, B10).

        A client may name it by the agent's own id; one that only the agent has is adopted (G9). One that is idle in
        another process is taken over; `open` follows it there.
        """
        path, others = checked_roots(cwd, additional)
        self._registry.agent_name = scope.agent or UNBOUND
        session_id = await self._real_id(session_id, scope, client)
        async with self._registry.lock(session_id):
            await self._check_cwd(session_id, scope, path)
            session = await self._registry.open(session_id, scope, client)
            check_cwd(session.cwd, path)
            if client is not None:
                await self._registry.welcome(session, client)
            else:
                await self._registry.note_roots(session, others)
            return session

    async def _real_id(self, name: str, scope: Scope, client: SessionClient | None) -> str:
        """Return our id of a session; raise `SessionNotFound` if there is none of that name."""
        if name in self._registry.live:
            return name
        try:
            return (await self._registry.get(name, scope)).info.id
        except SessionNotFound:
            real = await self._own.id_of(name, scope, client) if client is not None else None
            if real is None:
                raise
            return real

    async def open(self, session_id: str, client: SessionClient, *, scope: Scope = LOCAL_SCOPE) -> OpenSession:
        """Open a session for a client with the roots it has now (B3, B10), here or where another process owns it.

        Nobody else attaches the client until the caller waits for something: no search is under way for it (`settled`).
        """
        path, others = checked_roots(client.roots[0], client.roots[1:])
        registry = self._registry
        if registry.neighbours is None:
            return await self.restore(session_id, path, others, scope=scope, client=client)
        registry.agent_name = scope.agent or UNBOUND
        session_id = await self._real_id(session_id, scope, client)
        while True:
            await self.settled(session_id, client)
            async with registry.lock(session_id):
                await self._check_cwd(session_id, scope, path)
                try:
                    session = await registry.open(session_id, scope, client, take_over=False)
                except SessionElsewhere:
                    session = await registry.finder.open(session_id, scope, client)
                if isinstance(session, LiveSession):
                    await registry.welcome(session, client)
            if registry.search(session_id, client) is None:
                return session

    async def settled(self, session_id: str, client: SessionClient) -> None:
        """Wait until no search for a session is under way for a client: a search attaches the client itself.

        Only the search knows what the client has seen; attached by others meanwhile, the client would see things twice.
        """
        while (search := self._registry.search(session_id, client)) is not None:
            await asyncio.wait({search})

    async def _check_cwd(self, session_id: str, scope: Scope, path: str) -> None:
        if session_id not in self._registry.live:
            check_cwd((await self._registry.get(session_id, scope)).info.cwd, path)

    def get(self, session_id: str, scope: Scope = LOCAL_SCOPE) -> LiveSession:
        """Return a session that is open in this process; raise `SessionNotFound` if there is none."""
        session = self._registry.live.get(session_id)
        if session is None or not scope.covers(session.principal, session.agent_name):
            raise SessionNotFound(session_id)
        return session

    async def look_up(self, session_id: str, scope: Scope) -> SessionInfo:
        """Return what is known of a session, open or not; raise `SessionNotFound` if there is none."""
        return (await self._registry.get(session_id, scope)).info

    async def look_up_all(
        self, session_ids: Sequence[str], scope: Scope, asking: ConnectedClient
    ) -> Sequence[SessionInfo]:
        """Return what is known of sessions, in this order, those that only the agent has among them (G9).

        Sessions that do not exist are left out.
        """
        found: dict[str, SessionInfo] = {}
        for session_id in session_ids:
            with suppress(SessionNotFound):
                found[session_id] = (await self._registry.get(session_id, scope)).info
        if len(found) < len(session_ids):
            for info in await self._own.infos(scope, asking):
                found.setdefault(info.id, info)
        return [found[session_id] for session_id in session_ids if session_id in found]

    async def own_id(self, name: str, scope: Scope, asking: ConnectedClient) -> str | None:
        """Return the agent's id of a session that only the agent has; None if it has no such session (G9)."""
        own = await self._own.find(name, scope, asking)
        return None if own is None else own.id

    async def list(
        self,
        scope: Scope = LOCAL_SCOPE,
        *,
        cwd: str | None = None,
        archived: ArchiveFilter = "exclude",
        cursor: str | None = None,
        limit: int = PAGE,
        asking: ConnectedClient | None = None,
    ) -> Page:
        """List the sessions that ever got a prompt, newest activity first (B4, B5).

        `asking` is the client that asks; it is also shown what the agent has itself (G9).
        """
        ours, before = split_cursor(cursor)
        page = await self.store.list(scope, cwd=cwd, archived=archived, cursor=ours, limit=limit)
        if asking is None or archived == "only":
            return page
        return merged(page, await self._own.unknown(scope, asking, cwd), scope, before)

    async def fork(
        self,
        session_id: str,
        cwd: object,
        additional: object = (),
        *,
        fork_id: str | None = None,
        scope: Scope = LOCAL_SCOPE,
        up_to: str | None = None,
        client: SessionClient | None = None,
    ) -> LiveSession:
        """Create a session that begins as another has gone so far (B15). A running turn gives what is finished."""
        fork_id = fork_id or new_session_id()
        try:
            made = await self._make_fork(session_id, cwd, additional, fork_id=fork_id, scope=scope, up_to=up_to)
        except SessionElsewhere as elsewhere:
            path, others = checked_roots(cwd, additional)
            wanted = {"fork_id": fork_id, "roots": (path, *others), "up_to": up_to}
            await self._do_elsewhere(elsewhere, "fork", session_id, scope, None, **wanted)
            made = await claim_session(self.store, fork_id, begins_entries=self._registry.port.begins_entries)
        session = LiveSession(self._registry, made.claim, made.record.info, made.record.state, made.record.lines)
        return await self._registry.add(session, client, "forked")

    async def fork_for_neighbour(
        self, session_id: str, cwd: object, additional: object, *, fork_id: str, scope: Scope, up_to: str | None
    ) -> None:
        """Create a fork that the process which asks for it will claim."""
        made = await self._make_fork(session_id, cwd, additional, fork_id=fork_id, scope=scope, up_to=up_to)
        await self.store.release(made.claim)

    async def _make_fork(
        self, session_id: str, cwd: object, additional: object, *, fork_id: str, scope: Scope, up_to: str | None
    ) -> ClaimedSession:
        path, others = checked_roots(cwd, additional)
        async with self._registry.lock(session_id):
            source = await self._open_own(session_id, scope)
            check_cwd(source.cwd, path)
            await source.journal.shown()
            record = await self._registry.up_to_date(source)
            # From here to the store nothing may come in between: what is sealed and what is said must fit together.
            opened = source.journal.open
            entries, at = finished_part(opened.history, up_to) if opened is not None else ([], up_to)
            said = sum(entry.entity in ("user_message", "agent_message") for entry in entries)
            info = msgspec.structs.replace(
                record.info, additional=others, title=source.title, messages=record.info.messages + said
            )
            # What the agent remembers in the middle of a turn is not for others to know.
            state = msgspec.structs.replace(source.state, memory=record.state.memory)
            info, state = forked(info, state, fork_id=fork_id, now=_now(), agent=scope.agent or source.agent_name)
            state.cut_turn = opened is not None and at is None and bool(opened.private)
            # What goes on beside the turns goes on there; in the fork it has ended.
            ended = History(complete=False)
            for event in background_ends(state, ended) if up_to is None else ():
                ended.apply(event)
            background, state.background = state.background, ()
            lines = [*lines_of(entries), *lines_of(ended)]
            running = len(opened.history) if opened is not None and up_to is not None else 0
            made = await self.store.fork(source.journal.claim, info, state, up_to=at, lines=lines, earlier=fork_note())
        if up_to is not None and background:
            made = await self._end_background(made, background)
        if not made.is_earlier and len(entries) < running:
            made = await self._append(made, fork_note())
        if made.cut_turn and not state.cut_turn:
            state.cut_turn = True
            await self.store.save(made.claim, Changes(state=state))
        forked_record = Record(info, state, made.lines, made.claim.epoch, 0)
        return ClaimedSession(made.claim, forked_record, Position(made.claim.epoch, 0, 0))

    async def _end_background(self, made: Forked, background: tuple[Update, ...]) -> Forked:
        """End in a fork what it has of work that goes on beside the turns (C13).

        Where the fork was cut nobody knows before: what began behind the cut is not in it, and must not appear there.
        """
        keys = background_keys(background)
        needles = [key.encode() for _, key in keys]
        begun = History(complete=False)
        async for blocks in self.store.read(made.claim.session, 0, made.lines):
            for line in (line for block in blocks for line in block.split(b"\n")):
                if any(needle in line for needle in needles):
                    event = event_in(line)
                    if (event.rule.entity, event.key) in keys:
                        begun.apply(event)
        there = tuple(item for item in background if begun.keys() & background_keys([item]))
        ended = History(complete=False)
        for event in background_ends(SessionState(background=there), begun):
            ended.apply(event)
        return await self._append(made, lines_of(ended))

    async def _append(self, made: Forked, lines: Sequence[Line]) -> Forked:
        """Add lines to a fork that nobody has opened yet."""
        if not lines:
            return made
        await self.store.begin(made.claim, [], Changes(), activity=False)
        await self.store.seal(made.claim, lines, Changes(), messages=0, activity=False)
        return msgspec.structs.replace(made, lines=made.lines + len(lines))

    # Changing

    async def rename(self, session_id: str, title: str | None, *, scope: Scope = LOCAL_SCOPE) -> None:
        """Give a session a title for the user, whether it is open or not."""
        try:
            async with self._registry.lock(session_id):
                session = await self._open_own(session_id, scope)
                await session.rename(title)
        except SessionElsewhere as elsewhere:
            await self._do_elsewhere(elsewhere, "rename", session_id, scope, None, title=title)

    async def archive(
        self, session_id: str, *, archived: bool, scope: Scope = LOCAL_SCOPE, client: SessionClient | None = None
    ) -> None:
        """Put a session away, which ends the work on it for all clients (B16), or take it out again."""
        try:
            async with self._registry.lock(session_id):
                session = await self._open_own(session_id, scope)
                await session.change(Changes(archived=archived))
                if archived:
                    ending = self._registry.retire(session, "This session was archived", by=client)
                    await self._registry.finish(ending)
        except SessionElsewhere as elsewhere:
            await self._do_elsewhere(elsewhere, "archive" if archived else "unarchive", session_id, scope, client)

    async def _open_own(self, session_id: str, scope: Scope) -> LiveSession:
        """Open a session here; raise `SessionElsewhere` where another process has it, and can be asked."""
        return await self._registry.open(session_id, scope, take_over=self._registry.neighbours is None)

    async def _do_elsewhere(
        self,
        elsewhere: SessionElsewhere,
        what: OperationName,
        session_id: str,
        scope: Scope,
        client: SessionClient | None,
        **more: Any,
    ) -> None:
        """Have something done by the process that has a session; raise `SessionBusy` where that one does not answer."""
        from holdfast.engine.relay.messages import Operation  # noqa: PLC0415

        operation = Operation(what, session_id, scope.principal, scope.agent, **more)
        try:
            await self._registry.finder.do(elsewhere, operation, client)
        except NeighbourLost as e:
            raise SessionBusy(f"This session is open in {elsewhere.owner}, which does not answer; try again") from e

    # Ending

    async def close(self, session_id: str, *, scope: Scope = LOCAL_SCOPE) -> None:
        """End the work on a session for all clients and let it leave memory; its data stay."""
        await self._registry.finish(self._close(session_id, scope, None, for_all=True))

    async def leave(self, session_id: str, client: SessionClient | None, *, scope: Scope = LOCAL_SCOPE) -> None:
        """Close a session for one client (B13).

        Where other clients are attached, only this client's prompts are cancelled, and it alone is detached. Without
        others the session leaves memory; its data stay.
        """
        if client is not None and self._registry.is_following:
            await self.settled(session_id, client)  # only its owner can cancel what it has prompted
            if self._registry.finder.followed(session_id, client) is not None:
                await self._registry.finder.leave(session_id, client)
                return
        await self._registry.finish(self._close(session_id, scope, client, for_all=False))

    async def _close(self, session_id: str, scope: Scope, client: SessionClient | None, *, for_all: bool) -> None:
        async with self._registry.lock(session_id):
            session = self._registry.live.get(session_id)
            if session is None or not scope.covers(session.principal, session.agent_name):
                return
            if for_all or all(other.client is client for other in session.attachments):
                await self._registry.retire(session)
            elif client is not None:
                await session.leave(client)

    async def delete(
        self,
        session_id: str,
        *,
        scope: Scope = LOCAL_SCOPE,
        client: SessionClient | None = None,
        asking: ConnectedClient | None = None,
    ) -> None:
        """Remove a session for good (B14), for all clients. One that is not there is removed already.

        `asking` is the client that asks; it may name what only the agent has (G9).
        """
        await self._registry.finish(self._delete(session_id, scope, client, asking))

    async def _delete(
        self, session_id: str, scope: Scope, client: SessionClient | None, asking: ConnectedClient | None
    ) -> None:
        async with self._registry.lock(session_id):
            try:
                record = await self._registry.get(session_id, scope)
            except SessionNotFound:
                await self._delete_by_other_name(session_id, scope, client, asking)
                return
            session = self._registry.live.get(session_id)
            if session is not None:
                await self._registry.retire(session, "This session was deleted", by=client)
            elif self._registry.neighbours is not None:
                try:
                    await self.store.release((await self.store.claim(session_id, take_over=False)).claim)
                except SessionElsewhere as elsewhere:
                    await self._do_elsewhere(elsewhere, "delete", session_id, scope, client)
                    return
            await self.store.delete(session_id)
        await self._port.deleted(record.info.principal, record.state.memory)

    async def _delete_by_other_name(
        self, name: str, scope: Scope, client: SessionClient | None, asking: ConnectedClient | None
    ) -> None:
        """Remove a session that is named by the agent's own id, or that only the agent has: it stays deleted."""
        if (real := (await self.store.find_aliases(scope, [name])).get(name)) is not None:
            await self._delete(real, scope, client, asking)
        elif asking is not None and (own := await self._own.find(name, scope, asking)) is not None:
            await self.store.set_alias(scope, own.id, None)
            await self._port.deleted(scope.principal, own.memory)

    def load(self) -> tuple[int, int]:
        """Return how many sessions are in memory, and how many turns run."""
        return self._registry.load()

    def activities(self) -> Iterator[tuple[str, str]]:
        """Yield the ids of the sessions in memory, each with its activity."""
        return ((session.id, session.activity) for session in self._registry.live.values())

    async def drain(self, grace: float) -> None:
        """Refuse new prompts, and wait up to `grace` seconds until all turns have ended (H8)."""
        await self._registry.drain(grace)

    async def shut_down(self, grace: float | None = None) -> None:
        """End all work, let go of all sessions and of the store; agents that go on are not waited for after `grace`."""
        try:
            await self._registry.shut_down(grace)
        finally:
            if self._registry.neighbours is not None:
                await self._registry.neighbours.close(self._registry.client_name)
            await self.store.close()


def _new_info(session_id: str | None, cwd: str, additional: tuple[str, ...], scope: Scope) -> SessionInfo:
    now = _now()
    return SessionInfo(
        session_id or new_session_id(), cwd, additional, None, now, now,
        archived=False, messages=0, principal=scope.principal, agent=scope.agent or UNBOUND,
    )  # fmt: skip


def _now() -> int:
    return time.time_ns() // 1_000


# What a running turn gives to a fork: what is finished of it (B15)


def finished_part(history: History, up_to: str | None) -> tuple[list[Entry], str | None]:
    """Return the entries a running turn gives, up to and with one, and that one's key where the turn lacks it."""
    entries = list(history)
    if up_to is None:
        return _finished(entries), None
    at = next((i for i, entry in enumerate(entries) if entry.entity and entry.key == up_to), None)
    if at is None:
        return [], up_to
    return [entry for entry in entries[: at + 1] if not _is_open(entry)], None


def _finished(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries before the first that is not finished; the last may still be growing."""
    for at, entry in enumerate(entries):
        if _is_open(entry) or (at == len(entries) - 1 and entry.entity in _SPEECH):
            return list(entries[:at])
    return list(entries)


def _is_open(entry: Entry) -> bool:
    if entry.entity == "tool_call_update":
        return entry.members.get("status") not in FINAL_STATUSES
    return entry.entity == "terminal_update" and not isinstance(entry.members.get("exitStatus"), dict)
