"""What an agent and a client tell each other about themselves before there is any session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, cast

import msgspec

STORES = "holdfast/stores"
"""Under this name in `_meta` of `initialize` stand the marks of the stores that an agent's sessions are kept in before
they reach it: those of the Holdfasts that stand before it."""

SAME_STORE = "holdfast/sameStore"
"""True under this name in `_meta` of the answer if the agent is a Holdfast that keeps its sessions in one of those."""


class AuthMethod(NamedTuple):
    """A way to log in.

    Attributes:
        id: its name for programs.
        name: its name for people.
        description: what it does, for people to read.

    """

    id: str
    name: str
    description: str | None = None
    arguments: tuple[str, ...] | None = None
    """Where the client runs the agent's own command in a terminal for it: the arguments to add to that command."""
    more: dict[str, Any] | None = None
    """Further members, as the agent has them."""


class AgentDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent tells a client about itself before there is any session.

    Attributes:
        version: its version.
        title: its name for people.
        auth_methods: the ways to log in.
        meta: `_meta` of the answer to `initialize`.

    """

    name: str
    """Its sessions belong to this name."""
    version: str = "0"
    title: str | None = None
    accepts: frozenset[str] = frozenset()
    """What it takes besides text and links: ``image``, ``audio``, ``resource`` in prompts; ``system_prompt`` where a
    client may add to its instructions, ``system_prompt_override`` where it may replace them too."""
    auth_methods: tuple[AuthMethod, ...] = ()
    auth_required: bool = False
    """Whether a client must log in before it opens a session."""
    logged_in: Callable[[], Awaitable[bool]] | None = None
    """Says whether the user is logged in already, where the agent can tell, as by a key in a file."""
    providers: bool = False
    """Whether it answers ``providers/list``, ``providers/set`` and ``providers/disable`` (unstable)."""
    mcp_kinds: frozenset[str] = frozenset({"stdio", "http", "sse"})
    """The kinds of MCP servers it connects to."""
    additional_directories: bool = True
    """Whether a session may have other directories besides its working directory."""
    protocol: int | None = None
    """The protocol version in which it is to be spoken to; None where it is all one to it."""
    forwards: bool = False
    """Whether it stands before another agent: MCP servers go to that one as the client names them, and what that one
    says reaches the client even if nobody here knows it."""
    meta: dict[str, Any] | None = None


class OwnSession(NamedTuple):
    """A session that an agent has itself, and that need not be in our store (G9)."""

    id: str
    """The agent's own id."""
    cwd: str
    title: str | None
    updated_at: int
    """Microseconds since 1970, 0 where the agent does not say."""
    memory: dict[str, Any]
    """What is remembered with the session when it is adopted."""


class ClientInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a client said about itself in `initialize`.

    Attributes:
        protocol: the version of the protocol that is spoken.
        capabilities: what it can do, as it said it.
        name: its name for programs.
        version: its version.
        title: its name for people.

    """

    protocol: int
    capabilities: dict[str, Any] = {}
    name: str | None = None
    version: str | None = None
    title: str | None = None
    meta: dict[str, Any] | None = None
    """The `_meta` of `initialize`. It may hold secrets: it is never stored."""

    @property
    def has_terminal_login(self) -> bool:
        """Whether it can start the agent's command in a terminal, so that the user logs in there."""
        auth = self.capabilities.get("auth")
        return isinstance(auth, dict) and cast("dict[str, Any]", auth).get("terminal") not in (None, False)
