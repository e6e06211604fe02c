"""A request of the agent, sent on to a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors import AgentRefused, ConnectionLost, InternalError, RemoteError

if TYPE_CHECKING:
    from holdfast.engine import ConnectedClient
    from holdfast_app.wrap.launch import HostedSession


async def forwarded(client: ConnectedClient | HostedSession, method: str, params: Any) -> Any:
    """Send a request of the agent to a client, or to the server in its place, and return its result.

    An error of the client's is the agent's too.
    """
    try:
        return await client.request(method, params)
    except RemoteError as e:
        raise AgentRefused(e.code, e.message, e.data) from None
    except ConnectionLost:
        raise InternalError("The client has gone") from None
