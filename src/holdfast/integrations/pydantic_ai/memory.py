"""What the model remembers: the messages of each turn, kept as a private entry of that turn.

They are read once, when the session comes back to life; after that a turn looks only at what was added since the last
one, so that its cost does not grow with the conversation.

The turns a user sees are the turns the model knows. For a turn that is there as it was kept, what was kept counts. Any
other is put together again from what the user sees of it: one whose process died, one that a fork has cut short, one
that something else than a model has answered. So nothing is forgotten silently (P11), nothing that a fork left out is
known, and no tool call is without a result, which providers refuse.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic_ai import ModelMessage, ModelResponsePart

    from holdfast.agent import Turn
    from holdfast.model import Entry

log: logging.Logger = logging.getLogger(__name__)

KEY = "pydantic_ai"
"""Our member of the session's state, which has the `cost` in US dollars, and of what lives with the session."""

NO_RESULT = "It was interrupted before it gave a result. What it had done until then stays done."


class _Known:
    """What the model knows of a live session: the messages up to a position of its history."""

    def __init__(self) -> None:
        self.position = 0
        self.messages: list[ModelMessage] = []
        self.kept: dict[str, Any] = {}
        """By the id of its turn, what was kept and is not among the messages yet."""
        self.has_system_prompt = False
        """Whether one is among the messages."""
        self.without_system_prompt: object = None
        """The agent that was seen to have none."""


class Memory:
    """What the model knows when a turn begins, and what it will know after it."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._state: dict[str, Any] = turn.session.state.setdefault(KEY, {})
        self._known: _Known | None = turn.session.live.get(KEY)
        self.turn_id: str = next(entry.key for entry in turn.said if entry.entity == "user_message")
        """The id of the user's message, under which this turn is kept."""

    async def recall(self) -> list[ModelMessage]:
        """Return the messages of all turns before this one."""
        session = self._turn.session
        known = self._known
        if known is None:
            known = self._known = session.live[KEY] = _Known()
            # What an earlier version kept in the state is moved to where it belongs.
            known.kept = self._state.pop("turns", {})
            if known.kept:
                await self._turn.keep({KEY: known.kept})
            for entry in await session.kept():
                if isinstance(entry, dict):
                    known.kept |= cast("dict[str, Any]", entry).get(KEY, {})
        position = session.position
        if position > known.position:
            for past in _turns(await session.history(since=known.position)):
                # Calls that a cancelled turn has left without a result get one that says so.
                messages = repair_messages(list(_recalled(past, known.kept.pop(past.prompt.key, None))))
                known.messages += messages
                known.has_system_prompt = known.has_system_prompt or _has_system_prompt(messages)
            known.position = position
        return list(known.messages)

    def lacks_system_prompt(self, agent: object) -> bool:
        """Return whether the agent's system prompt may be missing in what was recalled.

        To look for it is Pydantic AI's business, but it looks through all messages, several times in each turn.
        """
        known = self._known
        return known is None or not (known.has_system_prompt or known.without_system_prompt is agent)

    def note_run(self, agent: object, messages: Sequence[ModelMessage]) -> None:
        """Note whether an agent that was told to look for its system prompt has one at all."""
        if self._known is not None and self.lacks_system_prompt(agent) and not _has_system_prompt(messages):
            self._known.without_system_prompt = agent

    async def keep(self, messages: Sequence[ModelMessage]) -> None:
        """Keep the messages of this turn, the last ones; they are stored with what the user sees of it."""
        new = [*takewhile(lambda message: message.run_id == self.turn_id, reversed(messages))][::-1]
        last = [entry for entry in self._turn.said if entry.entity][-1]
        if self._turn.is_over or not new or _lacks(new, last):
            return
        try:
            plain = [_plain(message) for message in ModelMessagesTypeAdapter.dump_python(new, mode="json")]
            msgspec.json.encode(plain)
        except (TypeError, ValueError, RecursionError):
            log.warning("What the model said cannot be kept as it is; what is shown of it is", exc_info=True)
            return
        kept = {"last": last.key, "messages": plain}
        await self._turn.keep({KEY: {self.turn_id: kept}})
        if self._known is not None:
            self._known.kept[self.turn_id] = kept

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


def _has_system_prompt(messages: Iterable[ModelMessage]) -> bool:
    return any(isinstance(part, SystemPromptPart) for message in messages for part in message.parts)


def _lacks(messages: Sequence[ModelMessage], shown: Entry) -> bool:
    """Return whether a response that was shown is not among the messages: a turn can be cancelled in between."""
    if not isinstance(messages[-1], ModelRequest):
        return False
    calls = {part.tool_call_id for message in messages for part in message.parts if isinstance(part, ToolCallPart)}
    return shown.entity == "agent_message" or (shown.entity == "tool_call_update" and shown.key not in calls)


class _Turn(NamedTuple):
    """A turn as its user sees it."""

    prompt: Entry
    entries: list[Entry]


def _turns(history: Iterable[Entry]) -> list[_Turn]:
    turns: list[_Turn] = []
    for entry in history:
        if entry.entity == "user_message":
            turns.append(_Turn(entry, []))
        elif turns:
            turns[-1].entries.append(entry)
    return turns


def _recalled(turn: _Turn, kept: dict[str, Any] | None) -> Sequence[ModelMessage]:
    keys = {turn.prompt.key, *(entry.key for entry in turn.entries)}
    if kept is None or kept.get("last") not in keys:
        return _put_together(turn)
    try:
        messages = ModelMessagesTypeAdapter.validate_python(kept.get("messages"))
    except ValidationError:
        log.warning("What the model said was kept in a way that this Pydantic AI does not read; what is shown counts")
        return _put_together(turn)
    return [_with_prompt(message, turn.prompt) for message in messages]


def _put_together(turn: _Turn) -> list[ModelMessage]:
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

    for entry in turn.entries:
        if entry.entity == "agent_message":
            if results:
                settle()
            said.append(TextPart(entry.text()))
        elif entry.entity == "tool_call_update":
            call, result = _call_and_result(entry)
            said.append(call)
            results.append(result)
    settle()
    return messages


def _call_and_result(entry: Entry) -> tuple[ToolCallPart, ToolReturnPart]:
    about = entry.members
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", str(about.get("name") or about.get("title") or "tool"))[:64]
    arguments: Any = about.get("rawInput")
    output: Any = about.get("rawOutput")
    if output is None:
        output = entry.text()
    done = about.get("status") == "completed"
    call = ToolCallPart(name, cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}, entry.key)
    outcome = "success" if done else "failed" if output else "interrupted"
    return call, ToolReturnPart(name, output or ("Done." if done else NO_RESULT), entry.key, outcome=outcome)


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
