"""Shows the user what a run of an agent does, as it does it: text, thoughts, tool calls, questions, usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agents import RunHooks

from holdfast.integrations.tool_display import ToolDisplay
from holdfast.integrations.visible_calls import (
    NOT_ALLOWED,
    CurrentCalls,
    VisibleCalls,
    parsed_arguments,
    without_lone_surrogates,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents import Agent, RunContextWrapper, RunItem, RunState, StreamEvent, Tool, ToolApprovalItem

    from holdfast.agent import ToolCall, Turn
    from holdfast.model import StopReason

SAYS_ERROR = "An error occurred while running the tool"
"""How the SDK begins what the model is told of a tool that has raised an exception."""

EARLY: dict[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
"""Why the turn ends, by why the model stopped, where the model had more to say."""

_current = CurrentCalls("openai_agents")


def current_turn() -> Turn:
    """Return the turn in which a tool is running.

    Returns:
        The turn.

    Raises:
        UsageError: none is running here.

    """
    return _current.turn()


def current_call(tool_call_id: str) -> ToolCall:
    """Return the tool call that shows what a tool does, to show more in it: a diff, a terminal.

    Args:
        tool_call_id: The id by which the tool was called: ``context.tool_call_id`` of its `ToolContext`.

    Returns:
        The tool call.

    Raises:
        UsageError: No such tool call is running.

    """
    return _current.call(tool_call_id)


class RunDisplay:
    """Shows a run to the user of a turn."""

    def __init__(self, turn: Turn, tools: Mapping[str, ToolDisplay], context_window: int | None) -> None:
        self._turn = turn
        self._calls = VisibleCalls(turn, lambda tool: tools.get(tool, ToolDisplay()))
        self._context_window = context_window
        self._speaker: str | None = None
        self._refused: set[str] = set()
        self.hooks: RunHooks[Any] = _ToolStarts(self._calls)
        """Noted by the SDK: when tools begin."""
        _current.enter(turn, self._calls)

    async def show(self, event: StreamEvent) -> None:
        """Show what has happened."""
        if event.type == "raw_response_event":
            await self._show_raw(event.data)
        elif event.type == "run_item_stream_event":
            await self._show_item(event.name, event.item)

    async def _show_raw(self, data: Any) -> None:
        match data.type:
            case "response.output_text.delta" | "response.refusal.delta":
                await self._say(data.delta, data.item_id)
                if data.type == "response.refusal.delta":
                    self._turn.stop("refusal")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                await self._turn.think(without_lone_surrogates(data.delta))
            case "response.output_item.added" if data.item.type == "function_call" and data.item.name:
                self._speaker = None
                self._calls.open(data.item.call_id, data.item.name)
            case "response.output_item.done" if data.item.type == "function_call":
                await self._describe(data.item)
            case "response.completed" | "response.incomplete":
                await self._note(data.response)
            case _:
                pass

    async def _note(self, response: Any) -> None:
        """Show how full the model's context is; note why the model stopped."""
        if response.usage is not None and self._context_window:
            taken, given = response.usage.input_tokens, response.usage.output_tokens
            await self._turn.usage(taken + given, self._context_window, input_tokens=taken, output_tokens=given)
        details = response.incomplete_details
        if details is not None and details.reason in EARLY:
            self._turn.stop(EARLY[details.reason])

    async def _show_item(self, name: str, item: RunItem) -> None:
        raw = cast("Any", item.raw_item)
        if name in ("tool_called", "handoff_requested") and _member(raw, "call_id") and _member(raw, "name"):
            await self._describe(raw)
        elif name == "tool_output" and (call_id := _member(raw, "call_id")):
            said = _text(getattr(item, "output", ""))
            failed = call_id in self._refused or said.startswith(SAYS_ERROR)
            self._speaker = None
            await self._calls.finish(call_id, said, failed=failed)
        elif name == "handoff_occured" and (call_id := _member(raw, "call_id")):
            await self._calls.finish(call_id, _text(_member(raw, "output")), failed=False)

    async def _describe(self, raw: Any) -> None:
        call_id, tool = _member(raw, "call_id"), _member(raw, "name")
        await self._calls.describe(call_id, tool, parsed_arguments(_member(raw, "arguments") or "{}"))

    async def _say(self, text: str, speaker: str) -> None:
        if text and self._speaker not in (None, speaker):
            await self._turn.say("\n\n")
        if text:
            self._speaker = speaker
            await self._turn.say(without_lone_surrogates(text))

    async def decide(self, approvals: Sequence[ToolApprovalItem], state: RunState[Any]) -> None:
        """Ask the user, one after the other: "always" may answer the next question too."""
        for item in approvals:
            raw = cast("Any", item.raw_item)
            call_id, tool = _member(raw, "call_id") or _member(raw, "id"), item.tool_name or "tool"
            arguments = parsed_arguments(_member(raw, "arguments") or "{}")
            if call_id not in self._calls:  # what a person allows, a person sees
                await self._calls.describe(call_id, tool, arguments)
            if await self._calls.allowed(call_id, tool, arguments):
                state.approve(item)
            else:
                self._refused.add(call_id)
                state.reject(item, rejection_message=NOT_ALLOWED)

    async def conclude(self, output: object) -> None:
        """Show the output of the run if it is no text."""
        await self._calls.finish_all("The run ended without a result of this call.")
        if output is not None and not isinstance(output, str):
            from pydantic_core import to_json  # noqa: PLC0415  (comes with the SDK)

            await self._say(f"```json\n{to_json(output, indent=2, fallback=str).decode()}\n```", "output")


class _ToolStarts(RunHooks[Any]):
    """Notes when tools begin."""

    def __init__(self, calls: VisibleCalls) -> None:
        self._calls = calls

    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool) -> None:
        del agent, tool
        if isinstance(call_id := getattr(context, "tool_call_id", None), str):
            await self._calls.begin(call_id)


def _member(raw: Any, name: str) -> Any:
    """Return a member of an item, which the SDK has as an object or as a dict."""
    return cast("dict[str, Any]", raw).get(name) if isinstance(raw, dict) else getattr(raw, name, None)


def _text(output: object) -> str:
    if isinstance(output, str):
        return without_lone_surrogates(output)
    from pydantic_core import to_json  # noqa: PLC0415  (comes with the SDK)

    return to_json(output, fallback=str).decode()
