"""What there is to show of a session, as values: no looks, no terminal, nothing made harmless yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from holdfast.chat.streamed import Part
    from holdfast.model.passages import Piece

Tone: TypeAlias = Literal["info", "end", "ask", "good", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the user said."""

    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """A part of what the agent said, or thought; `first` where it begins to."""

    part: Part
    first: bool
    thought: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """Something the agent said that is not text."""

    piece: Piece


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `pieces` is what it has shown, or only the end of it while it goes on."""

    title: str
    kind: str
    status: str
    places: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = ()
    whole: bool = False
    """Whether it is shown to its last line."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: its steps, or whatever else it consists of."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the conversation, from the agent or from us."""

    text: str
    details: str = ""
    tone: Tone = "info"


Block: TypeAlias = Prompt | Said | Shown | Call | Plan | Note
