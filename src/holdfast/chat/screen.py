"""The port between a conversation and what it is shown on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from holdfast.view.blocks import Block


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to a `KeyQuestion`: the key that gives it, and its label."""

    key: str
    label: str
    value: str
    tone: Literal["good", "error", "info"] = "info"


@dataclass(frozen=True, slots=True)
class KeyQuestion:
    """A question that is answered with a single key; `default` is the answer of Enter and Escape."""

    text: str
    choices: tuple[Choice, ...]
    default: str | None = None


@dataclass(frozen=True, slots=True)
class LineQuestion:
    """A question that is answered with a line of text; `check` returns what is wrong with a line, or nothing."""

    label: str
    hint: str
    check: Callable[[str], str]


class Candidate(NamedTuple):
    """Something the edited line could be completed to."""

    text: str
    about: str


class ScreenDelegate(Protocol):
    """What a screen may ask of the conversation, at any time."""

    def live(self) -> Iterable[Block]:
        """Return what may still change."""
        ...

    def busy(self) -> str:
        """Return what is being done right now; empty where nothing is."""
        ...

    def status(self) -> str:
        """Return one line about the session: directory, mode, model, usage."""
        ...

    def complete(self, line: str) -> Iterable[Candidate]:
        """Return what a line could be completed to."""
        ...

    def interrupt(self) -> bool:
        """Stop what is being done; return whether anything was."""
        ...


class Screen(Protocol):
    """Where a conversation is shown."""

    interactive: bool
    """Whether a person is there to be asked."""
    left: asyncio.Event
    """Set when the user wants to leave."""

    def show(self, *blocks: Block) -> None:
        """Print blocks, once and for all."""
        ...

    def changed(self) -> None:
        """Draw again what may change."""
        ...

    async def read(self) -> str | None:
        """Wait for the next prompt; return None when the user leaves."""
        ...

    def leave(self) -> None:
        """Let the user leave."""
        ...

    def take_back(self) -> None:
        """Take back prompts that were not read yet."""
        ...

    async def ask_key(self, question: KeyQuestion) -> str | None:
        """Ask a question; return the value of the answer, or the default."""
        ...

    async def ask_line(self, question: LineQuestion) -> str | None:
        """Ask for a line; return None if the user declines."""
        ...
