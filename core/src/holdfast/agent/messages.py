"""The messages of a turn: where one ends and the next begins, and messages that an author begins by hand."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from holdfast.agent.decorators import unknown_name
from holdfast.await_guard import is_not_awaited, needs_async_with
from holdfast.model import new_id, text_event

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from holdfast.agent.turn_output import TurnOutput

MessageKind: TypeAlias = Literal["agent_message", "agent_thought"]

_last_said: ContextVar[object] = ContextVar("last_said")
"""Marks the last piece of text that was said in this task, or by the task that started it, before it was started."""


class _OpenMessage:
    __slots__ = ("id", "loop", "mark", "speaker")

    def __init__(self) -> None:
        self.id = new_id("msg")
        self.loop = asyncio.get_running_loop()  # to ask for it at each piece would take its time
        self.mark = object()
        self.speaker: asyncio.Task[Any] | None = None

    def is_ended_here(self) -> bool:
        """Return whether what the current task does comes after the message, and not beside it."""
        return _last_said.get(None) is self.mark or self.speaker is None or self.speaker.done()


class OpenMessages:
    """The messages of a turn that more text is added to: at most one that is said, and one that is thought.

    A message ends when its task does something else that is shown, as opening a tool call, or when a task does that
    which was started after the last piece of it. What other tasks do goes on beside it and does not cut it.
    """

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[MessageKind, _OpenMessage] = {}

    def add_to(self, kind: MessageKind) -> str:
        """Return the id of the message that the next piece of text belongs to."""
        message = self._open.get(kind)
        if message is None or len(self._open) > 1:
            self.end(besides=kind)
        if message is None:
            message = self._open[kind] = _OpenMessage()
        message.speaker = asyncio.current_task(message.loop)
        # Fresh each time: a task that was started before this piece works beside it, one that comes later, after it.
        message.mark = object()
        _last_said.set(message.mark)
        return message.id

    def end(self, besides: MessageKind | None = None) -> None:
        """End the messages that what happens now comes after."""
        for kind in list(self._open):
            if kind != besides and self._open[kind].is_ended_here():
                del self._open[kind]


class Message:
    """A message that was begun by hand: all that is said with it belongs to it, whatever happens meanwhile.

    ``async with turn.message() as message: await message.say("…")``
    """

    __module__ = "holdfast.agent"  # where everybody imports it from

    def __init__(self, output: TurnOutput, kind: MessageKind) -> None:
        self.id: str = new_id("msg")
        """Its id, as clients see it."""
        self._output = output
        self._kind: MessageKind = kind

    if not TYPE_CHECKING:  # type checkers say it too

        def __getattr__(self, name: str) -> object:
            from holdfast.agent.turn import Turn  # noqa: PLC0415  (a mistake)

            raise unknown_name("message", self, name, {"turn.{}": Turn})

    async def say(self, text: str) -> None:
        """Add text to it.

        Args:
            text: a piece of the message.

        Raises:
            UsageError: `text` is no string.

        """
        await self._output.say(text_event(f"{self._kind}_chunk", self.id, text))

    async def show(self, block: Mapping[str, Any]) -> None:
        """Add a content block that is not text, as an image.

        Args:
            block: the block as the protocol has it.

        Raises:
            UsageError: it is no mapping, or not what its `type` says.

        """
        await self._output.show_block(self._kind, self.id, block, "message.show")

    async def rewrite(self, text: str) -> None:
        """Replace all of it by something else. Version 1 clients keep what they were shown first.

        Args:
            text: what stands there instead.

        """
        await self._output.replace_message(self._kind, self.id, text)

    async def __aenter__(self) -> Self:
        self._output.messages.end()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave it as it is: what is said next with `turn.say` is another message."""

    if not TYPE_CHECKING:  # type checkers say it too
        __enter__ = __exit__ = needs_async_with
        __await__ = is_not_awaited
