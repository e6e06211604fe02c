"""The tool calls of a model as its user sees them, by the ids that the model gave them. Knows no library."""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from holdfast.agent import ToolCall, Turn
    from holdfast.integrations.tool_display import ToolDisplay

NOT_ALLOWED = "The user did not allow this. Do not try the same again; go on without it, or ask what to do instead."


class VisibleCalls:
    """The tool calls that a run of a model has open in a turn."""

    def __init__(self, turn: Turn, display: Callable[[str], ToolDisplay]) -> None:
        self._turn = turn
        self._display = display
        self._open: dict[str, ToolCall] = {}
        self._arguments: dict[str, tuple[str, dict[str, Any]]] = {}
        self._previewed: set[str] = set()

    def __contains__(self, id: object) -> bool:
        return id in self._open

    def __iter__(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Iterate over the calls that are open and described: their ids, tools and arguments."""
        return iter([(call_id, *about) for call_id, about in self._arguments.items()])

    def open(self, id: str, tool: str) -> ToolCall:
        """Return the tool call that shows a call; it is pending, until its input is complete and it is allowed."""
        if id not in self._open:
            display = self._display(tool)
            title = display._replace(title="").titled(tool, {})
            call = self._turn.tool(title, kind=display.kind, name=tool, pending=True)
            self._open[id] = call.start()
        return self._open[id]

    async def describe(self, id: str, tool: str, arguments: dict[str, Any]) -> None:
        """Show what a call is about."""
        call, display = self.open(id, tool), self._display(tool)
        path = arguments.get(display.path) if display.path else None
        locations = [path] if isinstance(path, str) and path else []
        self._arguments[id] = (tool, arguments)
        await call.describe(display.titled(tool, arguments), input=arguments, locations=locations)

    async def preview(self, id: str, tool: str, arguments: dict[str, Any]) -> None:
        """Show what a call is going to do, once, as its author has said."""
        preview = self._display(tool).preview
        if preview is not None and id not in self._previewed:
            self._previewed.add(id)
            await preview(self._turn, self.open(id, tool), arguments)

    async def allowed(self, id: str, tool: str, arguments: dict[str, Any], *, description: str | None = None) -> bool:
        """Ask the user for permission, with all that is known of a call (P13)."""
        call, display = self.open(id, tool), self._display(tool)
        await self.preview(id, tool, arguments)
        subject = display.subject(tool, arguments)
        return await self._turn.allow(call.title, call, description=description, remember=subject)

    async def begin(self, id: str) -> None:
        """Show that a call is being done."""
        if id in self._open:
            await self._open[id].begin()

    async def finish(
        self, id: str, text: str, *, output: object = None, blocks: Iterable[Mapping[str, Any]] = (), failed: bool
    ) -> None:
        """Show the result of a call: what the model is told, unless the tool has shown something better."""
        call = self._open.pop(id, None)
        self._arguments.pop(id, None)
        self._previewed.discard(id)
        if call is None:
            return
        if output is not None:
            await call.output(output)
        elif not call.is_empty:
            await call.output(text)
        if failed:
            await call.fail(text)
        elif call.is_empty:
            for block in blocks:
                await call.content(block)
            await call.text(text)
        call.close("completed")

    async def finish_all(self, reason: str) -> None:
        """Show of the calls that are still open that they have no result."""
        for call_id in list(self._open):
            await self.finish(call_id, reason, failed=True)


class CurrentCalls:
    """What tools of a library find out about the turn and the call in which they run."""

    def __init__(self, library: str) -> None:
        self._library = library
        self._running: ContextVar[tuple[Turn, VisibleCalls]] = ContextVar(f"running {library}")

    def enter(self, turn: Turn, calls: VisibleCalls) -> None:
        """Let what is started from here on belong to a turn. It ends with the task that answers the turn."""
        self._running.set((turn, calls))

    def turn(self) -> Turn:
        """Return the turn in which a tool is running; raise `UsageError` outside of one."""
        return self._current()[0]

    def call(self, id: str) -> ToolCall:
        """Return the tool call that shows a call of the model; raise `UsageError` where there is none."""
        calls = self._current()[1]
        if id not in calls:
            raise UsageError(f"no tool call with the id {id!r} is running; give the id by which the tool was called")
        return calls.open(id, "")

    def _current(self) -> tuple[Turn, VisibleCalls]:
        try:
            return self._running.get()
        except LookupError:
            raise UsageError(
                f"there is a turn only while an agent made by `holdfast.integrations.{self._library}` answers one"
            ) from None


def parsed_arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a call; none where a model has sent something else."""
    arguments = parsed(text)
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}


def parsed(text: str) -> Any:
    """Return a JSON value; the text itself where it is none. No lone surrogate is in what is returned."""
    try:
        value = json.loads(text)
    except ValueError:
        return without_lone_surrogates(text)
    return value if text.isascii() and "\\ud" not in text.lower() else _cleaned(value)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {without_lone_surrogates(name): _cleaned(item) for name, item in cast("dict[str, Any]", value).items()}
    return value


def without_lone_surrogates(text: str) -> str:
    """Replace lone surrogates: models send halves of characters now and then, which nobody can store."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
