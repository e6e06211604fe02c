"""`ClientSession`: one conversation with an agent, as a client has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.client.background import background_work, stop_request
from holdfast.client.turn import ClientTurn
from holdfast.client.updates import UpdateQueue, UpdateStream
from holdfast.errors import UsageError
from holdfast.model import History

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.client.history import SessionHistory
    from holdfast.client.open_session import OpenSession
    from holdfast.model import Update

_OPTIONAL_CONTENT = frozenset({"image", "audio", "resource"})
"""The types of content blocks that an agent must advertise; every agent takes text and links."""


class ClientSession:
    """A conversation with an agent."""

    def __init__(self, opened: OpenSession) -> None:
        self._opened = opened

    @property
    def id(self) -> str:
        """Its id, as the agent names it."""
        return self._opened.id

    @property
    def cwd(self) -> str:
        """Its working directory."""
        return self._opened.cwd

    @property
    def additional(self) -> tuple[str, ...]:
        """Its other directories."""
        return self._opened.additional

    @property
    def history(self) -> SessionHistory:
        """What was said and done: messages, tool calls, plans, in the order of their first appearance."""
        return self._opened.history

    @property
    def closed(self) -> bool:
        """Whether nothing more can be done in it."""
        return self._opened.closed

    def __repr__(self) -> str:
        return f"<session {self.id} in {self.cwd}>"

    # Prompts and updates

    def prompt(self, prompt: str | Sequence[Update], *, meta: Mapping[str, Any] | None = None) -> ClientTurn:
        """Prepare a turn. The prompt is sent once the turn is iterated over, awaited or entered.

        Args:
            prompt: a text, or content blocks.
            meta: `_meta` of the request.

        Returns:
            The turn.

        Raises:
            UsageError: the agent takes no images, audio or resources, and the prompt has one.

        """
        blocks = [{"type": "text", "text": prompt}] if isinstance(prompt, str) else list(prompt)
        for kind in _OPTIONAL_CONTENT.intersection(block.get("type") for block in blocks):
            self._opened.link.check_can(kind)
        params: Update = {"sessionId": self.id, "prompt": blocks}
        return ClientTurn(self._opened, params if meta is None else {**params, "_meta": dict(meta)})

    async def ask_text(self, prompt: str | Sequence[Update]) -> str:
        """Send a prompt and wait for the end of the turn.

        Args:
            prompt: a text, or content blocks.

        Returns:
            The agent's answer as text; several messages have a blank line between them.

        Raises:
            RemoteError: the turn failed.
            ProcessExited: the agent died.

        """
        history = History()
        async with self.prompt(prompt) as turn:
            async for update in turn:
                history.apply(update)
        return "\n\n".join(entry.text() for entry in history if entry.entity == "agent_message")

    async def cancel(self) -> None:
        """Cancel what the agent does and wait until a turn of ours has ended; do nothing if it does nothing.

        Raises:
            UsageError: the agent has not stopped ten seconds after it was first asked to.

        """
        opened = self._opened
        if opened.error is not None:
            raise opened.error.with_traceback(None)
        if (tracker := opened.running_turn()) is not None:
            await opened.stop_and_wait(tracker)
        elif self.running:
            opened.link.peer.notify("session/cancel", {"sessionId": self.id})

    async def stop_background(self, work_id: str) -> None:
        """Ask the agent to stop something that goes on beside the turns; the turn that runs is left alone.

        It has ended when it is no longer in `background`.

        Args:
            work_id: the id of one of `background`.

        Raises:
            UsageError: nothing of that id goes on.
            RemoteError: the agent refuses.

        """
        opened = self._opened
        opened.check_open()
        method, params = stop_request(self.background, work_id)
        await opened.link.request(method, {"sessionId": self.id, **params})

    def updates(self) -> UpdateStream:
        """Follow the session from now on, in turns and outside of them.

        Returns:
            An iterator over all updates.

        """
        queue = UpdateQueue()
        if self.closed:
            queue.end(self._opened.error)
        self._opened.watch(queue)
        return UpdateStream(queue)

    @property
    def running(self) -> bool:
        """Whether a turn is running, ours or another client's."""
        return self._opened.running_turn() is not None or self._opened.state != "idle"

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
    def background(self) -> dict[str, dict[str, Any]]:
        """By id, what goes on beside the turns: `type` (``terminal`` or ``tool_call``), `title`, perhaps `command`.

        Only version 2 of the protocol tells of it.
        """
        return background_work(self._opened.background, self.history)

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

    async def set(self, option: str, value: str | bool) -> None:  # noqa: FBT001
        """Set an option, the mode or the model, as the agent's author does: ``await session.set("mode", "auto")``.

        Args:
            option: the id of one of `options`; ``mode`` and ``model`` are that option, whatever the agent's id for it.
            value: one of its values, or True or False for a switch.

        Raises:
            UsageError: the session has no modes, or no models.
            RemoteError: the agent refuses.

        """
        opened = self._opened
        opened.check_open()
        option_id = self._id_of(option)
        method, params = opened.lifting.option_request(option_id, value)
        answer = await opened.link.request(method, {"sessionId": self.id, **params})
        opened.apply(opened.lifting.lift_option_answer(option_id, value, answer))

    async def fork(self, up_to: str | None = None) -> ClientSession:
        """Create a session with the history of this one, in the same directories; see `Connection.fork`.

        Args:
            up_to: the id of the message or tool call that the past ends with; by default it is whole.

        Returns:
            The new session.

        Raises:
            UsageError: the agent does not offer it.
            RemoteError: the agent refuses.

        """
        return await self._opened.link.public.fork(self.id, self.cwd, additional=self.additional, up_to=up_to)

    async def close(self) -> None:
        """Close the session: what the agent does in it is cancelled, what it has stored stays.

        An agent that does not answer is waited for no longer than ten seconds.
        """
        if self.closed:
            return
        await self._opened.link.close_session(self._opened)

    # Inside

    def _option_of(self, category: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = [option for option in self.options.values() if option.get("category") == category]
        return found[0] if found else {}

    def _id_of(self, option: str) -> str:
        if option not in ("mode", "model") or option in self.options:
            return option
        if not (found := self._option_of(option)):
            raise UsageError(f"this session has no {option}s to choose from")
        return str(found["configId"])


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
