"""The live sessions of one process: how they come into memory, stay up to date, and leave it again."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from holdfast.engine.journal import claim_session
from holdfast.engine.session import LiveSession
from holdfast.errors import HoldfastError, InvalidParams, InvalidRequest, SessionMoved, SessionNotFound, StoreError
from holdfast.model import UNBOUND, Phase, checked_roots, normal_path
from holdfast.store import Changes

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from holdfast.engine.cluster import Neighbours
    from holdfast.engine.limits import EngineLimits
    from holdfast.engine.ports import AgentPort, Origin, SessionClient
    from holdfast.engine.relay.finding import SessionFinder
    from holdfast.model import Scope
    from holdfast.store import Record, Store

T = TypeVar("T")

log: logging.Logger = logging.getLogger(__name__)

FENCED = "The lease of this node was over; load the session again to go on with it"

PRUNE_SECONDS = 3600.0
"""How often sessions that are too old are looked for."""


class Registry:
    """The live sessions of one process, and the tasks that work for them."""

    def __init__(self, store: Store, port: AgentPort, limits: EngineLimits) -> None:
        self.store = store
        self.port = port
        self.limits = limits
        self.agent_name = UNBOUND
        """The agent that sessions which belong to none are bound to by their first prompt (F6)."""
        self.draining: bool = False
        """Whether the process is about to end: no new prompt is taken."""
        self.live: dict[str, LiveSession] = {}
        self.turns: int = 0
        """How many sessions work on prompts."""
        self._window = limits.keep_events
        if self._window is not None:
            store.keep_events(self._window)
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._leaving: set[LiveSession] = set()
        self._unfinished: set[asyncio.Task[Any]] = set()
        self._left_behind: set[asyncio.Task[Any]] = set()
        self._stopping = asyncio.Event()
        self.neighbours: Neighbours | None = None
        """The other processes on the store, where there may be some."""
        self._finder: SessionFinder | None = None
        self.client_name = "The program that had it open"
        """What people call the client of this process."""
        store.when_fenced(self._fenced)
        self._sweeper = self.loop.create_task(self._sweep(), name="sweep idle sessions")

    @property
    def finder(self) -> SessionFinder:
        """What finds the sessions that other processes own."""
        if self._finder is None:
            from holdfast.engine.relay.finding import SessionFinder  # noqa: PLC0415  (few sessions are shared)

            assert self.neighbours is not None
            self._finder = SessionFinder(self, self.neighbours)
        return self._finder

    @property
    def is_following(self) -> bool:
        """Whether a session of another process was ever found."""
        return self._finder is not None

    def search(self, session_id: str, client: SessionClient) -> asyncio.Task[None] | None:
        """Return the search under way for a session whose owner is gone, for a client, if there is one."""
        return None if self._finder is None else self._finder.search(session_id, client)

    @property
    def is_stopping(self) -> bool:
        """Whether this process is about to end."""
        return self._stopping.is_set()

    def lock(self, session_id: str) -> asyncio.Lock:
        """Return the lock of a session id: opening, closing and forking go one after the other."""
        lock = self._locks.get(session_id)
        if lock is None:
            lock = self._locks[session_id] = asyncio.Lock()
        return lock

    # Tasks

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something that must not be left half done, even if whoever asked for it waits no longer."""
        return await asyncio.shield(self.start(work))

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start something that is waited for when the engine shuts down."""
        task = self.loop.create_task(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        return task

    def leave_behind(self, task: asyncio.Task[Any]) -> None:
        """Go on without an agent's task that does not let itself be cancelled."""
        log.warning("The agent does not let itself be cancelled; it is left behind")
        self._left_behind.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._left_behind.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            log.info("An agent that was left behind has ended: %r", failure)

    # Coming into memory

    async def get(self, session_id: str, scope: Scope) -> Record:
        """Look a session up; one outside the scope is as good as none (F1)."""
        record = await self.store.get(session_id)
        if not scope.covers(record.info.principal, record.info.agent):
            raise SessionNotFound(session_id)
        return record

    async def open(
        self, session_id: str, scope: Scope, client: SessionClient | None = None, *, take_over: bool = True
    ) -> LiveSession:
        """Return a session from memory or from the store; a turn that a crash broke is ended first (P3).

        Without `take_over`, raise `SessionElsewhere` where a living process has it.
        """
        session = self.live.get(session_id)
        if session is not None and not scope.covers(session.principal, session.agent_name):
            raise SessionNotFound(session_id)
        if session is not None and await self._is_ours(session):
            return session
        await self.get(session_id, scope)
        claim, record, at = await claim_session(
            self.store,
            session_id,
            begins_entries=self.port.begins_entries,
            keeps_events=self._window is not None,
            take_over=take_over,
        )
        session = LiveSession(self, claim, record.info, record.state, record.lines, at)
        return await self.add(session, client, "restored")

    async def add(self, session: LiveSession, client: SessionClient | None, origin: Origin) -> LiveSession:
        """Take a session into memory, and let the agent prepare for it."""
        self.live[session.id] = session
        try:
            session.agent = await self.port.open(session, client, origin)
        except BaseException:
            self.live.pop(session.id, None)
            await self.store.release(session.journal.claim)
            raise
        return session

    async def welcome(self, session: LiveSession, client: SessionClient) -> None:
        """Note that a client has opened a session, with the roots it has now (B3, B10)."""
        path, others = checked_roots(client.roots[0], client.roots[1:])
        check_cwd(session.cwd, path)
        await self.note_roots(session, others)
        await session.agent.attached(client)

    async def note_roots(self, session: LiveSession, additional: tuple[str, ...]) -> None:
        """Note which directories a session was opened with last, for lists."""
        if session.additional != additional:
            await session.change(Changes(additional=additional))
        session.touch()

    async def _is_ours(self, session: LiveSession) -> bool:
        """Make sure that a session in memory is as it is stored, and still ours."""
        try:
            await self.up_to_date(session)
        except SessionMoved as e:
            await self.evict(session, e.message)
            return False
        except SessionNotFound:
            await self.evict(session, "This session was deleted")
            raise
        return True

    async def up_to_date(self, session: LiveSession) -> Record:
        """Wait until all that ended is sealed: a turn about to be, or one that the store could not take before."""
        while True:
            if session.turn is not None and session.turn.failed_to_store:
                await asyncio.wait({session.turn.ended})
            await session.journal.settle()
            record = await self.store.get(session.id)
            if record.epoch != session.journal.claim.epoch:
                raise SessionMoved("Another process has taken this session over; try again")
            sealing = session.turn is not None and session.turn.phase is Phase.ENDED
            if record.lines == session.journal.lines and not sealing:
                return record

    # Leaving memory

    async def retire(self, session: LiveSession, reason: str | None = None, by: SessionClient | None = None) -> None:
        """Stop a session's work, detach its clients, and forget it.

        The clients are told the reason, if there is one, except for the client that asked for it.
        """
        if self.live.get(session.id) is not session:
            return  # another task sees to it
        del self.live[session.id]
        self._leaving.add(session)
        if self.is_stopping and session.is_shared:
            session.interrupt(f"{self.client_name} has left")  # others go on with it (A11)
        else:
            session.cancel()
        await session.wait_until_idle()
        self._leaving.remove(session)
        if session.background is not None:
            await session.background.stop_all()
            await session.journal.shown()
        if reason is not None:
            session.drop_all(reason, besides=by)
        for attachment in session.attachments:
            session.detach(attachment)
        try:
            await session.journal.settle()
        except HoldfastError as e:
            log.warning("What a turn has said is left in its log, until the session is opened again: %s", e)
        await self._let_go(session)

    async def evict(self, session: LiveSession, reason: str) -> None:
        """Let go of a session that is not ours any more, and tell its clients (P4)."""
        if self.live.get(session.id) is session:
            del self.live[session.id]
            session.is_lost = True
            session.refuse_waiting(SessionMoved(reason))
            if self.neighbours is not None:
                self.finder.follow_on(session, reason.partition(";")[0])
            session.drop_all(reason)
            await self._let_go(session)

    def _fenced(self) -> None:
        """Let go of all sessions: the lease of this node was over, and none of its claims holds any more (P4)."""
        for session in list(self.live.values()):
            if session.turn is not None:
                session.turn.interrupt(FENCED)  # when it is to be sealed, the session is lost
            else:
                self.start(self.evict(session, FENCED))

    async def _let_go(self, session: LiveSession) -> None:
        if session.background is not None:
            await session.background.stop_all()
        await session.close_agent()
        try:
            await self.store.release(session.journal.claim)
        except StoreError as e:
            log.warning("That a session was let go could not be stored: %s", e)

    def check_room(self) -> None:
        """Raise `InvalidRequest` if as many turns run as this process takes."""
        if self.limits.turns is not None and self.turns >= self.limits.turns:
            raise InvalidRequest(
                f"{self.turns} turns run on this server, which is its limit. Send the prompt again in a moment, or "
                "raise the limit with --max-turns"
            )

    def load(self) -> tuple[int, int]:
        """Return how many sessions are in memory, and how many turns run."""
        return len(self.live), sum(session.runner is not None for session in self.live.values())

    async def drain(self, grace: float) -> None:
        """Refuse new prompts, and wait up to `grace` seconds until all turns have ended."""
        self.draining = True
        ends = [self.loop.create_task(session.wait_until_idle()) for session in self.live.values() if session.runner]
        if ends and grace > 0:
            await asyncio.wait(ends, timeout=grace)
        for end in ends:
            end.cancel()

    async def shut_down(self, grace: float | None) -> None:
        """Let go of all sessions; agents that go on are not waited for after `grace`."""
        self._stopping.set()
        if self._finder is not None:
            self._finder.hang_up()
        if grace is not None:
            for session in (*self.live.values(), *self._leaving):
                if session.turn is not None:
                    session.turn.give_up_after(grace)
        await asyncio.gather(*(self.retire(session) for session in list(self.live.values())))
        await asyncio.wait({self._sweeper, *self._unfinished})

    async def _sweep(self) -> None:
        """Let idle sessions leave memory, and delete the ones that are too old, now and then."""
        pause = max(min(self.limits.idle / 4, 60.0), 0.01)
        pruned_at = forgotten_at = float("-inf")
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
                return
            now = self.loop.time()
            try:
                for session in list(self.live.values()):
                    await self._retire_if_idle(session, now)
                if self.limits.keep is not None and now - pruned_at > PRUNE_SECONDS:
                    pruned_at = now
                    await self.store.prune(time.time_ns() // 1_000 - int(self.limits.keep * 1_000_000))
                if self._window is not None and now - forgotten_at > self._window.seconds / 4:
                    forgotten_at = now
                    await self.store.forget_events()
            except Exception:
                log.exception("Idle sessions could not be let go")

    async def _retire_if_idle(self, session: LiveSession, now: float) -> None:
        if session.in_use:
            session.idle_since = now
        if now - session.idle_since < self.limits.idle:
            return
        async with self.lock(session.id):
            # A client may have come for it while others were at it.
            used = session.in_use or now - session.idle_since < self.limits.idle
            if self.live.get(session.id) is session and not used:
                await self.retire(session)


def check_cwd(cwd: str, named: str) -> None:
    """Raise `InvalidParams` where a client names another directory than that of the session (B10)."""
    if normal_path(cwd) != named:
        raise InvalidParams(f"This session works in {cwd}, not in {named}")
