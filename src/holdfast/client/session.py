"""`ClientSession`: one conversation as a client sees it, and `Prompting`, a turn in it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import WeakSet

from holdfast.client.feed import Feed
from holdfast.client.turns import Turn
from holdfast.errors import ConnectionLost, UsageError
from holdfast.model import History

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from holdfast.client.connection import Connection
    from holdfast.client.dialect import Lifting
    from holdfast.client.services import Ask
    from holdfast.client.terminals import Terminals
    from holdfast.model import Event, Update
    from holdfast.workspace import Files

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""An agent that was asked to stop has this many seconds for it before nobody waits any longer."""


class ClientSession:
    """A conversation with an agent."""

    def __init__(
        self, connection: Connection, lifting: Lifting, session_id: str, cwd: str, additional: Sequence[str]
    ) -> None:
        self.id = session_id
        self.cwd = cwd
        self.additional = tuple(additional)
        self.history = History()
        """What was said, by the same fold as the agent's own: messages, tool calls, plans, in order."""
        self.closed = False
        self.files: Files | None = None
        """What the agent may read and write, made when it first asks."""
        self.terminals: Terminals | None = None
        """The commands the agent runs here, from the first one on."""
        self.asks: set[Ask] = set()
        """Questions of the agent's that are being answered."""
        self.lifting = lifting
        self._connection = connection
        self._feeds: WeakSet[Feed] = WeakSet()
        self._turn: Turn | None = None
        self._state = "idle"

    def __repr__(self) -> str:
        return f"<session {self.id} in {self.cwd}>"

    # Talking

    def prompt(self, prompt: str | Sequence[Update]) -> Prompting:
        """Say something, text or content blocks, and watch what the agent does."""
        blocks = [{"type": "text", "text": prompt}] if isinstance(prompt, str) else list(prompt)
        return Prompting(self, blocks)

    async def ask_text(self, prompt: str | Sequence[Update]) -> str:
        """Say something and get the agent's answer as text; of several messages, all, with a blank line between."""
        said = History()
        async with self.prompt(prompt) as turn:
            async for event in turn:
                said.apply(event)
        return "\n\n".join(it.text() for it in said if it.entity == "agent_message")

    async def cancel(self) -> None:
        """Stop what the agent does; returns when a turn of ours has stopped. Nothing happens if it does nothing.

        Raises `UsageError` if the agent goes on all the same, after ten seconds.
        """
        if (turn := self._current()) is not None:
            self._stop(turn)
            await self._wait_for_end(turn)
        elif self.running:
            self._connection.notify("session/cancel", {"sessionId": self.id})

    def updates(self) -> Updates:
        """Watch all that happens from now on, in turns and outside of them."""
        feed = Feed()
        if self.closed:
            feed.end()
        self._feeds.add(feed)
        return Updates(feed)

    @property
    def running(self) -> bool:
        """Whether a turn is running, ours or another client's."""
        return self._current() is not None or self._state != "idle"

    # What is known of it

    @property
    def title(self) -> str | None:
        """What it is called."""
        return self.history.state.get("session_info_update", {}).get("title")

    @property
    def usage(self) -> dict[str, Any] | None:
        """How much of the context is used: `used`, `size`, perhaps `cost`."""
        return self.history.state.get("usage_update")

    @property
    def commands(self) -> dict[str, dict[str, Any]]:
        """By name, the slash commands: `description`, `input`…"""  # noqa: D400, D415
        return dict(_named(self.history, "available_commands_update", "availableCommands", "name"))

    @property
    def options(self) -> dict[str, dict[str, Any]]:
        """By id, everything that can be set: `name`, `type` (``select`` or ``boolean``), `currentValue`, `options`…"""  # noqa: D400, D415
        return dict(_named(self.history, "config_option_update", "configOptions", "configId"))

    @property
    def mode(self) -> str | None:
        """The mode it is in."""
        return self._category("mode").get("currentValue")

    @property
    def modes(self) -> dict[str, str]:
        """Ids of modes, and what they are called."""
        return dict(_choices(self._category("mode").get("options")))

    @property
    def model(self) -> str | None:
        """The model that answers."""
        return self._category("model").get("currentValue")

    @property
    def models(self) -> dict[str, str]:
        """Ids of models, and what they are called."""
        return dict(_choices(self._category("model").get("options")))

    # Changing it

    async def set_mode(self, mode: str) -> None:
        """Switch the mode."""
        await self._set_category("mode", mode)

    async def set_model(self, model: str) -> None:
        """Switch the model."""
        await self._set_category("model", model)

    async def set_option(self, option_id: str, value: str | bool) -> None:  # noqa: FBT001
        """Set one of `options`."""
        self._check_open()
        method, params = self.lifting.setting(option_id, value)
        answer = await self._connection.request(method, {"sessionId": self.id, **params})
        self.apply(self.lifting.was_set(option_id, value, answer))

    async def fork(self) -> ClientSession:
        """Begin a conversation with the past of this one, in the same directories."""
        return await self._connection.fork(self.id, self.cwd, additional=self.additional)

    async def close(self) -> None:
        """End the conversation: what the agent does in it is cancelled, what it has stored stays."""
        if self.closed:
            return
        if (turn := self._current()) is not None:
            self._stop(turn)
            with suppress(UsageError):
                await self._wait_for_end(turn)
        await self._connection.close_session(self)

    # Inside

    def apply(self, events: Sequence[Event]) -> None:
        """Take what happened."""
        turn = self._current()
        for event in events:
            self.history.apply(event)
            if event.kind == "state_update":
                self._state = event.update().get("state") or "idle"
            if self._feeds:
                for feed in self._feeds:
                    feed.put(event)
            if turn is not None:
                turn.see(event)

    async def settle(self) -> None:
        """Wait for the end of a turn that was left; refuse to wait for one that somebody looks at."""
        while (turn := self._current()) is not None:
            if not turn.abandoned:
                raise UsageError(
                    "a turn of this session is running: go to its end, leave it, or `await session.cancel()` first"
                )
            await self._wait_for_end(turn)

    async def begin(self, blocks: Sequence[Update]) -> Turn:
        """Begin a turn."""
        await self.settle()
        self._check_open()
        turn = self._turn = Turn(self._connection.peer, self.lifting, self.id, blocks)
        self.apply(self.lifting.said(blocks))
        self._connection.own(turn.run(self.apply), f"turn of {self.id}")
        return turn

    async def leave(self, turn: Turn) -> None:
        """Stop a turn that nobody looks at any more, and wait for its end."""
        self.abandon(turn)
        with suppress(UsageError):
            await self._wait_for_end(turn)

    def abandon(self, turn: Turn) -> None:
        """Stop a turn that nobody looks at any more."""
        turn.abandoned = True
        turn.feed.end()
        self._stop(turn)

    def end(self, error: Exception | None) -> None:
        """Note that nothing more will be heard of it."""
        self.closed = True
        self._give_up_asking()
        if (turn := self._current()) is not None:
            turn.lost(error or ConnectionLost("the session was closed"))
        for feed in self._feeds:
            feed.end(error)

    def _stop(self, turn: Turn) -> None:
        if not turn.ended.done() and not turn.cancelling:
            turn.cancelling = True
            self._connection.notify("session/cancel", {"sessionId": self.id})
            self._give_up_asking()

    def _give_up_asking(self) -> None:
        for ask in self.asks:
            ask.withdraw()

    async def _wait_for_end(self, turn: Turn) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.shield(turn.ended)
        except TimeoutError:
            log.warning("The agent does not stop its turn in session %s", self.id)
            raise UsageError(
                f"the agent was asked to stop {PATIENCE:.0f} seconds ago and has not: load the session again, or end"
                " the agent"
            ) from None

    def _current(self) -> Turn | None:
        return None if self._turn is None or self._turn.ended.done() else self._turn

    def _check_open(self) -> None:
        if self.closed:
            raise UsageError(f"session {self.id} is closed; load or resume it to go on")

    def _category(self, category: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = [it for it in self.options.values() if it.get("category") == category]
        return found[0] if found else {}

    async def _set_category(self, category: str, value: str) -> None:
        option = self._category(category)
        if not option:
            raise UsageError(f"this session has no {category}s to choose from")
        await self.set_option(option["configId"], value)


class Updates:
    """All that happens in a session: an async iterator of events, which ends when the session is closed."""

    __slots__ = ("_feed",)

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        return await self._feed.take()


class Prompting:
    """A turn: nothing is sent before it is iterated over, awaited, or entered with `async with`.

    Its updates end with the turn; one that failed raises `RemoteError` after the last of them, one whose agent has died
    `ProcessExited`.
    """

    __slots__ = ("_blocks", "_loop", "_session", "_turn")

    def __init__(self, session: ClientSession, blocks: Sequence[Update]) -> None:
        self._session = session
        self._blocks = blocks
        self._turn: Turn | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def stop_reason(self) -> str | None:
        """Why it ended: ``end_turn``, ``cancelled``, ``max_tokens``, ``refusal``… None while it has not."""
        return None if self._turn is None else self._turn.stop_reason

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        turn = self._turn or await self._begin()
        try:
            return await turn.feed.take()
        except asyncio.CancelledError:
            await self._session.leave(turn)
            raise

    def __await__(self) -> Generator[Any, None, str | None]:
        return self._to_the_end().__await__()

    async def __aenter__(self) -> Self:
        if self._turn is None:
            await self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._turn is not None and not self._turn.ended.done():
            await self._session.leave(self._turn)

    def __del__(self) -> None:
        turn, loop = self._turn, self._loop
        if turn is not None and loop is not None and not turn.ended.done():
            turn.abandoned = True
            with suppress(RuntimeError):  # the loop may be closed
                loop.call_soon_threadsafe(self._session.abandon, turn)

    async def _begin(self) -> Turn:
        self._turn = await self._session.begin(self._blocks)
        self._loop = asyncio.get_running_loop()
        return self._turn

    async def _to_the_end(self) -> str | None:
        async for _ in self:
            pass
        return self.stop_reason


def _named(history: History, kind: str, items: str, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Go through what an agent lists, leaving out what has no name."""
    listed: Any = history.state.get(kind, {}).get(items)
    for it in cast("list[Any]", listed) if isinstance(listed, list) else ():
        match it:
            case dict() if isinstance(name := cast("Update", it).get(key), str):
                yield name, cast("Update", it)
            case _:
                pass


def _choices(options: Any) -> Iterator[tuple[str, str]]:
    for it in cast("list[Any]", options) if isinstance(options, list) else ():
        match it:
            case {"options": [*group]}:
                yield from _choices(group)
            case {"value": str(value)}:
                yield value, str(cast("Update", it).get("name") or value)
            case _:
                pass
