"""`Engine`: the sessions of one process, and everything that can be done with them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from holdfast.engine.forks import given
from holdfast.engine.limits import Limits
from holdfast.engine.opened import OpenSessions
from holdfast.engine.session import LiveSession
from holdfast.engine.turn import Turn
from holdfast.errors import InvalidParams, SessionMoved, SessionNotFound
from holdfast.format import lines_of
from holdfast.model import SessionInfo, SessionState, checked_roots, checked_value, new_session_id
from holdfast.store import Changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.engine.port import AgentPort
    from holdfast.model import ArchiveFilter, OptionValue, Page, Update
    from holdfast.store import Hit, Store

log = logging.getLogger(__name__)

PAGE = 50


class Engine:
    """The sessions of one process."""

    def __init__(self, store: Store, agent: AgentPort, *, limits: Limits | None = None) -> None:
        self.store = store
        self._agent = agent
        self._limits = limits or Limits()
        self._sessions = OpenSessions(store, agent, self._limits)
        self._loop = asyncio.get_running_loop()

    # Creating, finding, restoring

    async def create(self, cwd: object, additional: object = (), *, equipment: object = None) -> LiveSession:
        """Make a session; it is on disk when this returns (B1). The agent gets the equipment, whatever it is."""
        path, others = checked_roots(cwd, additional)
        now = _now()
        info = SessionInfo(new_session_id(), path, others, None, now, now, archived=False, messages=0)
        state = SessionState()
        claim = await self.store.create(info, state)
        session = LiveSession(claim, info, state, 0, self._loop.time())
        session.equipment = equipment
        return await self._sessions.enliven(session)

    async def restore(
        self, session_id: str, cwd: object, additional: object = (), *, equipment: object = None
    ) -> LiveSession:
        """Bring a session back, from memory or from the store. Roots and equipment are those named now (B3, B10)."""
        path, others = checked_roots(cwd, additional)
        async with self._sessions.alone(session_id):
            if session_id not in self._sessions.live and (await self.store.get(session_id)).info.cwd != path:
                equipment = None  # refused below: nothing is to be prepared for it
            session = await self._sessions.open(session_id, equipment)
            if session.cwd != path:
                raise InvalidParams(f"This session works in {session.cwd}, not in {path}")
            if session.additional != others:
                await self._save(session, Changes(additional=others))
                session.additional = others
            session.equipment = equipment
            session.idle_since = self._loop.time()
            await self._agent.equipped(session)
            return session

    def get(self, session_id: str) -> LiveSession:
        """Get a session that is open in this process."""
        try:
            return self._sessions.live[session_id]
        except KeyError:
            raise SessionNotFound(session_id) from None

    async def list(
        self,
        *,
        cwd: str | None = None,
        archived: ArchiveFilter = "exclude",
        cursor: str | None = None,
        limit: int = PAGE,
    ) -> Page:
        """List the sessions that ever got a prompt, newest activity first (B4, B5)."""
        return await self.store.list(cwd=cwd, archived=archived, cursor=cursor, limit=limit)

    async def search(self, words: str, *, cwd: str | None = None, limit: int = 20) -> list[Hit]:
        """Find words in all sessions, newest first."""
        return await self.store.search(words, cwd=cwd, limit=limit)

    async def fork(
        self,
        session_id: str,
        cwd: object,
        additional: object = (),
        *,
        up_to: str | None = None,
        equipment: object = None,
    ) -> LiveSession:
        """Make a session that begins as another has gone so far (B15). A running turn gives what is finished."""
        path, others = checked_roots(cwd, additional)
        async with self._sessions.alone(session_id):
            source = await self._sessions.open(session_id)
            if source.cwd != path:
                raise InvalidParams(f"This session works in {source.cwd}, not in {path}")
            record = await self._sessions.up_to_date(source)
            # From here to the store nothing may come in between: what is sealed and what is said must fit together.
            entries, at = given(source.turn.history, up_to) if source.turn is not None else ([], up_to)
            said = sum(it.entity in ("user_message", "agent_message") for it in entries)
            now = _now()
            info = SessionInfo(
                new_session_id(), path, others, source.title, now, now, archived=False,
                messages=record.info.messages + said,
            )  # fmt: skip
            # What the agent remembers in the middle of a turn is not for others to know.
            state = _copied(source.state, memory=record.state.memory)
            state.forked_from = session_id
            added = lines_of(entries)
            claim = await self.store.fork(source.claim, info, state, up_to=at, lines=added)
        lines = record.lines + len(added) if at is None else (await self.store.get(info.id)).lines
        session = LiveSession(claim, info, state, lines, self._loop.time())
        session.equipment = equipment
        return await self._sessions.enliven(session)

    # Talking

    def prompt(self, session: LiveSession, content: Sequence[Update]) -> Turn:
        """Put a prompt in line; it is answered when those before it are (C6)."""
        if not content:
            raise InvalidParams("A prompt must not be empty")
        if self._sessions.live.get(session.id) is not session:
            raise SessionNotFound(session.id)
        queue = session.queue if session.queue is not None else deque[Turn]()
        starting = session.turn is None  # then the first in line does not wait
        if len(queue) - starting >= self._limits.prompts:
            waiting = self._limits.prompts
            raise InvalidParams(f"{waiting} prompts are waiting in this session; wait until one is answered")
        session.queue = queue
        grace = self._limits.cancel_grace
        turn = Turn(session, content, complete=self._agent.begins_entries, grace=grace)
        queue.append(turn)
        if session.runner is None:
            session.runner = self._loop.create_task(self._sessions.runner.run(session), name=f"turns of {session.id}")
        return turn

    def cancel(self, session: LiveSession) -> None:
        """Stop the running turn and forget the prompts that wait (C5, C6). Does nothing in an idle session."""
        self._sessions.runner.cancel(session)

    def cancel_turn(self, turn: Turn) -> None:
        """Stop one turn, or forget its prompt if it waits still (A9)."""
        self._sessions.runner.cancel_turn(turn)

    # Changing

    async def set_option(self, session: LiveSession, option_id: str, value: object) -> None:
        """Set an option for the user (D2)."""
        checked = checked_value(self._agent.options, option_id, value)
        if await self._sessions.to_the_end(self._set(session, option_id, checked)):
            try:
                await self._agent.option_set(session, option_id, checked)
            except Exception:
                log.exception("The agent failed when an option was set; the option is set all the same")

    async def adjust_option(self, session: LiveSession, option_id: str, value: OptionValue) -> None:
        """Set an option for the agent (D6)."""
        checked = checked_value(self._agent.options, option_id, value)
        await self._sessions.to_the_end(self._set(session, option_id, checked))

    async def _set(self, session: LiveSession, option_id: str, value: OptionValue) -> bool:
        option = next(it for it in self._agent.options if it.id == option_id)
        changed = session.value(option) != value
        before = session.state.options.get(option_id)
        session.state.options[option_id] = value
        told = session.options_update(self._agent.options)  # now: what is set meanwhile is not stored yet
        try:
            # Even if nothing changes: somebody may have set the same value, and it is not stored yet (P2).
            await self._save(session, Changes(state=session.state))
        except BaseException:
            if before is None:
                session.state.options.pop(option_id, None)
            else:
                session.state.options[option_id] = before
            raise
        if changed:
            session.publish(told)
        return changed

    async def rename(self, session: LiveSession, title: str | None, *, by: Literal["user", "agent"] = "user") -> None:
        """Give a session a title; None takes it away. One made of a prompt never comes in its place (B17)."""
        await self._sessions.to_the_end(self._rename(session, title, by))

    async def _rename(self, session: LiveSession, title: str | None, by: Literal["user", "agent"]) -> None:
        before = session.title, session.state.title_by
        session.title, session.state.title_by = title, by
        try:
            await self._save(session, Changes(title=title, state=session.state))
        except BaseException:
            if session.title == title:
                session.title, session.state.title_by = before
            raise
        if session.title != title:
            return  # its turn has given it another one since
        told: Update = {"sessionUpdate": "session_info_update", "title": title}
        if session.turn is not None and session.turn.running:
            session.turn.emit_update(told)  # its end must not bring back a title that it gave before
            session.turn.flush()
        else:
            session.publish(told)

    async def save(self, session: LiveSession) -> None:
        """Store what the agent wants to remember now, not only when the turn ends."""
        await self._save(session, Changes(state=session.state))

    async def _save(self, session: LiveSession, changes: Changes) -> None:
        try:
            await self.store.save(session.claim, changes)
        except (SessionMoved, SessionNotFound) as e:
            await self._sessions.lost(session, e.message)
            raise

    async def retitle(self, session_id: str, title: str | None) -> None:
        """Give a session a title for the user, whether it is open or not."""
        async with self._sessions.alone(session_id):
            await self.rename(await self._sessions.open(session_id), title)

    async def archive(self, session_id: str, *, archived: bool) -> None:
        """Put a session away, or take it out again."""
        async with self._sessions.alone(session_id):
            await self._save(await self._sessions.open(session_id), Changes(archived=archived))

    # Ending

    async def close(self, session_id: str) -> None:
        """End the work on a session and let it leave memory; its data stay (B13)."""
        await self._sessions.to_the_end(self._close(session_id))

    async def delete(self, session_id: str) -> None:
        """Remove a session for good (B14)."""
        await self._sessions.to_the_end(self._close(session_id, delete=True))

    async def _close(self, session_id: str, *, delete: bool = False) -> None:
        async with self._sessions.alone(session_id):
            session = self._sessions.live.get(session_id)
            if session is not None:
                await self._sessions.retire(session)
            if delete:
                await self.store.delete(session_id)

    async def shut_down(self, grace: float | None = None) -> None:
        """End all work, let go of all sessions and of the store; agents that go on are given up on after `grace`."""
        await self._sessions.shut_down(grace)
        await self.store.close()


def _copied(state: SessionState, memory: dict[str, Any]) -> SessionState:
    return msgspec.json.decode(msgspec.json.encode(msgspec.structs.replace(state, memory=memory)), type=SessionState)


def _now() -> int:
    return time.time_ns() // 1_000
