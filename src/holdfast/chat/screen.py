"""What the conversation needs of whatever it is shown on, and what that may ask of the conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from holdfast.view.blocks import Block


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to a question: the key that gives it, and what it is called."""

    key: str
    label: str
    value: str
    tone: Literal["good", "error", "info"] = "info"


@dataclass(frozen=True, slots=True)
class Ask:
    """A question that is answered with a single key; `default` is what Enter and Escape mean."""

    text: str
    choices: tuple[Choice, ...]
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A question that is answered with a line of text; `check` says what is wrong with it, or nothing."""

    label: str
    hint: str
    check: Callable[[str], str]


class Candidate(NamedTuple):
    """Something the line could be completed to."""

    text: str
    about: str


class Outlook(Protocol):
    """What a screen may ask of the conversation, at any time."""

    def live(self) -> Iterable[Block]:
        """Give what may still change."""
        ...

    def busy(self) -> str:
        """Say what is being done right now; nothing where nothing is."""
        ...

    def status(self) -> str:
        """Say in one line what is worth knowing: mode, model, usage."""
        ...

    def complete(self, line: str) -> Iterable[Candidate]:
        """Give what a line could become."""
        ...

    def interrupt(self) -> bool:
        """Stop what is being done; say whether anything was."""
        ...


class Screen(Protocol):
    """Where a conversation is shown."""

    interactive: bool
    """Whether somebody is there to be asked."""
    left: asyncio.Event
    """Whether the user wants to leave."""

    def show(self, *blocks: Block) -> None:
        """Print blocks, once and for all."""
        ...

    def changed(self) -> None:
        """Look again at what may change."""
        ...

    async def read(self) -> str | None:
        """Wait for what the user says; None when the user leaves."""
        ...

    def leave(self) -> None:
        """Let the user leave."""
        ...

    def take_back(self) -> None:
        """Forget what was said and not read yet."""
        ...

    async def choose(self, ask: Ask) -> str | None:
        """Ask; give the value of the answer, or the default."""
        ...

    async def fill(self, field: Field) -> str | None:
        """Ask for a line; None where the user does not want to give one."""
        ...
