"""`Engine`: the sessions of one process, and everything that can be done with them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.engine.recovery import recovered
from holdfast.engine.runner import Runner
from holdfast.engine.session import LiveSession
from holdfast.engine.turn import FINAL, Turn
from holdfast.errors import InvalidParams, SessionNotFound, StoreError
from holdfast.model import SessionInfo, SessionState, checked_roots, checked_value, lines_of, new_session_id
from holdfast.store import Changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.engine.port import AgentPort
    from holdfast.model import ArchiveFilter, Entry, OptionValue, Page, Update
    from holdfast.store import Hit, Store

log = logging.getLogger(__name__)

PAGE = 50


class Limits(NamedTuple):
    """How much an engine takes on. Times in seconds."""

    prompts: int = 16
    """Prompts that may wait for their turn in one session (C6)."""
    cancel_grace: float = 5.0
    """A cancelled agent that goes on is given up on after this time (C5)."""
    idle: float = 30 * 60
    """A session nobody watches and that does nothing leaves memory after this time (B18)."""
    keep: float | None = None
    """Sessions without activity for this time are deleted; None keeps them for ever."""


class Engine:
    """The sessions of one process."""

    def __init__(self, store: Store, agent: AgentPort, *, limits: Limits | None = None) -> None:
        self.store = store
        self._agent = agent
        self._limits = limits or Limits()
        self._live: dict[str, LiveSession] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._loop = asyncio.get_running_loop()
        self._runner = Runner(store, agent, self._lost)
        self._sweeper = self._loop.create_task(self._sweep(), name="sweep idle sessions")

    # Creating, finding, restoring

    async def create(self, cwd: object, additional: object = ()) -> LiveSession:
        """Make a session; it is on disk when this returns (B1)."""
        path, others = checked_roots(cwd, additional)
        now = _now()
        info = SessionInfo(new_session_id(), path, others, None, now, now, archived=False, messages=0)
        state = SessionState()
        claim = await self.store.create(info, state)
        return await self._enliven(LiveSession(claim, info, state, 0, self._loop.time()))

    async def restore(self, session_id: str, cwd: object, additional: object = ()) -> LiveSession:
        """Bring a session back, from memory or from the store. Its roots are the ones named now (B3, B10)."""
        path, others = checked_roots(cwd, additional)
        async with self._alone(session_id):
            session = await self._open(session_id)
            if session.cwd != path:
                raise InvalidParams(f"This session works in {session.cwd}, not in {path}")
            if session.additional != others:
                await self.store.save(session.claim, Changes(additional=others))
                session.additional = others
            return session

    def get(self, session_id: str) -> LiveSession:
        """Get a session that is open in this process."""
        try:
            return self._live[session_id]
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
        self, session_id: str, cwd: object, additional: object = (), *, up_to: str | None = None
    ) -> LiveSession:
        """Make a session that begins as another has gone so far (B15). A running turn gives what is finished."""
        path, others = checked_roots(cwd, additional)
        async with self._alone(session_id):
            source = await self._open(session_id)
            if source.cwd != path:
                raise InvalidParams(f"This session works in {source.cwd}, not in {path}")
            entries = list(source.turn.history) if source.turn is not None else []
            if (
                up_to is not None
                and (at := next((i for i, e in enumerate(entries) if e.key == up_to), None)) is not None
            ):
                entries, up_to = entries[: at + 1], None
            elif up_to is not None:
                entries = []
            else:
                entries = _finished(entries)
            record = await self.store.get(session_id)
            now = _now()
            said = sum(it.entity in ("user_message", "agent_message") for it in entries)
            info = SessionInfo(
                new_session_id(), path, others, source.title, now, now, archived=False,
                messages=record.info.messages + said,
            )  # fmt: skip
            state = _copied(source.state)
            state.forked_from = session_id
            lines = lines_of(entries)
            claim = await self.store.fork(source.claim, info, state, up_to=up_to, lines=lines)
        copied = await self.store.get(info.id)
        return await self._enliven(LiveSession(claim, info, state, copied.lines, self._loop.time()))

    # Talking

    def prompt(self, session: LiveSession, content: Sequence[Update]) -> Turn:
        """Put a prompt in line; it is answered when those before it are (C6)."""
        if not content:
            raise InvalidParams("A prompt must not be empty")
        queue = session.queue = session.queue if session.queue is not None else deque()
        if len(queue) >= self._limits.prompts:
            raise InvalidParams(f"{len(queue)} prompts are waiting in this session; wait until one is answered")
        grace = self._limits.cancel_grace
        turn = Turn(session, content, complete=self._agent.begins_entries, grace=grace)
        queue.append(turn)
        if session.runner is None:
            session.runner = self._loop.create_task(self._runner.run(session), name=f"turns of {session.id}")
        return turn

    def cancel(self, session: LiveSession) -> None:
        """Stop the running turn and forget the prompts that wait (C5, C6). Does nothing in an idle session."""
        self._runner.cancel(session)

    def cancel_turn(self, turn: Turn) -> None:
        """Stop one turn, or forget its prompt if it waits still (A9)."""
        self._runner.cancel_turn(turn)

    # Changing

    async def set_option(self, session: LiveSession, option_id: str, value: object) -> None:
        """Set an option for the user (D2)."""
        checked = checked_value(self._agent.options, option_id, value)
        if await self._set(session, option_id, checked):
            await self._agent.option_set(session, option_id, checked)

    async def adjust_option(self, session: LiveSession, option_id: str, value: OptionValue) -> None:
        """Set an option for the agent (D6)."""
        await self._set(session, option_id, checked_value(self._agent.options, option_id, value))

    async def _set(self, session: LiveSession, option_id: str, value: OptionValue) -> bool:
        option = next(it for it in self._agent.options if it.id == option_id)
        if session.value(option) == value:
            return False
        before = dict(session.state.options)
        session.state.options[option_id] = value
        try:
            await self.store.save(session.claim, Changes(state=session.state))
        except BaseException:
            session.state.options = before
            raise
        session.publish(session.options_update(self._agent.options))
        return True

    async def rename(self, session: LiveSession, title: str | None, *, by: Literal["user", "agent"] = "user") -> None:
        """Give a session a title; None takes it away. One made of a prompt never comes in its place (B17)."""
        session.state.title_by = by
        await self.store.save(session.claim, Changes(title=title, state=session.state))
        session.title = title
        session.publish({"sessionUpdate": "session_info_update", "title": title})

    async def save(self, session: LiveSession) -> None:
        """Store what the agent wants to remember now, not only when the turn ends."""
        await self.store.save(session.claim, Changes(state=session.state))

    async def retitle(self, session_id: str, title: str | None) -> None:
        """Give a session a title for the user, whether it is open or not."""
        async with self._alone(session_id):
            await self.rename(await self._open(session_id), title)

    async def archive(self, session_id: str, *, archived: bool) -> None:
        """Put a session away, or take it out again."""
        async with self._alone(session_id):
            await self.store.save((await self._open(session_id)).claim, Changes(archived=archived))

    # Ending

    async def close(self, session_id: str) -> None:
        """End the work on a session and let it leave memory; its data stay (B13)."""
        async with self._alone(session_id):
            session = self._live.get(session_id)
            if session is not None:
                await self._retire(session)

    async def delete(self, session_id: str) -> None:
        """Remove a session for good (B14)."""
        async with self._alone(session_id):
            session = self._live.get(session_id)
            if session is not None:
                await self._retire(session)
            await self.store.delete(session_id)

    async def shut_down(self, grace: float | None = None) -> None:
        """End all work, let go of all sessions and of the store; agents that go on are given up on after `grace`."""
        self._sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await self._sweeper
        for session in self._live.values():
            if session.turn is not None and grace is not None:
                session.turn.give_up_after(grace)
        await asyncio.gather(*(self._retire(session) for session in list(self._live.values())))
        await self.store.close()

    # Inside

    def _alone(self, session_id: str) -> asyncio.Lock:
        """Let only one of those who open, close or fork a session at it at a time."""
        lock = self._opening.get(session_id)
        if lock is None:
            self._opening = {k: v for k, v in self._opening.items() if v.locked()}
            lock = self._opening[session_id] = asyncio.Lock()
        return lock

    async def _open(self, session_id: str) -> LiveSession:
        session = self._live.get(session_id)
        if session is not None:
            if session.turn is not None or session.runner is not None:
                return session
            record = await self.store.get(session_id)
            if record.epoch == session.claim.epoch:
                return session
            await self._lost(session, "Another process took this session over")
        claim, record, broken = await self.store.claim(session_id)
        session = LiveSession(claim, record.info, record.state, record.lines, self._loop.time())
        if broken is not None:
            lines, changes, messages = recovered(broken, record, complete=self._agent.begins_entries)
            await self.store.seal(claim, lines, changes, messages=messages)
            session.lines += len(lines)
            if not isinstance(changes.state, UnsetType):
                session.state = changes.state
            if changes.title is not UNSET:
                session.title = changes.title
        return await self._enliven(session)

    async def _enliven(self, session: LiveSession) -> LiveSession:
        self._live[session.id] = session
        try:
            await self._agent.opened(session)
        except BaseException:
            del self._live[session.id]
            await self.store.release(session.claim)
            raise
        return session

    async def _retire(self, session: LiveSession) -> None:
        """Stop a session's work, tell nobody any more, and forget it."""
        self.cancel(session)
        if session.runner is not None:
            await asyncio.wait({session.runner})
        self._live.pop(session.id, None)
        for attachment in session.attachments:
            session.detach(attachment)
        try:
            await self._agent.closed(session)
        except Exception:
            log.exception("Closing a session failed in the agent")
        if session.unsealed is None:
            await self.store.release(session.claim)

    async def _lost(self, session: LiveSession, reason: str) -> None:
        """Let go of a session that another process writes now, and say so to its watchers (P4)."""
        self._live.pop(session.id, None)
        session.drop_all(reason)
        await self._agent.closed(session)

    async def _sweep(self) -> None:
        """Let idle sessions leave memory, and delete the ones that are too old, now and then."""
        pause = max(min(self._limits.idle / 4, 60.0), 0.01)
        pruned_at = float("-inf")
        while True:
            await asyncio.sleep(pause)
            now = self._loop.time()
            try:
                for session in list(self._live.values()):
                    if session.attachments or session.runner is not None:
                        session.idle_since = now
                    elif now - session.idle_since >= self._limits.idle:
                        await self.close(session.id)
                if self._limits.keep is not None and now - pruned_at > 3600:
                    pruned_at = now
                    await self.store.prune(_now() - int(self._limits.keep * 1_000_000))
            except StoreError as e:
                log.warning("Idle sessions could not be let go: %s", e)


def _finished(entries: list[Entry]) -> list[Entry]:
    """Take the entries of a running turn up to the first that is not finished."""
    for at, entry in enumerate(entries):
        is_call = entry.entity == "tool_call_update"
        if (is_call and entry.members.get("status") not in FINAL) or (
            at == len(entries) - 1 and entry.entity in ("agent_message", "agent_thought")
        ):
            return entries[:at]
    return entries


def _copied(state: SessionState) -> SessionState:
    return msgspec.json.decode(msgspec.json.encode(state), type=SessionState)


def _now() -> int:
    return time.time_ns() // 1_000
