"""`ClientSession`: one conversation with an agent, as a client has it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

from holdfast.client.history import SessionHistory
from holdfast.client.turn import ClientTurn
from holdfast.client.turn_tracker import TurnTracker
from holdfast.client.updates import SessionUpdate, UpdateQueue, UpdateStream
from holdfast.errors import ConnectionLost, MessageLost, UsageError
from holdfast.model import Fold, History, event_from

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.client.connection import Connection
    from holdfast.client.dialect import Lifting
    from holdfast.client.services import OpenAsk
    from holdfast.client.terminals import Terminals
    from holdfast.model import Event, Update
    from holdfast.workspace import Files

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""An agent that was asked to stop a turn has this many seconds for it; then nobody waits any longer."""

QUIET_SECONDS = 0.3
"""A replay that goes on after the answer to its request is over when nothing of it came for this long…"""

REPLAY_SECONDS = 10.0
"""…or after this long: what comes then may be a turn that is running."""


class ClientSession:
    """A conversation with an agent."""

    def __init__(
        self, connection: Connection, lifting: Lifting, session_id: str, cwd: str, additional: Sequence[str]
    ) -> None:
        self.id = session_id
        self.cwd = cwd
        self.additional = tuple(additional)
        self.history = SessionHistory()
        """What was said and done: messages, tool calls, plans, in the order of their first appearance."""
        self.closed = False
        self.files: Files | None = None
        """What the agent may read and write; created when it first asks."""
        self.terminals: Terminals | None = None
        """The commands the agent runs here; created with the first one."""
        self.asks: set[OpenAsk] = set()
        """Asks of the agent that are being answered."""
        self.lifting = lifting
        self._connection = connection
        self._watchers: list[ref[UpdateQueue]] = []
        self._tracker: TurnTracker | None = None
        self._state = "idle"
        self._error: Exception | None = None  # why it is closed, where nobody closed it
        self._lost: list[str] = []  # why messages could not be read while it was being restored
        self._restoring = False

    def __repr__(self) -> str:
        return f"<session {self.id} in {self.cwd}>"

    # Prompts and updates

    def prompt(self, prompt: str | Sequence[Update], *, meta: Mapping[str, Any] | None = None) -> ClientTurn:
        """Return a turn that sends a prompt, text or content blocks, once it is iterated over, awaited or entered."""
        blocks = [{"type": "text", "text": prompt}] if isinstance(prompt, str) else list(prompt)
        params: Update = {"sessionId": self.id, "prompt": blocks}
        return ClientTurn(self, params if meta is None else {**params, "_meta": dict(meta)})

    async def ask_text(self, prompt: str | Sequence[Update]) -> str:
        """Send a prompt and return the agent's answer as text; several messages have a blank line between them."""
        history = History()
        async with self.prompt(prompt) as turn:
            async for update in turn:
                history.apply(update)
        return "\n\n".join(entry.text() for entry in history if entry.entity == "agent_message")

    async def cancel(self) -> None:
        """Cancel what the agent does and wait until a turn of ours has ended; do nothing if it does nothing.

        Raises `UsageError` if the agent has not stopped ten seconds after it was first asked to.
        """
        if self._error is not None:
            raise self._error.with_traceback(None)
        if (tracker := self._running_turn()) is not None:
            await self._stop_and_wait(tracker)
        elif self.running:
            self._connection.peer.notify("session/cancel", {"sessionId": self.id})

    def updates(self) -> UpdateStream:
        """Return an iterator over all updates from now on, in turns and outside of them."""
        queue = UpdateQueue()
        if self.closed:
            queue.end(self._error)
        self._watch(queue)
        return UpdateStream(queue)

    @property
    def running(self) -> bool:
        """Whether a turn is running, ours or another client's."""
        return self._running_turn() is not None or self._state != "idle"

    # What is known of it

    @property
    def title(self) -> str | None:
        """Its title."""
        return self.history.state.get("session_info_update", {}).get("title")

    @property
    def usage(self) -> dict[str, Any] | None:
        """How much of the context is used: `used`, `size`, perhaps `cost`."""
        return self.history.state.get("usage_update")

    @property
    def commands(self) -> dict[str, dict[str, Any]]:
        """By name, the slash commands: `description`, `input`…"""  # noqa: D400, D415
        return dict(_keyed(self.history, "available_commands_update", "availableCommands", "name"))

    @property
    def options(self) -> dict[str, dict[str, Any]]:
        """By id, everything that can be set: `name`, `type` (``select`` or ``boolean``), `currentValue`, `options`…"""  # noqa: D400, D415
        return dict(_keyed(self.history, "config_option_update", "configOptions", "configId"))

    @property
    def mode(self) -> str | None:
        """The id of the current mode."""
        return self._option_of("mode").get("currentValue")

    @property
    def modes(self) -> dict[str, str]:
        """Ids of modes, and their names."""
        return dict(_choices(self._option_of("mode").get("options")))

    @property
    def model(self) -> str | None:
        """The id of the current model."""
        return self._option_of("model").get("currentValue")

    @property
    def models(self) -> dict[str, str]:
        """Ids of models, and their names."""
        return dict(_choices(self._option_of("model").get("options")))

    # Changing it

    async def set_mode(self, mode: str) -> None:
        """Set the mode."""
        await self._set_option_of("mode", mode)

    async def set_model(self, model: str) -> None:
        """Set the model."""
        await self._set_option_of("model", model)

    async def set_option(self, option_id: str, value: str | bool) -> None:  # noqa: FBT001
        """Set one of `options`."""
        self._check_open()
        method, params = self.lifting.option_request(option_id, value)
        answer = await self._connection.request(method, {"sessionId": self.id, **params})
        self.apply(self.lifting.lift_option_answer(option_id, value, answer))

    async def fork(self) -> ClientSession:
        """Create a session with the history of this one, in the same directories."""
        return await self._connection.fork(self.id, self.cwd, additional=self.additional)

    async def close(self) -> None:
        """Close the session: what the agent does in it is cancelled, what it has stored stays.

        An agent that does not answer is waited for no longer than ten seconds.
        """
        if self.closed:
            return
        deadline = asyncio.get_running_loop().time() + PATIENCE
        if (tracker := self._running_turn()) is not None:
            with suppress(UsageError):
                await self._stop_and_wait(tracker)
            deadline = tracker.stop_deadline or deadline
        await self._connection.close_session(self, deadline)

    # For the connection and the turns

    def apply(self, events: Sequence[Event]) -> None:
        """Fold events into the history and hand them to whoever follows the session."""
        tracker = self._running_turn()
        for event in events:
            self.history.apply(event)
            if event.kind == "state_update":
                self._state = event.update().get("state") or "idle"
            if tracker is None and not self._watchers:
                continue
            update = SessionUpdate(event.kind, event.key, event.body, event.plain_text)
            if self._watchers:
                self._tell_watchers(update)
            if tracker is not None:
                tracker.take(update)

    def inherit(self, parent: ClientSession) -> None:
        """Begin with the history, title and usage of the session this one is a fork of, unless the agent told them."""
        if len(self.history):
            return
        for update in parent.history.updates():
            self.history.apply(event_from(update))
        if self.title is None and parent.title is not None:
            self.history.apply(event_from({"sessionUpdate": "session_info_update", "title": parent.title}))
        if self.usage is None and parent.usage is not None:
            self.history.apply(event_from(parent.usage))

    def message_lost(self, reason: str, *, may_be_the_end: bool) -> None:
        """Note that something the agent sent about this session could not be read (A4, P11).

        Whoever watches gets a notice; a turn that runs, and a `load` or `resume` under way, raise `MessageLost`.
        """
        title = "A message of the agent could not be read, so something is missing here"
        notice = {"sessionUpdate": "notice", "severity": "error", "title": title, "description": reason}
        self.apply([event_from(notice)])
        if self._restoring:
            self._lost.append(reason)
        if (tracker := self._running_turn()) is not None:
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
        self._watch(queue)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + REPLAY_SECONDS
        with suppress(TimeoutError, StopAsyncIteration):
            while True:
                async with asyncio.timeout_at(min(loop.time() + QUIET_SECONDS, deadline)):
                    while (await queue.take()).rule.fold in (Fold.STATE, Fold.TRANSIENT):
                        pass  # commands and options come whenever an agent likes

    async def settle(self) -> None:
        """Wait for the end of a turn that was left; raise `UsageError` if somebody still follows it."""
        while (tracker := self._running_turn()) is not None:
            if not tracker.abandoned:
                raise UsageError(
                    "a turn of this session is running: go to its end, leave it, or `await session.cancel()` first"
                )
            await self._stop_and_wait(tracker)

    async def begin(self, params: Update) -> TurnTracker:
        """Begin a turn."""
        await self.settle()
        self._check_open()
        prompt = self.lifting.lift_prompt(params["prompt"])
        tracker = self._tracker = TurnTracker(self._connection.peer, self.lifting, params)
        self.apply(prompt)
        self._connection.own(tracker.run(self.apply), f"turn of {self.id}")
        return tracker

    async def leave(self, tracker: TurnTracker) -> None:
        """Cancel a turn that nobody follows any more, and wait for its end."""
        self.abandon(tracker)
        with suppress(UsageError):
            await self._stop_and_wait(tracker)

    def abandon(self, tracker: TurnTracker) -> None:
        """Cancel a turn that nobody follows any more."""
        tracker.abandoned = True
        tracker.queue.end()
        self._stop(tracker)

    def end(self, error: Exception | None) -> None:
        """Note that nothing more will come of it; `error` says why, unless it was closed."""
        self.closed = True
        self._error = self._error or error
        self._withdraw_asks()
        if (tracker := self._running_turn()) is not None:
            tracker.give_up(error or ConnectionLost("the session was closed"))
        for reference in self._watchers:
            if (queue := reference()) is not None:
                queue.end(error)

    # Inside

    def _watch(self, queue: UpdateQueue) -> None:
        self._watchers.append(ref(queue, self._watchers.remove))  # gone when whoever iterates over it is

    def _tell_watchers(self, update: SessionUpdate) -> None:
        for reference in tuple(self._watchers):
            if (queue := reference()) is not None:
                queue.put(update)

    def _stop(self, tracker: TurnTracker) -> None:
        if not tracker.ended.done() and tracker.stop_deadline is None:
            tracker.stop_deadline = asyncio.get_running_loop().time() + PATIENCE
            self._connection.peer.notify("session/cancel", {"sessionId": self.id})
            self._withdraw_asks()

    def _withdraw_asks(self) -> None:
        for ask in self.asks:
            ask.withdraw()

    async def _stop_and_wait(self, tracker: TurnTracker) -> None:
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

    def _running_turn(self) -> TurnTracker | None:
        return None if self._tracker is None or self._tracker.ended.done() else self._tracker

    def _check_open(self) -> None:
        if self._error is not None:
            raise self._error.with_traceback(None)
        if self.closed:
            raise UsageError(f"session {self.id} is closed; load or resume it to go on")

    def _option_of(self, category: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = [option for option in self.options.values() if option.get("category") == category]
        return found[0] if found else {}

    async def _set_option_of(self, category: str, value: str) -> None:
        self._check_open()
        option = self._option_of(category)
        if not option:
            raise UsageError(f"this session has no {category}s to choose from")
        await self.set_option(option["configId"], value)


def _keyed(history: History, kind: str, items: str, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a list that the agent has sent, each with its key; one without a key is left out."""
    listed: Any = history.state.get(kind, {}).get(items)
    for item in cast("list[Any]", listed) if isinstance(listed, list) else ():
        match item:
            case dict() if isinstance(name := cast("Update", item).get(key), str):
                yield name, cast("Update", item)
            case _:
                pass


def _choices(options: Any) -> Iterator[tuple[str, str]]:
    """Yield the values of an option and their names, those in groups too."""
    for item in cast("list[Any]", options) if isinstance(options, list) else ():
        match item:
            case {"options": [*group]}:
                yield from _choices(group)
            case {"value": str(value)}:
                yield value, str(cast("Update", item).get("name") or value)
            case _:
                pass
