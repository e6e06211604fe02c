"""What an author gets from MCP servers: plain values, none of the SDK's."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

State: TypeAlias = Literal["connecting", "ready", "failed", "closed"]


class Limits(NamedTuple):
    """How long things may take, in seconds, and how much may come at once, in bytes."""

    start: float = 10.0
    """A server that is not ready after this time has failed (E3)."""
    call: float = 300.0
    """A call that hears nothing for this time, neither progress nor a result, is given up."""
    listing: float = 30.0
    """The same for asking what there is."""
    stop: float = 0.4
    """A process that was told to end has this long, twice: for the end of its input, and for being asked to."""
    again: float = 0.5
    """A server that failed twice in a row is not started again before this time; it doubles each time…"""
    again_most: float = 60.0
    """…up to this one."""
    line: int = 16 << 20
    """A server that sends a longer message is let go."""


class ServerStatus(msgspec.Struct, frozen=True):
    """How a server is doing; `reason` says why it failed, with the last of its stderr."""

    name: str
    state: State
    reason: str | None = None


class Tool(msgspec.Struct, frozen=True):
    """A tool that a server offers."""

    server: str
    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    read_only: bool = False
    """Whether the server says that it changes nothing."""


class ToolResult(msgspec.Struct, frozen=True):
    """What a tool gave: content blocks, which are those of ACP too, and an object where the tool has one."""

    content: tuple[dict[str, Any], ...]
    structured: Any = None

    @property
    def text(self) -> str:
        """The text of it."""
        return text_of(self.content)


class Progress(msgspec.Struct, frozen=True):
    """How far a call has come."""

    done: float
    total: float | None = None
    message: str | None = None

    def __str__(self) -> str:
        far = f"{self.done:g}" if self.total is None else f"{self.done:g}/{self.total:g}"
        return f"{far} {self.message}" if self.message else far


class Resource(msgspec.Struct, frozen=True):
    """Something a server lets one read."""

    server: str
    uri: str
    name: str
    description: str = ""
    mime_type: str | None = None


class Prompt(msgspec.Struct, frozen=True):
    """A prompt that a server has ready; `arguments` are objects with name, description and required."""

    server: str
    name: str
    description: str = ""
    arguments: tuple[dict[str, Any], ...] = ()


def text_of(blocks: tuple[dict[str, Any], ...]) -> str:
    """Put together the text of content blocks, that of embedded resources too."""
    said = [it.get("text") or it.get("resource", {}).get("text") for it in blocks]
    return "\n".join(it for it in said if isinstance(it, str))
