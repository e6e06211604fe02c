"""Shows the user what a run of an agent does, as it does it: text, thoughts, tool calls, questions, usage.

A capability of Pydantic AI, which calls its hooks. It decides nothing: it asks the user.
"""

from __future__ import annotations

from base64 import b64encode
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

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
from holdfast.integrations.pydantic_ai.display import display_of
from holdfast.integrations.pydantic_ai.whole_answers import streamed
from holdfast.integrations.visible_calls import (
    NOT_ALLOWED,
    VisibleCalls,
    parsed,
    parsed_arguments,
    without_lone_surrogates,
)

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

EARLY: dict[str, StopReason] = {"length": "max_tokens", "content_filter": "refusal"}
"""Why the turn ends, by why the model stopped, where the model had more to say."""

_running: ContextVar[tuple[Turn, ToolCall]] = ContextVar("running")


def current_call() -> ToolCall:
    """Return the tool call of the tool that is running, to show more in it, as a diff or a terminal.

    Returns:
        The tool call.

    Raises:
        UsageError: no tool of an agent made by `acp_agent` is running.

    """
    return _current()[1]


def current_turn() -> Turn:
    """Return the turn in which a tool is running.

    Returns:
        The turn.

    Raises:
        UsageError: no tool of an agent made by `acp_agent` is running.

    """
    return _current()[0]


def _current() -> tuple[Turn, ToolCall]:
    try:
        return _running.get()
    except LookupError:
        raise UsageError("there is a tool call only while a tool runs, in an agent made by `acp_agent`") from None


@dataclass
class RunDisplay(AbstractCapability[Any]):
    """Shows a run to the user of a turn."""

    turn: Turn
    memory: Memory
    finish_reason: str | None = None
    """Why the model stopped last time."""
    _tools: dict[str, ToolDefinition] = field(default_factory=dict[str, "ToolDefinition"])
    _calls: VisibleCalls = field(init=False)
    _spoken: bool = False  # whether the last that was shown is what a model said before the response that is coming

    def __post_init__(self) -> None:
        self._calls = VisibleCalls(self.turn, lambda tool: display_of(self._tools.get(tool)))

    # Hooks, in the order in which a run calls them

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Note how tools are shown."""
        del ctx
        self._tools = {tool.name: tool for tool in tool_defs}
        return tool_defs

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Let models that do not stream answer too."""
        del ctx
        model = streamed(request_context.model)
        return request_context if model is request_context.model else replace(request_context, model=model)

    async def on_event(self, ctx: RunContext[Any], *, event: AgentStreamEvent) -> None:
        """Show what happens."""
        del ctx
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                await self._say(text)
            case PartStartEvent(part=ThinkingPart(content=text)) if text:
                await self.turn.think(without_lone_surrogates(text))
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
                await self.turn.think(without_lone_surrogates(text))
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
        """Show how full the model's context is, and what the session has cost."""
        del request_context
        self.finish_reason = response.finish_reason
        self._spoken = not response.tool_calls
        cost = self.memory.add_cost(response.usage.cost)
        taken, given = response.usage.input_tokens, response.usage.output_tokens
        if taken + given and (size := ctx.model.context_window):  # not every provider tells
            await self.turn.usage(taken + given, size, cost=cost, input_tokens=taken, output_tokens=given)
        return response

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Ask the user, one after the other: "always" may answer the next question too."""
        del ctx
        approvals = {part.tool_call_id: await self._approve(part) for part in requests.approvals}
        nobody = ToolFailed("Nobody here can run this tool")
        return requests.build_results(approvals=approvals, calls={part.tool_call_id: nobody for part in requests.calls})

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Ask the user if need be, and let the tool show more while it runs (`current_call`)."""
        del ctx
        visible, asks = self._open(call), display_of(tool_def).asks
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
        """Show the output of the run if it is no text, and say why the turn ends if the model stopped too early."""
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
            await self.turn.say(without_lone_surrogates(text))

    def _open(self, part: BaseToolCallPart) -> ToolCall:
        self._spoken = False
        return self._calls.open(part.tool_call_id, part.tool_name)

    async def _describe(self, part: BaseToolCallPart) -> None:
        self._spoken = False
        await self._calls.describe(part.tool_call_id, part.tool_name, _arguments(part))

    async def _preview(self, part: ToolCallPart) -> None:
        await self._calls.preview(part.tool_call_id, part.tool_name, _arguments(part))

    async def _approve(self, part: ToolCallPart) -> bool | ToolDenied:
        try:
            allowed = await self._calls.allowed(part.tool_call_id, part.tool_name, _arguments(part))
        except ToolFailed as e:  # there is nothing to allow
            return ToolDenied(e.message)
        return True if allowed else ToolDenied(NOT_ALLOWED)

    async def _finish(self, part: BaseToolReturnPart[Any]) -> None:
        """Show the result of a call: what the model is told, unless the tool has shown something better."""
        items = part.content_items(mode="str", wrap_if_error=False)
        text = without_lone_surrogates("\n".join(item for item in items if isinstance(item, str)))
        is_text = isinstance(part.content, str)
        blocks = (_block(item) for item in items if isinstance(item, BinaryContent))
        await self._calls.finish(
            part.tool_call_id,
            text,
            output=None if is_text else text if part.files else parsed(text),
            blocks=[block for block in blocks if block is not None],
            failed=part.outcome != "success",
        )


def _arguments(part: BaseToolCallPart) -> dict[str, Any]:
    return parsed_arguments(part.args_as_json_str())


def _block(file: BinaryContent) -> dict[str, Any] | None:
    kind = "image" if file.is_image else "audio" if file.is_audio else None
    return {"type": kind, "mimeType": file.media_type, "data": b64encode(file.data).decode()} if kind else None
