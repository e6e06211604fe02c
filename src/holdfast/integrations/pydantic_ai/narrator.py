"""Shows the user what a run does, as it does it: text, thoughts, tool calls, questions, usage.

A capability of Pydantic AI: it is told of everything by hooks, and decides nothing but what the user decides.
"""

from __future__ import annotations

import json
from base64 import b64encode
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import (
    ApprovalRequired,
    BinaryContent,
    FilePart,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    NativeToolCallPart,
    NativeToolReturnPart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolDenied,
    ToolFailed,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_core import to_json

from holdfast.errors import UsageError
from holdfast.integrations.pydantic_ai.shown import shown_of

if TYPE_CHECKING:
    from pydantic_ai import (
        AgentStreamEvent,
        BaseToolCallPart,
        BaseToolReturnPart,
        DeferredToolRequests,
        DeferredToolResults,
        ModelRequestContext,
        ModelResponse,
        RunContext,
        ToolDefinition,
    )
    from pydantic_ai.capabilities import WrapToolExecuteHandler

    from holdfast.agent import ToolCall, Turn
    from holdfast.integrations.pydantic_ai.memory import Memory
    from holdfast.model import StopReason

NOT_ALLOWED = "The user did not allow this. Do not try the same again; go on without it, or ask what to do instead."

EARLY: dict[str, StopReason] = {"length": "max_tokens", "content_filter": "refusal"}
"""By why a model stopped, why the turn ends, where that is not because all was said."""

_running: ContextVar[tuple[Turn, ToolCall]] = ContextVar("running")


def current_call() -> ToolCall:
    """Get the tool call that shows the tool which is running, to show more in it: a diff, a terminal."""
    return _current()[1]


def current_turn() -> Turn:
    """Get the turn in which a tool is running."""
    return _current()[0]


def _current() -> tuple[Turn, ToolCall]:
    try:
        return _running.get()
    except LookupError:
        raise UsageError("there is a tool call only while a tool runs, in an agent made by `acp_agent`") from None


@dataclass
class Narrator(AbstractCapability[Any]):
    """Shows a run to the user of a turn."""

    turn: Turn
    memory: Memory
    finish_reason: str | None = None
    """Why the model stopped last time."""
    _tools: dict[str, ToolDefinition] = field(default_factory=dict[str, "ToolDefinition"])
    _calls: dict[str, ToolCall] = field(default_factory=dict[str, "ToolCall"])
    _previewed: set[str] = field(default_factory=set[str])
    _spoken: bool = False  # whether the last that was shown is what a model said before the response that is coming

    # Hooks, in the order in which a run calls them

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Learn how tools are to be shown."""
        del ctx
        self._tools = {it.name: it for it in tool_defs}
        return tool_defs

    async def on_event(self, ctx: RunContext[Any], *, event: AgentStreamEvent) -> None:
        """Show what happens."""
        del ctx
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                await self._say(text)
            case PartStartEvent(part=ThinkingPart(content=text)) if text:
                await self.turn.think(_clean(text))
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
                await self.turn.think(_clean(text))
            case PartStartEvent(part=ToolCallPart() as part) if part.tool_name in self._tools:
                self._open(part)
            case PartEndEvent(part=ToolCallPart() as part) if part.tool_name in self._tools:
                await self._describe(part)
            case FunctionToolCallEvent(part=part) if part.tool_call_id not in self._calls:
                await self._describe(part)
            case FunctionToolResultEvent(part=part):
                await self._finish(part)
            case PartEndEvent(part=NativeToolCallPart() as part):
                await self._describe(part)
                await self._open(part).begin()
            case PartStartEvent(part=NativeToolReturnPart() as part):
                await self._finish(part)
            case PartStartEvent(part=FilePart(content=file)):
                if (block := _block(file)) is not None:
                    await self.turn.show(block)
            case _:
                pass

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Tell how full the model's memory is and what it has cost."""
        del request_context
        self.finish_reason = response.finish_reason
        self._spoken = not response.tool_calls
        cost = self.memory.add_cost(response.usage.cost)
        used, size = response.usage.input_tokens + response.usage.output_tokens, ctx.model.context_window
        if used and size:  # not every provider tells
            await self.turn.usage(used, size, cost=cost)
        return response

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Ask the user, one after the other: an answer given for ever may answer the next question too."""
        del ctx
        approvals = {it.tool_call_id: await self._approve(it) for it in requests.approvals}
        nobody = ToolFailed("Nobody here can run this tool")
        return requests.build_results(approvals=approvals, calls={it.tool_call_id: nobody for it in requests.calls})

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Let a tool show more of itself while it runs."""
        del ctx
        visible, asks = self._open(call), shown_of(tool_def).asks
        if asks is not None and asks(self.turn) and (answer := await self._approve(call)) is not True:
            return answer
        await visible.begin()
        running = _running.set((self.turn, visible))
        try:
            await self._preview(call)
            return await handler(args)
        except ApprovalRequired:  # the tool itself has looked and wants it
            visible.update({"status": "pending"})
            raise
        finally:
            _running.reset(running)

    async def conclude(self, output: object) -> None:
        """Say what came of the run where that is no text, and why the model stopped where that was too early."""
        if not isinstance(output, str):
            text = to_json(output, indent=2, fallback=str).decode()
            await self._say(f"```json\n{text}\n```")
        if self.finish_reason in EARLY:
            self.turn.stop(EARLY[self.finish_reason])

    # Showing

    async def _say(self, text: str) -> None:
        if text and self._spoken:
            await self.turn.say("\n\n")
        if text:
            self._spoken = False
            await self.turn.say(_clean(text))

    def _open(self, part: BaseToolCallPart) -> ToolCall:
        """Show a call, if it is not shown already: it waits, for the rest of its input or for permission."""
        self._spoken = False
        if part.tool_call_id not in self._calls:
            about = shown_of(self._tools.get(part.tool_name))
            title = about._replace(title="").titled(part.tool_name, {})
            call = self.turn.tool(title, kind=about.kind, name=part.tool_name, pending=True)
            self._calls[part.tool_call_id] = call.start()
        return self._calls[part.tool_call_id]

    async def _describe(self, part: BaseToolCallPart) -> None:
        call, about, arguments = self._open(part), shown_of(self._tools.get(part.tool_name)), _arguments(part)
        path = arguments.get(about.path) if about.path else None
        places = [path] if isinstance(path, str) and path else []
        await call.describe(about.titled(part.tool_name, arguments), input=arguments, locations=places)

    async def _preview(self, part: ToolCallPart) -> None:
        preview = shown_of(self._tools.get(part.tool_name)).preview
        if preview is not None and part.tool_call_id not in self._previewed:
            self._previewed.add(part.tool_call_id)
            await preview(self.turn, self._open(part), _arguments(part))

    async def _approve(self, part: ToolCallPart) -> bool | ToolDenied:
        call, about, arguments = self._open(part), shown_of(self._tools.get(part.tool_name)), _arguments(part)
        try:
            await self._preview(part)
        except ToolFailed as e:  # there is nothing to allow
            return ToolDenied(e.message)
        if await self.turn.allow(call.title, call, remember=about.subject(part.tool_name, arguments)):
            return True
        return ToolDenied(NOT_ALLOWED)

    async def _finish(self, part: BaseToolReturnPart[Any]) -> None:
        """Show what came of a call: what the model is told, unless the tool has shown something better."""
        call = self._calls.pop(part.tool_call_id, None)
        self._previewed.discard(part.tool_call_id)
        if call is None:
            return
        items = part.content_items(mode="str", wrap_if_error=False)
        text = _clean("\n".join(it for it in items if isinstance(it, str)))
        is_text = isinstance(part.content, str)
        if not call.is_empty or not is_text:
            await call.output(text if is_text or part.files else _parsed(text))
        if part.outcome != "success":
            await call.fail(text)
        elif call.is_empty:
            for block in (_block(it) for it in items if isinstance(it, BinaryContent)):
                if block is not None:
                    await call.content(block)
            await call.text(text)
        call.close("completed")


def _arguments(part: BaseToolCallPart) -> dict[str, Any]:
    arguments = _parsed(_clean(part.args_as_json_str()))
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _block(file: BinaryContent) -> dict[str, Any] | None:
    kind = "image" if file.is_image else "audio" if file.is_audio else None
    return {"type": kind, "mimeType": file.media_type, "data": b64encode(file.data).decode()} if kind else None


def _clean(text: str) -> str:
    """Replace what is not in Unicode: models send halves of characters now and then, which nobody can store."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
