"""Shows the user what a run of a graph does, as it does it: text, thoughts, tool calls, usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage

from holdfast.integrations.tool_display import ToolDisplay
from holdfast.integrations.visible_calls import (
    CurrentCalls,
    VisibleCalls,
    parsed_arguments,
    without_lone_surrogates,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from holdfast.agent import ToolCall, Turn
    from holdfast.model import StopReason

TOOLS_NODE = "tools"
"""The node in which LangGraph runs tools. What models say in there is the tool's business, not the agent's answer."""

EARLY: dict[str, StopReason] = {
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
}
"""Why the turn ends, by why the model stopped, where the model had more to say."""

_current = CurrentCalls("langgraph")


def current_turn() -> Turn:
    """Return the turn in which a tool or a node is running.

    Returns:
        The turn.

    Raises:
        UsageError: none is running here.

    """
    return _current.turn()


def current_call(tool_call_id: str) -> ToolCall:
    """Return the tool call that shows what a tool does, to show more in it: a diff, a terminal.

    Args:
        tool_call_id: The id by which the tool was called: ``runtime.tool_call_id`` of its `ToolRuntime`, or an argument
            that is an `InjectedToolCallId`.

    Returns:
        The tool call.

    Raises:
        UsageError: No such tool call is running.

    """
    return _current.call(tool_call_id)


class RunDisplay:
    """Shows a run to the user of a turn."""

    def __init__(self, turn: Turn, tools: Mapping[str, ToolDisplay], context_window: int | None) -> None:
        self.calls: VisibleCalls = VisibleCalls(turn, lambda tool: tools.get(tool, ToolDisplay()))
        self._turn = turn
        self._context_window = context_window
        self._finish_reason = ""
        self._speaker: str | None = None
        self._coming: dict[tuple[str, object], _ComingCall] = {}
        _current.enter(turn, self.calls)

    def added_to(self, config: RunnableConfig, *, thread: str) -> RunnableConfig:
        """Return a configuration of a run that is shown here."""
        callbacks: Any = config.get("callbacks") or []
        shown = _ToolStarts(self.calls)
        if isinstance(callbacks, list):
            callbacks = [*cast("list[Any]", callbacks), shown]
        else:
            callbacks = callbacks.copy()
            callbacks.add_handler(shown)
        configurable = {**config.get("configurable", {}), "thread_id": thread}
        return cast("RunnableConfig", {**config, "callbacks": callbacks, "configurable": configurable})

    async def show(self, message: BaseMessage, about: dict[str, Any]) -> None:
        """Show a message, or a piece of one."""
        if isinstance(message, ToolMessage):
            await self._finish(message)
        elif isinstance(message, AIMessage) and about.get("langgraph_node") != TOOLS_NODE:
            await self._show_said(message)
            if isinstance(message, AIMessageChunk):
                self._gather(message)
            else:
                for call in message.tool_calls:
                    if call["id"]:
                        await self.calls.describe(call["id"], call["name"], call["args"])
            await self._note(message)

    async def _show_said(self, message: AIMessage) -> None:
        for block in message.content_blocks:
            if block["type"] == "text" and block["text"]:
                if self._speaker not in (None, message.id):
                    await self._turn.say("\n\n")
                self._speaker = message.id
                await self._turn.say(without_lone_surrogates(block["text"]))
            elif block["type"] == "reasoning" and (thought := block.get("reasoning")):
                await self._turn.think(without_lone_surrogates(thought))

    def _gather(self, message: AIMessageChunk) -> None:
        """Gather the pieces of calls: the first has the name and the id, all have pieces of the arguments."""
        for piece in message.tool_call_chunks:
            coming = self._coming.setdefault((message.id or "", piece["index"]), _ComingCall())
            coming.arguments.append(piece["args"] or "")
            coming.id = coming.id or piece["id"] or ""
            coming.name = coming.name or piece["name"] or ""
            if coming.id and coming.name and coming.id not in self.calls:
                self._speaker = None
                self.calls.open(coming.id, coming.name)

    async def _note(self, message: AIMessage) -> None:
        about = message.response_metadata
        self._finish_reason = str(about.get("finish_reason") or about.get("stop_reason") or self._finish_reason)
        usage = message.usage_metadata
        if usage and self._context_window:
            taken, given = usage["input_tokens"], usage["output_tokens"]
            await self._turn.usage(taken + given, self._context_window, input_tokens=taken, output_tokens=given)
        if isinstance(message, AIMessageChunk) and message.chunk_position == "last":
            await self.settle()

    async def settle(self) -> None:
        """Show what the calls are about whose arguments have come."""
        coming, self._coming = self._coming, {}
        for call in coming.values():
            if call.id and call.name:
                await self.calls.describe(call.id, call.name, parsed_arguments("".join(call.arguments) or "{}"))

    async def _finish(self, message: ToolMessage) -> None:
        self._speaker = None
        blocks = [_media(block) for block in message.content_blocks]
        await self.calls.finish(
            message.tool_call_id,
            without_lone_surrogates(message.text),
            blocks=[block for block in blocks if block is not None],
            failed=message.status == "error",
        )

    async def conclude(self, values: Mapping[str, Any]) -> None:
        """Show an output that is no text, and say why the turn ends if the model stopped too early."""
        await self.calls.finish_all("The graph ended without a result of this call.")
        output: object = values.get("structured_response")
        if output is not None:
            from pydantic_core import to_json  # noqa: PLC0415  (comes with LangChain)

            await self._turn.say(f"```json\n{to_json(output, indent=2, fallback=str).decode()}\n```")
        if self._finish_reason in EARLY:
            self._turn.stop(EARLY[self._finish_reason])


class _ComingCall:
    """A call whose arguments are coming."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class _ToolStarts(AsyncCallbackHandler):
    """Notes when tools begin."""

    def __init__(self, calls: VisibleCalls) -> None:
        self._calls = calls

    async def on_tool_start(self, serialized: dict[str, Any], input_str: str, **about: Any) -> None:
        del serialized, input_str
        if isinstance(call_id := about.get("tool_call_id"), str):
            await self._calls.begin(call_id)


def _media(block: Mapping[str, Any]) -> dict[str, Any] | None:
    kind, data, media_type = block["type"], block.get("base64"), block.get("mime_type")
    if kind not in ("image", "audio") or not data or not media_type:
        return None
    return {"type": kind, "mimeType": media_type, "data": data}
