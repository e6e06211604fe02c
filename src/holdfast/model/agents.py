"""What an agent and a client tell each other about themselves before there is any session."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec


class AuthMethod(NamedTuple):
    """A way to log in."""

    id: str
    name: str
    description: str | None = None


class AgentDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent tells a client about itself before there is any session."""

    name: str
    """Its sessions belong to this name (F1)."""
    version: str = "0"
    title: str | None = None
    accepts: frozenset[str] = frozenset()
    """What it takes besides text and links: ``image``, ``audio``, ``resource`` in prompts; ``system_prompt`` where a
    client may add to its instructions, ``system_prompt_override`` where it may replace them too."""
    auth_methods: tuple[AuthMethod, ...] = ()
    auth_required: bool = False
    """Whether a client must log in before it opens a session."""
    mcp_kinds: frozenset[str] = frozenset({"stdio", "http", "sse"})
    """The kinds of MCP servers it connects to."""
    meta: dict[str, Any] | None = None


class ClientInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a client said about itself in `initialize`."""

    protocol: int
    capabilities: dict[str, Any] = {}
    name: str | None = None
    version: str | None = None
