"""What a turn shows: `TurnOutput` is how the parts of a turn, as its tool calls and messages, put updates into it.

Authors see none of this: they have a `Turn`, and what that hands out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from holdfast.agent.messages import OpenMessages
from holdfast.errors import UsageError
from holdfast.model import checked_event, checked_text, event_from, split_update

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from holdfast.agent.messages import MessageKind
    from holdfast.engine import LiveTurn
    from holdfast.model import Event, Update

AT_ONCE = 4 << 20
"""Text of more bytes is said in parts, so that whoever reads can keep up: all at once may be too much unread (P7)."""


class TurnOutput:
    """Puts updates into a turn, and beside the turns; knows which message is being said."""

    __slots__ = ("_cwd", "_turn", "messages")

    def __init__(self, turn: LiveTurn, cwd: str) -> None:
        self.messages: OpenMessages = OpenMessages()
        self._turn = turn
        self._cwd = cwd

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be said in the turn."""
        return not self._turn.running

    def absolute(self, path: str) -> str:
        """Return a path made absolute, as clients want paths; raise `UsageError` for what is none."""
        if not isinstance(path, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (agent code may give anything)
            path = checked_path(path)
        return path if os.path.isabs(path) else os.path.normpath(os.path.join(self._cwd, path))  # noqa: PTH117, PTH118

    # Updates

    def emit(self, update: Update, said_by: str = "") -> None:
        """Emit any update; what is said next is a new message. An error names the author's verb if it is given."""
        event = checked_event(update, said_by)
        self.messages.end()
        self._turn.emit(event)

    def emit_beside(self, update: Update, said_by: str = "") -> None:
        """Emit an update that does not end the message which is being said."""
        self._turn.emit(checked_event(update, said_by))

    def emit_in_background(self, update: Update, said_by: str = "") -> None:
        """Emit an update of work that goes on beside the turns: in whatever turn runs now, or between turns."""
        self._turn.session.emit(checked_event(update, said_by))

    async def emit_text(self, event: Event) -> None:
        """Emit an event whose content is text, however long."""
        if len(event.body) <= AT_ONCE:
            if self._turn.emit(event):
                await self._turn.drain()
            return
        for part in split_update(event.update(), AT_ONCE):
            self._turn.emit(event_from(part))
            await self.give_way()

    async def give_way(self) -> None:
        """Wait while everybody who watches is behind."""
        if self._turn.congested:
            await self._turn.drain()

    # Messages

    async def say(self, event: Event) -> None:
        """Emit a piece of a message; one that is empty is none."""
        if event.plain_text:
            await self.emit_text(event)

    async def show_block(self, kind: MessageKind, message_id: str, block: Mapping[str, Any], said_by: str) -> None:
        """Add a content block to a message."""
        content = checked_block(block, said_by)
        self.emit_beside({"sessionUpdate": f"{kind}_chunk", "messageId": message_id, "content": content}, said_by)
        await self.give_way()

    async def replace_message(self, kind: MessageKind, message_id: str, text: str) -> None:
        """Replace all of a message by a text."""
        content = [{"type": "text", "text": checked_text(text)}]
        await self.emit_text(checked_event({"sessionUpdate": kind, "messageId": message_id, "content": content}))

    def add_usage(self, input_tokens: int, output_tokens: int) -> None:
        """Add tokens to those that the client is told at the end of the turn."""
        before: Update = self._turn.answer.get("usage", {})
        taken = before.get("inputTokens", 0) + input_tokens, before.get("outputTokens", 0) + output_tokens
        usage = {"totalTokens": sum(taken), "inputTokens": taken[0], "outputTokens": taken[1]}
        self._turn.answer = {**self._turn.answer, "usage": usage}

    # What goes on beside the turns, and what clients may cancel by itself

    def work_in_background(self, item: Update, stop: Callable[[], Awaitable[None]]) -> None:
        """List work that goes on beside the turns, until `end_in_background`; `stop` makes it end."""
        self._turn.session.work_in_background(item, stop)

    def end_in_background(self, id: str) -> None:
        """List work no longer."""
        if self._turn.session.background is not None:
            self._turn.session.background.end(id)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start something that is finished before the process ends in order."""
        self._turn.session.start(work)

    def offer_cancel(self, id: str, cancel: Callable[[], None]) -> None:
        """Allow clients to cancel a tool call or a terminal by itself."""
        self._turn.cancels[id] = cancel

    def withdraw_cancel(self, id: str) -> None:
        """Allow that no longer."""
        self._turn.cancels.pop(id, None)


def text_parts(text: str) -> Iterable[str]:
    """Return a text in parts that can be shown one after the other; what is none, as it is."""
    if not isinstance(text, str) or len(text) <= AT_ONCE:  # pyright: ignore[reportUnnecessaryIsInstance]  (agent code may give anything)
        return (text,)
    return (text[at : at + AT_ONCE] for at in range(0, len(text), AT_ONCE))


PLAN = 'turn.plan(["Look", ("Act", "in_progress"), {"content": "Test", "status": "pending"}])'
"""What a plan can be made of, for an author who has made one of something else."""


def plan_entries(entries: Iterable[str | tuple[str, str] | tuple[str, str, str] | Mapping[str, Any]]) -> list[Update]:
    """Return the entries of a plan as the protocol has them; raise `UsageError` for what is no list of them."""
    if isinstance(entries, str):
        raise UsageError("a plan is a list; write `turn.plan([…])`, or `turn.plan_markdown(…)` for a whole text")
    if isinstance(entries, Mapping) or not isinstance(entries, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  (agent code may give anything)
        raise UsageError(f"turn.plan: a plan is a list, not {type(cast('object', entries)).__name__}; write `{PLAN}`")
    return [_plan_entry(entry) for entry in entries]


def _plan_entry(entry: Any) -> Update:
    members: dict[str, object] = {"status": "pending", "priority": "medium"}
    match entry:
        case str():
            return {"content": entry, **members}
        case Mapping():
            return {**members, **entry}
        case (content,) | (content, _) | (content, _, _):
            return {
                "content": content,
                **members,
                **dict(zip(members, entry[1:], strict=False)),
            }
        case _:
            raise UsageError(f"turn.plan: an entry cannot be {entry!r}; write `{PLAN}`")


def checked_block(block: Mapping[str, Any], said_by: str) -> Update:
    """Return a content block as a dict; raise `UsageError` for what is no mapping. What is in it is checked later."""
    if not isinstance(block, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  (agent code may give anything)
        given = type(cast("object", block)).__name__
        raise UsageError(f'{said_by}: a content block must be a mapping, not {given}; write `{{"type": "image", …}}`')
    return dict(block)


def checked_path(path: object) -> str:
    """Return a path as a string; raise `UsageError` for what is none."""
    if isinstance(path, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", path))
    if not isinstance(path, str):
        raise UsageError(f"a path must be a string, not {type(path).__name__}")
    return path
