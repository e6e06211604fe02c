"""What there is to show of a session, as values: no looks, no terminal, nothing made harmless yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from holdfast.view.entries import Part
    from holdfast.view.markdown_stream import MarkdownPart

Tone: TypeAlias = Literal["info", "end", "ask", "good", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the user said."""

    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """A part of what the agent said, or thought; `first` where it begins to."""

    part: MarkdownPart
    first: bool
    thought: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """Something the agent said that is not text."""

    part: Part


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `parts` is what it has shown, or only the end of it while it goes on."""

    title: str
    kind: str
    status: str
    places: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    whole: bool = False
    """Whether it is shown to its last line."""
    exit_status: str = ""
    """How the command it ran has failed, if it ran one and that failed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: its steps, or whatever else it consists of."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the conversation, from the agent or from us."""

    text: str
    details: str = ""
    tone: Tone = "info"


Block: TypeAlias = Prompt | Said | Shown | Call | Plan | Note
