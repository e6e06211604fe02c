"""`OpenSession`: the inner side of a `ClientSession`, for the connection, the turns and the services alone.

It folds what the agent sends, follows the turn that runs, and knows who watches. The program that uses the library sees
none of it: it holds the `ClientSession`, which is `public` here.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

from holdfast.client.history import SessionHistory
from holdfast.client.session import ClientSession
from holdfast.client.turn_tracker import TurnTracker
from holdfast.client.updates import SessionUpdate, UpdateQueue
from holdfast.errors import ConnectionLost, MessageLost, UsageError
from holdfast.model import Fold, event_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.client.agent_link import AgentLink
    from holdfast.client.dialect import Lifting
    from holdfast.client.services import OpenAsk
    from holdfast.client.terminals import Terminals
    from holdfast.model import Event, Update
    from holdfast.workspace import Files, Workspace

log: logging.Logger = logging.getLogger(__name__)

PATIENCE = 10.0
"""An agent that was asked to stop a turn has this many seconds for it; then nobody waits any longer."""

QUIET_SECONDS = 0.3
"""A replay that goes on after the answer to its request is over when nothing of it came for this long…"""

REPLAY_SECONDS = 10.0
"""…or after this long: what comes then may be a turn that is running."""


class OpenSession:
    """A session that is open at an agent."""

    def __init__(self, link: AgentLink, lifting: Lifting, session_id: str, cwd: str, additional: Sequence[str]) -> None:
        self.id = session_id
        self.cwd = cwd
        self.additional: tuple[str, ...] = tuple(additional)
        self.history: SessionHistory = SessionHistory()
        self.closed: bool = False
        self.workspace: Workspace | None = None
        self.files: Files | None = None
        """What the agent may read and write; created when it first asks."""
        self.terminals: Terminals | None = None
        """The commands the agent runs here; created with the first one."""
        self.asks: set[OpenAsk] = set()
        """Asks of the agent that are being answered."""
        self.lifting = lifting
        self.link = link
        self.state: str = "idle"
        self.background: tuple[Update, ...] = ()
        """What goes on beside the turns, as the agent's last `state_update` has it."""
        self.error: Exception | None = None
        """Why it is closed, where nobody closed it."""
        self._watchers: list[ref[UpdateQueue]] = []
        self._tracker: TurnTracker | None = None
        self._lost: list[str] = []  # why messages could not be read while it was being restored
        self._restoring = False
        self.public: ClientSession = ClientSession(self)
        """What the program that uses the library has of it."""

    def apply(self, events: Sequence[Event]) -> None:
        """Fold events into the history and hand them to whoever follows the session."""
        tracker = self.running_turn()
        for event in events:
            self.history.apply(event)
            if event.kind == "state_update":
                self._state_changed(event.update())
            if tracker is None and not self._watchers:
                continue
            update = SessionUpdate(event.kind, event.key, event.body, event.plain_text)
            if self._watchers:
                self._tell_watchers(update)
            if tracker is not None:
                tracker.take(update)

    def _state_changed(self, update: Update) -> None:
        self.state = update.get("state") or "idle"
        listed: Any = update.get("background")
        items = cast("list[object]", listed) if isinstance(listed, list) else []
        self.background = tuple(cast("Update", item) for item in items if isinstance(item, dict))

    def inherit(self, parent: OpenSession, up_to: str | None = None) -> None:
        """Begin with the history, title and usage of the session this one is a fork of, unless the agent told them.

        Of the history all, or what is up to and with the entry of an id.
        """
        if len(self.history):
            return
        for entry in parent.history:
            for update in entry.updates():
                self.history.apply(event_from(update))
            if up_to is not None and entry.key == up_to and entry.entity:
                break
        mine, theirs = self.public, parent.public
        if mine.title is None and theirs.title is not None:
            self.history.apply(event_from({"sessionUpdate": "session_info_update", "title": theirs.title}))
        if mine.usage is None and theirs.usage is not None:
            self.history.apply(event_from(theirs.usage))

    def message_lost(self, reason: str, *, may_be_the_end: bool) -> None:
        """Note that something the agent sent about this session could not be read (A4, P11).

        Whoever watches gets a notice; a turn that runs, and a `load` or `resume` under way, raise `MessageLost`.
        """
        title = "A message of the agent could not be read, so something is missing here"
        notice = {"sessionUpdate": "notice", "severity": "error", "title": title, "description": reason}
        self.apply([event_from(notice)])
        if self._restoring:
            self._lost.append(reason)
        if (tracker := self.running_turn()) is not None:
            tracker.message_lost(reason, may_be_the_end=may_be_the_end)

    async def restored(self, *, may_replay_late: bool) -> None:
        """Wait until the history is complete; raise `MessageLost` if a part of it could not be read.

        Agents of version 1 exist that go on with the replay after they have answered (Gemini): for one that may be such
        an agent, nothing may have come for a while.
        """
        if may_replay_late:
            await self._wait_for_quiet()
        if self._lost:
            raise MessageLost(self._lost)
        self._restoring = False

    def begin_restoring(self) -> None:
        """Note that what comes now is a replay."""
        self._restoring = True

    async def _wait_for_quiet(self) -> None:
        queue = UpdateQueue()
        self.watch(queue)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + REPLAY_SECONDS
        with suppress(StopAsyncIteration):
            while (quiet_at := min(loop.time() + QUIET_SECONDS, deadline)) > loop.time():
                try:
                    async with asyncio.timeout_at(quiet_at):
                        while (await queue.take()).rule.fold in (Fold.STATE, Fold.TRANSIENT):
                            pass  # commands and options come whenever an agent likes
                except TimeoutError:
                    # A program that was held up itself has not yet looked at what came meanwhile.
                    if loop.time() - quiet_at < QUIET_SECONDS / 4:
                        return

    async def settle(self) -> None:
        """Wait for the end of a turn that was left; raise `UsageError` if somebody still follows it."""
        while (tracker := self.running_turn()) is not None:
            if not tracker.abandoned:
                raise UsageError(
                    "a turn of this session is running: go to its end, leave it, or `await session.cancel()` first"
                )
            await self.stop_and_wait(tracker)

    async def begin(self, params: Update) -> TurnTracker:
        """Begin a turn."""
        await self.settle()
        self.check_open()
        prompt = self.lifting.lift_prompt(params["prompt"])
        tracker = self._tracker = TurnTracker(self.link.peer, self.lifting, params)
        self.apply(prompt)
        tracker.send()
        self.link.own(tracker.run(self.apply), f"turn of {self.id}")
        return tracker

    async def stop_to_close(self) -> float:
        """Stop what the agent does here; return until when, in the loop's time, it may take to answer the rest."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        if (tracker := self.running_turn()) is not None:
            with suppress(UsageError):
                await self.stop_and_wait(tracker)
            deadline = tracker.stop_deadline or deadline
        return deadline

    async def leave(self, tracker: TurnTracker) -> None:
        """Cancel a turn that nobody follows any more, and wait for its end."""
        self.abandon(tracker)
        with suppress(UsageError):
            await self.stop_and_wait(tracker)

    def abandon(self, tracker: TurnTracker) -> None:
        """Cancel a turn that nobody follows any more."""
        tracker.abandoned = True
        tracker.queue.end()
        self._stop(tracker)

    def end(self, error: Exception | None) -> None:
        """Note that nothing more will come of it; `error` says why, unless it was closed."""
        self.closed = True
        self.error = self.error or error
        self._withdraw_asks()
        if (tracker := self.running_turn()) is not None:
            tracker.give_up(error or ConnectionLost("the session was closed"))
        for reference in self._watchers:
            if (queue := reference()) is not None:
                queue.end(error)

    def watch(self, queue: UpdateQueue) -> None:
        """Put every update into a queue from now on, as long as somebody holds it."""
        self._watchers.append(ref(queue, self._watchers.remove))  # gone when whoever iterates over it is

    def _tell_watchers(self, update: SessionUpdate) -> None:
        for reference in tuple(self._watchers):
            if (queue := reference()) is not None:
                queue.put(update)

    def _stop(self, tracker: TurnTracker) -> None:
        if not tracker.ended.done() and tracker.stop_deadline is None:
            tracker.stop_deadline = asyncio.get_running_loop().time() + PATIENCE
            self.link.peer.notify("session/cancel", {"sessionId": self.id})
            self._withdraw_asks()

    def _withdraw_asks(self) -> None:
        for ask in self.asks:
            ask.withdraw()

    async def stop_and_wait(self, tracker: TurnTracker) -> None:
        """Ask a turn to stop and wait for its end; whoever waits for it, and how often, there is one deadline."""
        self._stop(tracker)
        try:
            async with asyncio.timeout_at(tracker.stop_deadline):
                await asyncio.shield(tracker.ended)
        except TimeoutError:
            log.warning("The agent does not stop its turn in session %s", self.id)
            raise UsageError(
                f"the agent was asked to stop {PATIENCE:.0f} seconds ago and has not: load the session again, or end"
                " the agent"
            ) from None

    def running_turn(self) -> TurnTracker | None:
        """Return the turn of ours that runs, or None."""
        return None if self._tracker is None or self._tracker.ended.done() else self._tracker

    def check_open(self) -> None:
        """Raise why nothing can be done in it any more, if that is so."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        if self.closed:
            raise UsageError(f"session {self.id} is closed; load or resume it to go on")
