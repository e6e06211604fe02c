"""What a test sees of one turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.view.entries import view_entry

if TYPE_CHECKING:
    from holdfast.client import SessionUpdate
    from holdfast.model import Entry, History


@dataclass(frozen=True, slots=True)
class ToolCallSeen:
    """A tool call as it was shown at the end of the turn."""

    title: str
    kind: str
    status: str
    text: str
    """All text in it, the output of its terminals not."""
    input: Any
    output: Any
    content: tuple[Any, ...]
    """What it shows, as the protocol has it: texts, diffs, terminals."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn went, from the prompt to its end."""

    stop_reason: str | None
    history: History
    """What was said and done in this turn, folded."""
    updates: tuple[SessionUpdate, ...]
    """Every update, in the order they came."""

    @property
    def text(self) -> str:
        """What the agent said; several messages have an empty line between them."""
        return self._said("agent_message")

    @property
    def thought(self) -> str:
        """What the agent thought aloud."""
        return self._said("agent_thought")

    @property
    def tool_calls(self) -> list[ToolCallSeen]:
        """The tool calls, in the order they were opened."""
        return [_tool_call(entry) for entry in self.history if entry.entity == "tool_call_update"]

    @property
    def plan(self) -> list[tuple[str, str]]:
        """The steps of the last plan, each with its status; of a plan in Markdown the whole text, without one."""
        plans = [view_entry(entry) for entry in self.history if entry.entity == "plan_update"]
        return [(part.text, part.label) for part in plans[-1].parts] if plans else []

    def _said(self, entity: str) -> str:
        return "\n\n".join(entry.text() for entry in self.history if entry.entity == entity)


def _tool_call(entry: Entry) -> ToolCallSeen:
    members, view = entry.members, view_entry(entry)
    text = "\n".join(part.text for part in view.parts if part.kind in ("prose", "code", "diff"))
    return ToolCallSeen(
        str(members.get("title", "")),
        str(members.get("kind", "")),
        str(members.get("status", "")),
        text,
        members.get("rawInput"),
        members.get("rawOutput"),
        tuple(entry.content()),
    )
