"""The port between a conversation and what it is shown on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from holdfast.view.blocks import Block
    from holdfast_app.chat.program_in_terminal import ProgramEnd


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to a `KeyQuestion`: the key that gives it, and its label."""

    key: str
    label: str
    value: str
    tone: Literal["good", "error", "info"] = "info"


@dataclass(frozen=True, slots=True)
class KeyQuestion:
    """A question that is answered with a single key; `default` is the answer of Enter and Escape.

    Without a default Escape gives up, and Enter does nothing.
    """

    text: str
    choices: tuple[Choice, ...]
    default: str | None = None
    enter_ends_text: bool = False
    """Whether Enter gives the default also behind a text that is being typed. Otherwise it belongs to the text."""


@dataclass(frozen=True, slots=True)
class LineQuestion:
    """A question that is answered with a line of text; `check` returns what is wrong with a line, or nothing."""

    label: str
    hint: str
    check: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class ListQuestion:
    """A question that is answered by choosing one of many: by arrows, or by typing a part of it."""

    text: str
    items: tuple[tuple[str, str], ...]
    """What each is called, and its value."""


class Candidate(NamedTuple):
    """Something that what was typed could be completed to."""

    text: str
    about: str
    replaces: int | None = None
    """How many characters before the cursor it replaces; None for all of the line."""


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

    def is_busy(self) -> bool:
        """Return whether there is anything that `interrupt` would stop."""
        ...

    def paste(self, text: str) -> str:
        """Return what is to be typed for a text that was pasted: for the name of an image, what stands for it."""
        ...

    async def paste_image(self) -> str:
        """Return what stands for the image in the clipboard; nothing where there is none."""
        ...

    def edited_again(self) -> None:
        """Let the user choose something that was said before, to say it otherwise."""
        ...

    def edit_given_up(self) -> None:
        """Note that what was taken up again to be edited is left as it was."""
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

    async def ask_item(self, question: ListQuestion) -> str | None:
        """Let the user choose one of many; return its value, or None."""
        ...

    def edit(self, text: str) -> None:
        """Put a text into the edited line."""
        ...

    def send(self, text: str) -> None:
        """Take a text as if the user had sent it."""
        ...

    async def run_elsewhere(self, command: tuple[str, ...], cwd: str, env: dict[str, str]) -> ProgramEnd | None:
        """Let a program have the terminal until it ends; return how it did, None where there is no terminal."""
        ...
