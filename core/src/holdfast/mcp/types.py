"""The values that authors get from MCP servers. None of them is a type of the MCP SDK."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

State: TypeAlias = Literal["connecting", "ready", "failed", "closed"]


class McpLimits(NamedTuple):
    """How long servers may take, in seconds, and how much they may send at once, in bytes."""

    start: float = 10.0
    """A server that is not ready after this time has failed (E3)."""
    call: float = 300.0
    """A call is given up when neither progress nor a result arrives for this time."""
    listing: float = 30.0
    """The same for listing tools, resources and prompts."""
    stop: float = 0.4
    """A process has this long to exit after the end of its input, and again after being asked to terminate."""
    backoff: float = 0.5
    """A server that failed twice in a row is not restarted before this time. It doubles with each failure…"""
    max_backoff: float = 60.0
    """…up to this one."""
    message_bytes: int = 16 << 20
    """A server that sends a longer message is disconnected."""


class ServerStatus(msgspec.Struct, frozen=True):
    """The state of a server.

    Attributes:
        name: its name.
        state: what it does.
        reason: why it failed, with the end of its stderr.

    """

    name: str
    state: State
    reason: str | None = None


class Tool(msgspec.Struct, frozen=True):
    """A tool that a server offers.

    Attributes:
        server: the name of the server.
        name: its name for programs.
        title: its name for people.
        description: what it does.
        input_schema: the JSON schema of its arguments.
        output_schema: the JSON schema of what it returns, where it says so.

    """

    server: str
    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    read_only: bool = False
    """Whether the server says that the tool changes nothing, and does not say that it destroys something."""
    destructive: bool = False
    """Whether the server says that the tool may destroy something."""


class ToolResult(msgspec.Struct, frozen=True):
    """The result of a tool.

    Attributes:
        content: content blocks, which ACP has too.
        structured: an object, if the tool returns one.

    """

    content: tuple[dict[str, Any], ...]
    structured: Any = None

    @property
    def text(self) -> str:
        """The text of all content blocks."""
        return text_of(self.content)


class Progress(msgspec.Struct, frozen=True):
    """How far a call has come.

    Attributes:
        done: how far.
        total: how far it goes, where that is known.
        message: what is being done.

    """

    done: float
    total: float | None = None
    message: str | None = None

    def __str__(self) -> str:
        far = f"{self.done:g}" if self.total is None else f"{self.done:g}/{self.total:g}"
        return f"{far} {self.message}" if self.message else far


class Resource(msgspec.Struct, frozen=True):
    """A resource that a server lets clients read.

    Attributes:
        server: the name of the server.
        uri: its address.
        name: its name.
        description: what it is.
        mime_type: its type, where the server says so.

    """

    server: str
    uri: str
    name: str
    description: str = ""
    mime_type: str | None = None


class Prompt(msgspec.Struct, frozen=True):
    """A prompt that a server offers.

    Attributes:
        server: the name of the server.
        name: its name.
        description: what it is for.
        arguments: objects with name, description and required.

    """

    server: str
    name: str
    description: str = ""
    arguments: tuple[dict[str, Any], ...] = ()


def text_of(blocks: tuple[dict[str, Any], ...]) -> str:
    """Return the text of content blocks, one per line, including that of embedded resources."""
    texts = [block.get("text") or block.get("resource", {}).get("text") for block in blocks]
    return "\n".join(text for text in texts if isinstance(text, str))
