"""What a surface needs to know of an agent to describe it to a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

FORK_AT = "holdfast/upTo"
"""In the `_meta` of `session/fork`: the id of the message or tool call that the fork ends with (B15)."""

FORK: dict[str, Any] = {"fork": {"_meta": {FORK_AT: {}}}}
"""The ability to fork, which says that a fork may end with any message."""

MCP = "mcp_"
"""What the name of an ability begins with that says which kind of MCP servers an agent connects: ``mcp_http``."""

REPLAY_COMPLETE = "replay_complete"
"""The update that tells a client of version 2 that it has seen the whole past (a draft)."""


class Description(Protocol):
    """An agent, as it describes itself; `holdfast.engine.AgentDescription` is one."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def accepts(self) -> frozenset[str]: ...
    @property
    def auth_methods(self) -> Sequence[tuple[str, str, str | None, tuple[str, ...] | None, dict[str, Any] | None]]: ...
    @property
    def providers(self) -> bool: ...
    @property
    def mcp_kinds(self) -> frozenset[str]: ...
    @property
    def additional_directories(self) -> bool: ...
    @property
    def meta(self) -> dict[str, Any] | None: ...
