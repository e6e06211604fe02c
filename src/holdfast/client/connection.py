"""`Connection`: one agent, and the sessions that are open with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from holdfast.client.session import ClientSession


class About(NamedTuple):
    """What an agent says of itself."""

    name: str
    version: str
    title: str | None


class Listed(NamedTuple):
    """A session as the agent lists it; `raw` has all it said."""

    id: str
    cwd: str
    title: str | None
    updated_at: datetime | None
    additional: tuple[str, ...]
    archived: bool
    raw: dict[str, Any]


class Connection:
    """An agent we are connected to."""

    agent: About
    protocol: int
    capabilities: dict[str, Any]
    """What the agent said it can do, as it said it."""
    auth_methods: tuple[dict[str, Any], ...]
    """Ways to log in, each with an `id` and a `name`."""

    def can(self, what: str) -> bool:
        """Say whether the agent offers ``load``, ``resume``, ``fork``, ``list``, ``delete``, ``close``, ``image``…"""
        raise NotImplementedError

    async def authenticate(self, method_id: str) -> None:
        """Log in by one of `auth_methods`."""
        raise NotImplementedError

    async def new_session(
        self,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
    ) -> ClientSession:
        """Begin a conversation in a directory (ours unless said otherwise)."""
        raise NotImplementedError

    async def load(
        self,
        session_id: str,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
    ) -> ClientSession:
        """Go on with a conversation, its past in `history`."""
        raise NotImplementedError

    async def resume(
        self,
        session_id: str,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
    ) -> ClientSession:
        """Go on with a conversation without being told its past."""
        raise NotImplementedError

    async def fork(
        self,
        session_id: str,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
    ) -> ClientSession:
        """Begin a conversation with the past of another."""
        raise NotImplementedError

    def sessions(self, cwd: str | Path | None = None) -> AsyncIterator[Listed]:
        """Go through all sessions the agent has, or those of one directory, page by page."""
        raise NotImplementedError

    async def delete(self, session_id: str) -> None:
        """Delete a session."""
        raise NotImplementedError
