"""What an agent remembers of a session: items of the Responses API, and who spoke last.

When what was kept counts is said in `turn_memory`. The prompt is not kept with a turn: the user's message has it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from agents import Agent

from holdfast.integrations.prompt_parts import prompt_parts, prompt_text
from holdfast.integrations.turn_memory import TurnMemory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents import RunResultStreaming

    from holdfast.agent import Turn
    from holdfast.integrations.prompt_parts import Binary
    from holdfast.integrations.turn_memory import PastTurn
    from holdfast.model import Update

KEY = "openai_agents"
"""Our member of what is kept."""

Item = dict[str, Any]


class RunMemory:
    """What the agent knows when a turn begins, and what it will know after it."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._turns: TurnMemory[Item] = TurnMemory(turn, KEY, _Items())
        self._given = 0

    async def input(self) -> list[Item]:
        """Return what a run begins with: all that was said, and the prompt."""
        items = [*await self._turns.recall(), _user(self._turn.prompt)]
        self._given = len(items)
        return items

    def agent_in(self, first: Agent[Any]) -> Agent[Any]:
        """Return who answers: the agent that others handed over to in the turn before, or the first one."""
        name = self._turns.beside.get("agent")
        return next((agent for agent in _reachable(first) if agent.name == name), first)

    async def keep(self, run: RunResultStreaming) -> None:
        """Keep what was added in a turn that ended in order."""
        items = cast("list[Item]", run.to_input_list())
        added = [_plain(item) for item in items[self._given :]]
        await self._turns.keep(added, beside={"agent": run.last_agent.name})


def _reachable(first: Agent[Any]) -> list[Agent[Any]]:
    found = [first]
    for agent in found:
        for other in agent.handoffs:
            if isinstance(other, Agent) and other not in found:
                found.append(other)
    return found


class _Items:
    """How the SDK reads its items."""

    def read(self, kept: list[Any], turn: PastTurn) -> Sequence[Item]:
        if not all(isinstance(item, dict) for item in kept):
            raise ValueError("items are objects")
        return [_user(turn.prompt.content()), *kept]

    def put_together(self, turn: PastTurn) -> Sequence[Item]:
        items = [_user(turn.prompt.content())]
        for step in turn.steps():
            if isinstance(step, str):
                items.append({"role": "assistant", "content": step})
                continue
            call: Item = {"type": "function_call", "call_id": step.id, "name": step.name}
            items.append(call | {"arguments": json.dumps(step.arguments)})
            output = step.result if isinstance(step.result, str) else json.dumps(step.result)
            items.append({"type": "function_call_output", "call_id": step.id, "output": output})
        return items


def _user(blocks: Sequence[Update]) -> Item:
    parts = prompt_parts(blocks)
    text = prompt_text(parts)
    return {"role": "user", "content": text if text is not None else [_content(part) for part in parts]}


def _content(part: str | Binary) -> Item:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    address = f"data:{part.media_type};base64,{part.data}"
    if part.media_type.startswith("image/"):
        return {"type": "input_image", "image_url": address, "detail": "auto"}
    return {"type": "input_file", "file_data": address, "filename": part.name.rpartition("/")[2] or "file"}


def _plain(item: Item) -> Item:
    """Return an item without what says nothing."""
    return {name: value for name, value in item.items() if value is not None}
