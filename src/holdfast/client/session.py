"""`ClientSession`: one conversation as a client sees it, and `Prompting`, a turn in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from holdfast.model import Event, History, Update


class Updates:
    """All that happens in a session from now on, in turns and outside of them: an async iterator of events."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        raise NotImplementedError


class Prompting:
    """A turn: nothing is sent before it is iterated over, awaited, or entered with `async with`."""

    stop_reason: str | None
    """Why it ended; None while it has not."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        raise NotImplementedError

    def __await__(self) -> Generator[Any, None, str]:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(self, *_: object) -> None:
        raise NotImplementedError


class ClientSession:
    """A conversation with an agent."""

    id: str
    cwd: str
    additional: tuple[str, ...]
    history: History
    title: str | None
    mode: str | None
    modes: dict[str, str]
    """Ids of modes, and what they are called."""
    model: str | None
    models: dict[str, str]
    options: dict[str, dict[str, Any]]
    """By id, everything that can be set: `name`, `type` (``select`` or ``boolean``), `currentValue`, `options`…"""
    commands: dict[str, dict[str, Any]]
    """By name, the slash commands: `description`, `input`…"""
    usage: dict[str, Any] | None
    """How much of the context is used: `used`, `size`, perhaps `cost`."""
    running: bool
    """Whether a turn is running, ours or another client's."""

    def prompt(self, prompt: str | Sequence[Update]) -> Prompting:
        """Say something, text or content blocks, and watch what the agent does."""
        raise NotImplementedError

    async def ask_text(self, prompt: str | Sequence[Update]) -> str:
        """Say something and get the agent's answer as text."""
        raise NotImplementedError

    async def cancel(self) -> None:
        """Stop what the agent does; returns when it has stopped."""
        raise NotImplementedError

    def updates(self) -> Updates:
        """Watch all that happens from now on."""
        raise NotImplementedError

    async def set_mode(self, mode: str) -> None:
        """Switch the mode."""
        raise NotImplementedError

    async def set_model(self, model: str) -> None:
        """Switch the model."""
        raise NotImplementedError

    async def set_option(self, option_id: str, value: str | bool) -> None:  # noqa: FBT001
        """Set one of `options`."""
        raise NotImplementedError

    async def fork(self) -> ClientSession:
        """Begin a conversation with the past of this one."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the conversation; what the agent does in it is cancelled, what it has stored stays."""
        raise NotImplementedError
