"""The sessions that are open in this process: how they come into memory, stay up to date, and leave it again."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from holdfast.engine.recovery import claimed
from holdfast.engine.runner import Runner
from holdfast.engine.session import LiveSession
from holdfast.errors import HoldfastError, SessionMoved, SessionNotFound, StoreError
from holdfast.model import Phase

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from holdfast.engine.limits import Limits
    from holdfast.engine.port import AgentPort
    from holdfast.store import Record, Store

T = TypeVar("T")

log = logging.getLogger(__name__)

PRUNE_SECONDS = 3600.0
"""How often sessions that are too old are looked for."""


class OpenSessions:
    """The open sessions of one process, and who runs their turns."""

    def __init__(self, store: Store, agent: AgentPort, limits: Limits) -> None:
        self.live: dict[str, LiveSession] = {}
        self.runner = Runner(store, agent, self.lost)
        self._store = store
        self._agent = agent
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._leaving: set[LiveSession] = set()
        self._unfinished: set[asyncio.Task[Any]] = set()
        self._stopping = asyncio.Event()
        self._sweeper = self._loop.create_task(self._sweep(), name="sweep idle sessions")

    def alone(self, session_id: str) -> asyncio.Lock:
        """Let only one of those who open, close or fork a session at it at a time."""
        lock = self._locks.get(session_id)
        if lock is None:
            lock = self._locks[session_id] = asyncio.Lock()
        return lock

    async def to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something that must not be left half done, even if whoever asked for it waits no longer."""
        task = self._loop.create_task(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        return await asyncio.shield(task)

    async def open(self, session_id: str, equipment: object = None) -> LiveSession:
        """Get a session from memory or from the store; a turn that a crash broke is ended first (P3)."""
        session = self.live.get(session_id)
        if session is not None and await self._is_ours(session):
            return session
        claim, record = await claimed(self._store, session_id, complete=self._agent.begins_entries)
        session = LiveSession(claim, record.info, record.state, record.lines, self._loop.time())
        session.equipment = equipment
        return await self.enliven(session)

    async def _is_ours(self, session: LiveSession) -> bool:
        """Make sure that a session in memory is as it is stored, and still ours."""
        try:
            await self.up_to_date(session)
        except SessionMoved as e:
            await self.lost(session, e.message)
            return False
        except SessionNotFound:
            await self.lost(session, "This session was deleted")
            raise
        return True

    async def up_to_date(self, session: LiveSession) -> Record:
        """Wait until all that ended is sealed: a turn about to be, or one that the store could not take before."""
        while True:
            if session.turn is not None and session.turn.failure is not None:
                await asyncio.wait({session.turn.ended})
            await self.runner.seal_left(session)
            record = await self._store.get(session.id)
            if record.epoch != session.claim.epoch:
                raise SessionMoved("Another process has taken this session over; load it again to go on with it here")
            sealing = session.turn is not None and session.turn.phase is Phase.ENDED
            if record.lines == session.lines and not sealing:
                return record

    async def enliven(self, session: LiveSession) -> LiveSession:
        """Take a session into memory, and let the agent prepare for it."""
        self.live[session.id] = session
        try:
            await self._agent.opened(session)
        except BaseException:
            self.live.pop(session.id, None)
            await self._store.release(session.claim)
            raise
        return session

    async def retire(self, session: LiveSession) -> None:
        """Stop a session's work, tell nobody any more, and forget it."""
        if self.live.get(session.id) is not session:
            return  # somebody else sees to it
        del self.live[session.id]
        self._leaving.add(session)
        self.runner.cancel(session)
        if session.runner is not None:
            await asyncio.wait({session.runner})
        self._leaving.remove(session)
        for attachment in session.attachments:
            session.detach(attachment)
        try:
            await self.runner.seal_left(session)
        except HoldfastError as e:
            log.warning("What a turn has said is left in its log, until the session is opened again: %s", e)
        await self._let_go(session)

    async def lost(self, session: LiveSession, reason: str) -> None:
        """Let go of a session that is not ours any more, and say so to its watchers (P4)."""
        if self.live.get(session.id) is session:
            del self.live[session.id]
            self.runner.refuse_waiting(session, SessionMoved(reason))
            session.drop_all(reason)
            await self._let_go(session)

    async def _let_go(self, session: LiveSession) -> None:
        try:
            await self._agent.closed(session)
        except Exception:
            log.exception("Closing a session failed in the agent")
        try:
            await self._store.release(session.claim)
        except StoreError as e:
            log.warning("That a session was let go could not be stored: %s", e)

    async def shut_down(self, grace: float | None) -> None:
        """Let go of all sessions."""
        self._stopping.set()
        if grace is not None:
            for session in (*self.live.values(), *self._leaving):
                if session.turn is not None:
                    session.turn.give_up_after(grace)
        await asyncio.gather(*(self.retire(it) for it in list(self.live.values())))
        await asyncio.wait({self._sweeper, *self._unfinished})

    async def _sweep(self) -> None:
        """Let idle sessions leave memory, and delete the ones that are too old, now and then."""
        pause = max(min(self._limits.idle / 4, 60.0), 0.01)
        pruned_at = float("-inf")
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
                return
            now = self._loop.time()
            try:
                for session in list(self.live.values()):
                    await self._close_if_idle(session, now)
                if self._limits.keep is not None and now - pruned_at > PRUNE_SECONDS:
                    pruned_at = now
                    await self._store.prune(time.time_ns() // 1_000 - int(self._limits.keep * 1_000_000))
            except Exception:
                log.exception("Idle sessions could not be let go")

    async def _close_if_idle(self, session: LiveSession, now: float) -> None:
        if session.attachments or session.runner is not None:
            session.idle_since = now
        if now - session.idle_since < self._limits.idle:
            return
        async with self.alone(session.id):
            # Somebody may have come for it while others were at it.
            used = session.attachments or session.runner is not None or now - session.idle_since < self._limits.idle
            if self.live.get(session.id) is session and not used:
                await self.retire(session)
