"""What a test sees of one turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.model import Entry
from holdfast.view.entries import view_entry

if TYPE_CHECKING:
    from holdfast.client import SessionUpdate
    from holdfast.model import History


@dataclass(frozen=True, slots=True)
class ToolCallSeen:
    """A tool call as it was shown at the end of the turn.

    Attributes:
        title: what is done.
        kind: the kind of the tool.
        status: how it ended: ``completed``, ``failed``, ``cancelled``.
        input: what the tool was called with.
        output: the raw output of the tool.

    """

    title: str
    kind: str
    status: str
    text: str
    """All text that it shows; without its input, its raw output and what its terminals printed."""
    input: Any
    output: Any
    content: tuple[Any, ...]
    """What it shows, as the protocol has it: texts, diffs, terminals."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn went, from the prompt to its end.

    Attributes:
        stop_reason: why it ended: ``end_turn``, ``cancelled``…

    """

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
    members, shown = entry.members, Entry(entry.entity, entry.key, whole=True)
    shown.replace(entry.content())  # input and raw output are not among it
    text = "\n".join(part.text for part in view_entry(shown).parts if part.kind in ("prose", "code", "diff"))
    return ToolCallSeen(
        str(members.get("title", "")),
        str(members.get("kind", "")),
        str(members.get("status", "")),
        text,
        members.get("rawInput"),
        members.get("rawOutput"),
        tuple(entry.content()),
    )
