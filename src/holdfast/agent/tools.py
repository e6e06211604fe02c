"""A tool call as the author of an agent sees it: opened, filled, and closed by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from holdfast.agent.diffs import diff_content
from holdfast.agent.terminals import Finished, run_in_terminal
from holdfast.errors import UsageError
from holdfast.model import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from holdfast.agent.turn import Turn
    from holdfast.model import ToolKind, Update


class ToolCall:
    """One use of a tool, shown to the user while it goes on.

    ``async with turn.tool("Read thermometer", kind="read") as call: …`` — leaving the block completes the call, an
    exception fails it, a cancellation cancels it. One that is `pending` waits, for the rest of its input or for the
    user's permission, until `begin`.
    """

    def __init__(
        self,
        turn: Turn,
        title: str,
        kind: ToolKind,
        input: object,
        locations: Sequence[str | tuple[str, int]],
        name: str | None,
        *,
        pending: bool,
        cancellable: bool = False,
    ) -> None:
        self.id = new_id("call")
        self.title = title
        self.is_empty = True
        """Whether it shows nothing yet."""
        self.cancelled = False
        """Whether the user has cancelled it, and not the whole turn."""
        self._cancellable = cancellable
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._turn = turn
        self._status = ""
        self._first: Update = {"title": title, "kind": kind, "status": "pending" if pending else "in_progress"}
        if name is not None:
            self._first["name"] = name
        self._first |= self._about(input, locations)

    def _about(self, input: object, locations: Sequence[str | tuple[str, int]]) -> Update:
        about: Update = {}
        if input is not None:
            about["rawInput"] = input
        if locations:
            about["locations"] = [
                {"path": self._turn.absolute(path), "line": line} if line else {"path": self._turn.absolute(path)}
                for path, line in ((location, 0) if isinstance(location, str) else location for location in locations)
            ]
        return about

    async def describe(
        self, title: str, *, input: object = None, locations: Sequence[str | tuple[str, int]] = ()
    ) -> None:
        """Set title, input and locations where they were not known when the call was opened."""
        self.title = title
        self.update({"title": title, **self._about(input, locations)})

    async def begin(self) -> None:
        """Show that it is done now: it was pending until here."""
        self.update({"status": "in_progress"})

    async def text(self, text: str) -> None:
        """Add text to what it shows."""
        await self.content({"type": "text", "text": text})

    async def content(self, block: Mapping[str, Any]) -> None:
        """Add a content block to what it shows."""
        await self._add({"type": "content", "content": checked_block(block)})

    async def diff(self, path: str, old: str | None, new: str) -> None:
        """Show a change of a file by its old text (None: there was no file) and its new text."""
        await self._add(diff_content(self._turn.absolute(path), old, new))

    async def terminal(
        self,
        *command: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        limit: int = 1 << 20,
        cancellable: bool = False,
    ) -> Finished:
        """Run a command and show its output as it comes. It is killed, whatever it started too, with the turn.

        Return its exit status and the last `limit` bytes of its output. Of a long output the middle is not shown. One
        that is `cancellable` can be stopped by the user alone (version 2 clients); this returns then.
        """
        cwd = self._turn.absolute(cwd or ".")
        return await run_in_terminal(self, command, cwd, env, limit, cancellable=cancellable)

    async def output(self, value: object) -> None:
        """Set the raw output of the tool: any JSON value."""
        self.update({"rawOutput": value})

    async def fail(self, reason: str) -> None:
        """Show why the tool failed; the call ends as failed."""
        await self.text(reason)
        self._status = "failed"

    def update(self, members: Update) -> None:
        """Change what is known of it; the newest protocol version's names."""
        self._turn.emit_beside({"sessionUpdate": "tool_call_update", "toolCallId": self.id, **members})

    async def _add(self, item: Update) -> None:
        self.is_empty = False
        self._turn.emit_beside({"sessionUpdate": "tool_call_content_chunk", "toolCallId": self.id, "content": item})
        await self._turn.give_way()

    async def add_terminal(self, terminal_id: str) -> None:
        """Show a terminal in it."""
        await self._add({"type": "terminal", "terminalId": terminal_id})

    def emit(self, update: Update) -> None:
        """Emit another update in the same turn, beside what is being said."""
        self._turn.emit_beside(update)

    def start(self) -> Self:
        """Show that it began."""
        self._turn.end_messages()
        self.update(self._first)
        return self

    def close(self, status: str) -> None:
        """Show that it ended."""
        self._turn.end_messages()
        controls = {"capabilities": None} if self._cancellable else {}
        self.update({"status": self._status or status, **controls})

    def offer_cancel(self, terminal_id: str, cancel: Callable[[], None]) -> None:
        """Allow clients to stop a terminal by itself."""
        self._turn.offer_cancel(terminal_id, cancel)

    def withdraw_cancel(self, terminal_id: str) -> None:
        """Allow that no longer."""
        self._turn.withdraw_cancel(terminal_id)

    def cancel(self) -> None:
        """Cancel what is done in its ``async with`` block, and nothing else of the turn."""
        if self._task is not None and not self.cancelled:
            self.cancelled = True
            self._task.cancel()

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        if self._cancellable and self._task is not None:
            self._cancelling = self._task.cancelling()
            self._first["capabilities"] = {"cancel": {}}
            self._turn.offer_cancel(self.id, self.cancel)
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._turn.withdraw_cancel(self.id)
        was_cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        # As `asyncio.timeout` does: a cancellation of the whole turn at the same time goes on.
        only_this = self.cancelled and self._task is not None and self._task.uncancel() <= self._cancelling
        if not self._turn.is_over:
            self.close("completed" if kind is None else "cancelled" if was_cancelled else "failed")
        return True if was_cancelled and only_this else None


def checked_block(block: Mapping[str, Any]) -> Update:
    """Return a content block as a dict; raise `UsageError` for what is no mapping. What is in it is checked later."""
    if not isinstance(block, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  (agent code may give anything)
        raise UsageError(f"a content block must be a mapping, not {type(cast('object', block)).__name__}")
    return dict(block)
