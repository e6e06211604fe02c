"""A tool call as the author of an agent sees it: opened, filled, and closed by itself."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, cast

from holdfast.agent.decorators import called_as, unknown_name
from holdfast.agent.turn_output import checked_block, checked_path, text_parts
from holdfast.await_guard import is_not_awaited, needs_async_with
from holdfast.errors import HoldfastError, UsageError
from holdfast.model import checked_event, checked_text, new_id
from holdfast.model.diffs import diff_content

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
    from types import TracebackType

    from holdfast.agent.terminals import BackgroundTerminal, Finished
    from holdfast.agent.turn_output import TurnOutput
    from holdfast.model import ToolKind, Update

log: logging.Logger = logging.getLogger(__name__)

STOP_SECONDS = 5.0
"""Work in the background that is cancelled and goes on is not waited for after this time."""


class ToolCall:
    """One use of a tool, shown to the user while it goes on.

    ``async with turn.tool("Read thermometer", kind="read") as call: …`` — leaving the block completes the call, an
    exception fails it, a cancellation cancels it. One that is `pending` waits, for the rest of its input or for the
    user's permission, until `begin`.

    Attributes:
        id: its id, as clients see it.
        title: what is done, for people to read.
        cancelled: whether the user has cancelled it, and not the whole turn.

    """

    __module__ = "holdfast"  # where everybody imports it from

    def __init__(
        self,
        output: TurnOutput,
        title: str,
        kind: ToolKind,
        input: object,
        locations: Sequence[str | tuple[str, int]],
        name: str | None,
        *,
        pending: bool,
        cancellable: bool = False,
    ) -> None:
        self.id: str = new_id("call")
        self.title: str = title
        self.is_empty: bool = True
        """Whether it shows nothing yet."""
        self.cancelled: bool = False
        """Whether the user has cancelled it, and not the whole turn."""
        self._cancellable = cancellable
        self._task: asyncio.Task[Any] | None = None
        self._work: Coroutine[Any, Any, object] | None = None
        self._is_open = self._goes_on = False
        self._cancelling = 0
        self._output = output
        self._status = ""
        self._first: Update = {"title": title, "kind": kind, "status": "pending" if pending else "in_progress"}
        if name is not None:
            self._first["name"] = name
        self._first |= self._about(input, locations)
        # At the line that has the mistake, whether or not anybody opens the call.
        checked_event({"sessionUpdate": "tool_call_update", "toolCallId": self.id, **self._first}, "turn.tool")

    def _about(self, input: object, locations: Sequence[str | tuple[str, int]]) -> Update:
        about: Update = {}
        if input is not None:
            about["rawInput"] = input
        if locations:
            about["locations"] = [
                {"path": self._output.absolute(path), "line": line} if line else {"path": self._output.absolute(path)}
                for path, line in map(_location, locations)
            ]
        return about

    if not TYPE_CHECKING:  # type checkers say it too

        def __getattr__(self, name: str) -> object:
            from holdfast.agent.turn import Turn  # noqa: PLC0415  (a mistake)

            raise unknown_name("call", self, name, {"turn.{}": Turn})

    @called_as('await call.describe("Read file", input={"path": "a.txt"})')
    async def describe(
        self, title: str, *, input: object = None, locations: Sequence[str | tuple[str, int]] = ()
    ) -> None:
        """Set title, input and locations where they were not known when the call was opened.

        Args:
            title: what is done, for people to read.
            input: what the tool is called with, any JSON value.
            locations: the files it is about: paths, or paths with a line.

        """
        self.title = title
        self.update({"title": title, **self._about(input, locations)}, "call.describe")

    async def begin(self) -> None:
        """Show that it is done now: it was pending until here."""
        self.update({"status": "in_progress"})

    async def text(self, text: str) -> None:
        """Add text to what it shows.

        Args:
            text: the text.

        """
        for part in text_parts(checked_text(text)):
            await self.content({"type": "text", "text": part})

    async def content(self, block: Mapping[str, Any]) -> None:
        """Add a content block to what it shows.

        Args:
            block: the block as the protocol has it, as an image.

        Raises:
            UsageError: it is no mapping, or not what its `type` says.

        """
        await self._add({"type": "content", "content": checked_block(block, "call.content")}, "call.content")

    @called_as("await call.diff(path, old, new)")
    async def diff(self, path: str, old: str | None, new: str) -> None:
        """Show a change of a file. Nothing is written: `turn.files` does that.

        Args:
            path: the file, relative to the session's directory or absolute.
            old: its text before; None where there was no file.
            new: its text afterwards.

        """
        if not isinstance(new, str) or not isinstance(old, str | None):  # pyright: ignore[reportUnnecessaryIsInstance]  (agent code may give anything)
            raise UsageError("call.diff: `old` and `new` are texts, and `old` is None for a new file")
        await self._add(diff_content(self._output.absolute(path), old, new), "call.diff")

    async def terminal(
        self,
        *command: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        limit: int = 1 << 20,
        cancellable: bool = False,
    ) -> Finished:
        """Run a command and show its output as it comes. It is killed, whatever it started too, with the turn.

        Of a long output the middle is not shown.

        Args:
            command: the program and its arguments. No shell reads them: ``"sh", "-c", line`` starts one.
            cwd: the directory it runs in, by default the session's.
            env: environment variables for it, besides those of ours that are known to hold no secrets.
            limit: how many bytes of its output are returned, the last of them.
            cancellable: whether the user can stop it alone (version 2 clients); this returns then.

        Returns:
            Its exit status and the last of its output.

        Raises:
            UsageError: it cannot be started.

        """
        self._need_open()
        cwd = self._output.absolute(cwd or ".")
        from holdfast.agent.terminals import run_in_terminal  # noqa: PLC0415  (few agents run commands)

        return await run_in_terminal(self, command, cwd, env, limit, cancellable=cancellable)

    async def start_terminal(
        self, *command: str, cwd: str | None = None, env: Mapping[str, str] | None = None, limit: int = 1 << 20
    ) -> BackgroundTerminal:
        """Start a command that goes on after this call and after the turn, as a server does.

        Its output is shown in this call as it comes. It ends by itself, by `stop`, when the user cancels it alone
        (version 2 clients, who are told that it runs), or with the session; cancelling a turn leaves it alone.

        Args:
            command: the program and its arguments.
            cwd: the directory it runs in, by default the session's.
            env: environment variables for it, besides those of ours that are known to hold no secrets.
            limit: how many bytes of its output are kept, the last of them.

        Returns:
            The command, at once. Keep it in `session.live` to find it in a later turn.

        Raises:
            UsageError: the turn is over, or the command cannot be started.

        """
        self._need_open()
        if self._output.is_over:
            raise UsageError("a command is started in a turn, and this one is over")
        from holdfast.agent.terminals import start_in_terminal  # noqa: PLC0415  (few agents run commands)

        return await start_in_terminal(self, command, self._output.absolute(cwd or "."), env, limit)

    def go_on(self, work: Coroutine[Any, Any, object]) -> None:
        """Let the call go on after its ``async with`` block and after the turn, and end when `work` ends.

        Version 2 clients are told that it runs, and may cancel it alone. It is cancelled with the session.

        Args:
            work: a coroutine that the session awaits from the end of the block on. It may use this call; an exception
                in it fails the call.

        Raises:
            UsageError: the call goes on with something else already.

        """
        self._need_open()
        if self._work is not None:
            raise UsageError("this call goes on with something else already")
        self._work = work

    async def output(self, value: object) -> None:
        """Set the raw output of the tool.

        Args:
            value: any JSON value.

        """
        self.update({"rawOutput": value}, "call.output")

    async def fail(self, reason: str) -> None:
        """Show why the tool failed; the call ends as failed.

        Args:
            reason: why, for people to read.

        """
        await self.text(reason)
        self._status = "failed"

    def update(self, members: Update, said_by: str = "turn.tool") -> None:
        """Change what is known of it; the newest protocol version's names."""
        self.emit({"sessionUpdate": "tool_call_update", "toolCallId": self.id, **members}, said_by)

    async def _add(self, item: Update, said_by: str = "turn.tool") -> None:
        self.is_empty = False
        self.emit({"sessionUpdate": "tool_call_content_chunk", "toolCallId": self.id, "content": item}, said_by)
        await self._output.give_way()

    async def add_terminal(self, terminal_id: str) -> None:
        """Show a terminal in it."""
        await self._add({"type": "terminal", "terminalId": terminal_id})

    def emit(self, update: Update, said_by: str = "") -> None:
        """Emit another update in the same turn, beside what is being said; where it goes on, beside the turns."""
        self._need_open()
        if self._goes_on:
            self._output.emit_in_background(update, said_by)
        else:
            self._output.emit_beside(update, said_by)

    def emit_in_background(self, update: Update) -> None:
        """Emit an update of something that goes on beside the turns."""
        self._output.emit_in_background(update)

    def work_in_background(self, item: Update, stop: Callable[[], Awaitable[None]]) -> None:
        """List work that goes on beside the turns."""
        self._output.work_in_background(item, stop)

    def end_in_background(self, id: str) -> None:
        """List work no longer."""
        self._output.end_in_background(id)

    def start_work(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work that the session owns."""
        self._output.start(work)

    def _need_open(self) -> None:
        """Raise `UsageError` where nobody was shown that it began."""
        if not self._is_open:
            raise UsageError(f"the tool call {self.title!r} is not open; write `async with turn.tool(…) as call:`")

    def start(self) -> Self:
        """Show that it began."""
        self._is_open = True
        self._output.messages.end()
        self.update(self._first)
        return self

    def close(self, status: str) -> None:
        """Show that it ended."""
        self._output.messages.end()
        controls = {"capabilities": None} if self._cancellable else {}
        self.update({"status": self._status or status, **controls})

    def offer_cancel(self, terminal_id: str, cancel: Callable[[], None]) -> None:
        """Allow clients to stop a terminal by itself."""
        self._output.offer_cancel(terminal_id, cancel)

    def withdraw_cancel(self, terminal_id: str) -> None:
        """Allow that no longer."""
        self._output.withdraw_cancel(terminal_id)

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
            self._output.offer_cancel(self.id, self.cancel)
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._output.withdraw_cancel(self.id)
        was_cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        # As `asyncio.timeout` does: a cancellation of the whole turn at the same time goes on.
        only_this = self.cancelled and self._task is not None and self._task.uncancel() <= self._cancelling
        if self._work is not None and kind is None and not self._output.is_over:
            self._begin_to_go_on(self._work)
            return None
        if self._work is not None:
            self._work.close()
        if not self._output.is_over:
            self.close("completed" if kind is None else "cancelled" if was_cancelled else "failed")
        return True if was_cancelled and only_this else None

    if not TYPE_CHECKING:  # type checkers say it too
        __enter__ = __exit__ = needs_async_with
        __await__ = is_not_awaited

    def _begin_to_go_on(self, work: Coroutine[Any, Any, object]) -> None:
        self._goes_on = self._cancellable = True
        self.update({"capabilities": {"cancel": {}}})
        task = asyncio.get_running_loop().create_task(self._finish(work), name=f"work of {self.id}")

        async def stop() -> None:
            task.cancel()
            await asyncio.wait({task}, timeout=STOP_SECONDS)
            self.end_in_background(self.id)

        async def follow() -> None:
            await asyncio.wait({task})

        self.work_in_background({"type": "tool_call", "toolCallId": self.id}, stop)
        self.start_work(follow())

    async def _finish(self, work: Coroutine[Any, Any, object]) -> None:
        status = "failed"
        try:
            await work
            status = "completed"
        except asyncio.CancelledError:
            status = "cancelled"
        except Exception:
            log.exception("What goes on in the background failed")
        finally:
            with suppress(HoldfastError):  # the session may not be ours any more
                self.close(status)
            self.end_in_background(self.id)


def _location(location: Any) -> tuple[str, int]:
    """Return a path and its line, 0 if it has none; raise `UsageError` for what is no place in a file."""
    match location:
        case (path, int(line)):
            return checked_path(path), line
        case _ if isinstance(location, str | os.PathLike):
            return checked_path(cast("object", location)), 0
        case _:
            raise UsageError(f'a location cannot be {location!r}; write `locations=["a.py", ("b.py", 12)]`')
