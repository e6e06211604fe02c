"""What there is to show of a session, as values: no colours, no terminal, and no text made safe yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from holdfast.view.entries import Part
    from holdfast.view.markdown_stream import MarkdownPart

Tone: TypeAlias = Literal["info", "end", "ask", "good", "warning", "error", "output"]
"""Of what kind a note is; "output" is what a program has printed."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message of the user."""

    text: str


@dataclass(frozen=True, slots=True)
class AgentText:
    """A part of a message or a thought of the agent; `first` where it is the first of its message."""

    part: MarkdownPart
    first: bool
    thought: bool = False


@dataclass(frozen=True, slots=True)
class AgentContent:
    """Content in a message of the agent that is not text."""

    part: Part


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `parts` is what it has shown, or only the end of that while it runs."""

    title: str
    kind: str
    status: str
    locations: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    whole: bool = False
    """Whether all of it is to be shown, to its last line."""
    exit_status: str = ""
    """How the command that it ran has failed; empty where none did."""
    key: str = field(default="", compare=False)
    """Its id; empty where it has none."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: its steps, or whatever else it is made of."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A remark about the conversation, from the agent or from us."""

    text: str
    details: str = ""
    tone: Tone = "info"


Block: TypeAlias = Prompt | AgentText | AgentContent | Call | Plan | Note
