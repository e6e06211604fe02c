"""What a graph remembers of a session: its messages, and what else is in its state.

When what was kept counts is said in `turn_memory`. The prompt is not kept with a turn: the user's message has it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, messages_from_dict, messages_to_dict

from holdfast.integrations.prompt_parts import prompt_parts, prompt_text
from holdfast.integrations.turn_memory import TurnMemory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage, ToolCall

    from holdfast.agent import Turn
    from holdfast.integrations.prompt_parts import Binary
    from holdfast.integrations.turn_memory import PastTurn
    from holdfast.model import Update

log: logging.Logger = logging.getLogger(__name__)

KEY = "langgraph"
"""Our member of what is kept."""

PROMPT = None
"""Stands for the prompt among the messages that are kept."""


class GraphMemory:
    """What the graph knows when a turn begins, and what it will know after it."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._turns: TurnMemory[BaseMessage] = TurnMemory(turn, KEY, _LangChainMessages())
        self._past: list[str | None] = []

    @property
    def turn_id(self) -> str:
        """The id of the user's message, under which this turn is kept."""
        return self._turns.turn_id

    async def input(self) -> dict[str, Any]:
        """Return what a run begins with: all that was said, the prompt, and what else was in the state."""
        messages = await self._turns.recall()
        self._past = [message.id for message in messages]
        return {**self._turns.beside, "messages": [*messages, _human(self._turn.prompt, self.turn_id)]}

    async def keep(self, values: Mapping[str, Any]) -> None:
        """Keep the state after a turn that ended in order: the messages that were added, and everything else."""
        messages: list[BaseMessage] = list(values.get("messages") or [])
        begin = len(self._past)
        as_before = [message.id for message in messages[: begin + 1]] == [*self._past, self.turn_id]
        added = messages[begin:] if as_before else messages  # all of them, where the graph has made a summary
        plain = [PROMPT if message.id == self.turn_id else messages_to_dict([message])[0] for message in added]
        beside = {name: value for name, value in values.items() if name not in _ELSEWHERE and _is_json(name, value)}
        await self._turns.keep(plain, beside=beside, all_messages=not as_before)


_ELSEWHERE = {"messages", "structured_response"}


def _is_json(name: str, value: object) -> bool:
    if value is None:
        return False
    try:
        if msgspec.json.decode(msgspec.json.encode(value)) == value:
            return True
    except (TypeError, ValueError, RecursionError):
        pass
    log.warning("What the graph has in %r is no JSON value, and is not remembered after this turn", name)
    return False


class _LangChainMessages:
    """How LangChain reads its messages."""

    def read(self, kept: list[Any], turn: PastTurn) -> Sequence[BaseMessage]:
        try:
            return [
                _human(turn.prompt.content(), turn.prompt.key) if item is PROMPT else messages_from_dict([item])[0]
                for item in kept
            ]
        except Exception as e:  # noqa: BLE001  (what a later version raises for messages of an earlier one is unknown)
            raise ValueError(str(e)) from None

    def put_together(self, turn: PastTurn) -> Sequence[BaseMessage]:
        messages: list[BaseMessage] = [_human(turn.prompt.content(), turn.prompt.key)]
        said: list[str] = []
        calls: list[ToolCall] = []
        results: list[ToolMessage] = []

        def settle() -> None:
            nonlocal said, calls, results
            if said or calls:
                id = f"{turn.prompt.key}-{len(messages)}"  # noqa: A001
                messages.append(AIMessage("".join(said), tool_calls=calls, id=id))
            messages.extend(results)
            said, calls, results = [], [], []

        for step in turn.steps():
            if isinstance(step, str):
                if calls:
                    settle()
                said.append(step)
            else:
                calls.append({"name": step.name, "args": step.arguments, "id": step.id, "type": "tool_call"})
                status = "success" if step.is_done else "error"
                results.append(
                    ToolMessage(_text(step.result), tool_call_id=step.id, name=step.name, status=status, id=step.id)
                )
        settle()
        return messages


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _human(blocks: Sequence[Update], id: str) -> HumanMessage:
    parts = prompt_parts(blocks)
    text = prompt_text(parts)
    return HumanMessage(text if text is not None else [_block(part) for part in parts], id=id)


def _block(part: str | Binary) -> str | dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.media_type.partition("/")[0]
    return {
        "type": kind if kind in ("image", "audio", "video") else "file",
        "base64": part.data,
        "mime_type": part.media_type,
    }
