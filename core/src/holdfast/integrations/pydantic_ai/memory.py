"""What the model remembers of a session, as messages of Pydantic AI; `turn_memory` says when which count.

Calls that a cancelled turn has left without a result get one that says so.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_ai import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.messages import repair_messages

from holdfast.integrations.pydantic_ai.user_content import user_content
from holdfast.integrations.turn_memory import TurnMemory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic_ai import ModelMessage, ModelResponsePart

    from holdfast.agent import Turn
    from holdfast.integrations.turn_memory import PastCall, PastTurn
    from holdfast.model import Entry

log: logging.Logger = logging.getLogger(__name__)

KEY = "pydantic_ai"
"""Our member of the session's state, which has the `cost` in US dollars, and of what lives with the session."""


class _SystemPrompts:
    """What is known, while a session lives, of the system prompt: where it was looked for."""

    def __init__(self) -> None:
        self.looked_at = 0
        """How many messages were."""
        self.found = False
        self.agent_without: object = None
        """The agent that was seen to have none."""


class Memory:
    """What the model knows when a turn begins, and what it will know after it."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._state: dict[str, Any] = turn.session.state.setdefault(KEY, {})
        self._turns: TurnMemory[ModelMessage] = TurnMemory(turn, KEY, _PydanticMessages())
        self._system_prompts: _SystemPrompts = turn.session.live.setdefault(f"{KEY} system prompts", _SystemPrompts())

    @property
    def turn_id(self) -> str:
        """The id of the user's message, under which this turn is kept."""
        return self._turns.turn_id

    async def recall(self) -> list[ModelMessage]:
        """Return the messages of all turns before this one."""
        if earlier := self._state.pop("turns", None):  # where an earlier version kept them
            await self._turn.keep({KEY: earlier})
        messages = await self._turns.recall()
        prompts = self._system_prompts
        prompts.found = prompts.found or _has_system_prompt(messages[prompts.looked_at :])
        prompts.looked_at = len(messages)
        return messages

    def lacks_system_prompt(self, agent: object) -> bool:
        """Return whether the agent's system prompt may be missing in what was recalled.

        To look for it is Pydantic AI's business, but it looks through all messages, several times in each turn.
        """
        return not (self._system_prompts.found or self._system_prompts.agent_without is agent)

    def note_run(self, agent: object, messages: Sequence[ModelMessage]) -> None:
        """Note whether an agent that was told to look for its system prompt has one at all."""
        if self.lacks_system_prompt(agent) and not _has_system_prompt(messages):
            self._system_prompts.agent_without = agent

    async def keep(self, messages: Sequence[ModelMessage]) -> None:
        """Keep the messages of this turn, the last ones; they are stored with what the user sees of it."""
        new = [*takewhile(lambda message: message.run_id == self.turn_id, reversed(messages))][::-1]
        if not new or _lacks(new, self._turns.last_shown):
            return
        try:
            plain = [_plain(message) for message in ModelMessagesTypeAdapter.dump_python(new, mode="json")]
        except (TypeError, ValueError, RecursionError):
            log.warning("What the model said cannot be kept as it is; what is shown of it is", exc_info=True)
            return
        await self._turns.keep(plain)

    def add_cost(self, cost: Decimal | None) -> float | None:
        """Add to what the session has cost so far; return that, where anything is known of it."""
        try:
            before = Decimal(self._state["cost"]) if "cost" in self._state else None
        except (InvalidOperation, TypeError, ValueError):
            before = None
        if cost is None and before is None:
            return None
        total = (before or Decimal(0)) + (cost or Decimal(0))
        self._state["cost"] = str(total)
        return float(total)


class _PydanticMessages:
    """How Pydantic AI reads its messages."""

    def read(self, kept: list[Any], turn: PastTurn) -> Sequence[ModelMessage]:
        try:
            messages = ModelMessagesTypeAdapter.validate_python(kept)
        except ValidationError as e:
            raise ValueError(str(e)) from None
        return repair_messages([_with_prompt(message, turn.prompt) for message in messages])

    def put_together(self, turn: PastTurn) -> Sequence[ModelMessage]:
        return repair_messages(_put_together(turn))


def _has_system_prompt(messages: Iterable[ModelMessage]) -> bool:
    return any(isinstance(part, SystemPromptPart) for message in messages for part in message.parts)


def _lacks(messages: Sequence[ModelMessage], shown: Entry) -> bool:
    """Return whether a response that was shown is not among the messages: a turn can be cancelled in between."""
    if not isinstance(messages[-1], ModelRequest):
        return False
    calls = {part.tool_call_id for message in messages for part in message.parts if isinstance(part, ToolCallPart)}
    return shown.entity == "agent_message" or (shown.entity == "tool_call_update" and shown.key not in calls)


def _put_together(turn: PastTurn) -> list[ModelMessage]:
    """Return messages made of what the user sees. Thoughts are left out: providers want them whole or not at all."""
    messages: list[ModelMessage] = [ModelRequest([UserPromptPart(user_content(turn.prompt.content()))])]
    said: list[ModelResponsePart] = []
    results: list[ToolReturnPart] = []

    def settle() -> None:
        nonlocal said, results
        if said:
            messages.append(ModelResponse(said))
        if results:
            messages.append(ModelRequest(results))
        said, results = [], []

    for step in turn.steps():
        if isinstance(step, str):
            if results:
                settle()
            said.append(TextPart(step))
        else:
            said.append(ToolCallPart(step.name, step.arguments, step.id))
            results.append(_result(step))
    settle()
    return messages


def _result(call: PastCall) -> ToolReturnPart:
    outcome = "success" if call.is_done else "failed" if call.is_told else "interrupted"
    return ToolReturnPart(call.name, call.result, call.id, outcome=outcome)


# How messages are kept: without what is found elsewhere and without what says nothing.


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    parts = [_without_nulls(part) for part in message["parts"]]
    for part in parts:
        if part["part_kind"] == "user-prompt" and isinstance(part["content"], list):
            part["content"] = ""  # images and the like: the user's message has them
    return {**_without_nulls(message), "parts": parts, "instructions": None}


def _without_nulls(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None or name == "content"}


def _with_prompt(message: ModelMessage, prompt: Entry) -> ModelMessage:
    bare = [part for part in message.parts if isinstance(part, UserPromptPart) and not part.content]
    if not bare or not isinstance(message, ModelRequest):
        return message
    content = user_content(prompt.content())
    parts = [replace(part, content=content) if part in bare else part for part in message.parts]
    return replace(message, parts=parts)
