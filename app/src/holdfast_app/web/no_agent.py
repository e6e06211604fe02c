"""The port of a server that has no agent of its own: `holdfast web` is for people, and says so to others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.engine import AgentSession, ConnectedClient, LiveSession, Origin, SessionClient
    from holdfast.model import AgentDescription, Event, OwnSession


class NoAgent:
    """Refuses every client that comes for an agent; so nothing else is ever asked of it."""

    begins_entries = True

    async def describe(self, client: ConnectedClient) -> AgentDescription:  # noqa: ARG002
        raise _refusal()

    async def log_in(self, method_id: str, client: ConnectedClient) -> None:  # noqa: ARG002
        raise _refusal()

    async def log_out(self, client: ConnectedClient) -> None:  # noqa: ARG002
        raise _refusal()

    async def open(self, session: LiveSession, client: SessionClient | None, origin: Origin) -> AgentSession:  # noqa: ARG002
        raise _refusal()

    async def own_sessions(self, client: ConnectedClient, cwd: str | None) -> Sequence[OwnSession]:  # noqa: ARG002
        return ()

    async def adopt(self, own_id: str, client: SessionClient) -> tuple[OwnSession, Sequence[Event]] | None:  # noqa: ARG002
        return None

    async def deleted(self, principal: str, memory: dict[str, Any]) -> None: ...

    async def request(self, method: str, params: Any, client: ConnectedClient) -> object:  # noqa: ARG002
        raise _refusal()

    async def notify(self, method: str, params: Any, client: ConnectedClient) -> None: ...


def _refusal() -> InvalidRequest:
    return InvalidRequest("This is the page of `holdfast web`; `holdfast serve AGENT --web` serves an agent as well")
