"""Where other nodes come in: a WebSocket at a path of its own, for those who prove that they know the secret.

Neither names nor tokens are asked for here: whoever has the secret may speak for every principal, as every process on
the database can anyhow. A page in a browser is refused whatever it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cluster.node_links import LINE_BYTES, PATH, PING_SECONDS, PONG_SECONDS
from holdfast.cluster.node_secret import PROOF
from holdfast.server.remote.door import NODES
from holdfast.server.remote.requests import Refusal
from holdfast.transport.asgi_websocket import AsgiWebSocketTransport

if TYPE_CHECKING:
    from holdfast.server.host import Host
    from holdfast.server.remote.requests import Receive, RemoteRequest, Send


class NodeEntrance:
    """Lets other nodes open links to this one."""

    path: str = PATH

    def __init__(self, host: Host) -> None:
        self._host = host

    async def serve(self, request: RemoteRequest, direct: Any, receive: Receive, send: Send) -> None:
        """Serve a link until its end; raise `Refusal` for whoever does not prove to be a node."""
        node, neighbours = self._host.node, self._host.neighbours
        if node is None or "origin" in request.headers or request.method != "WEBSOCKET":
            raise Refusal(404, "There is nothing here")
        proof = node.secret.check(request.headers.get("authorization", ""))
        if proof is None:
            raise Refusal(401, "This is for the nodes of the same store", {"www-authenticate": node.secret.challenge()})
        if neighbours is None or not neighbours.has_room:
            raise Refusal(503, "No session is open here, or too many are linked", {"retry-after": "1"})
        if direct is not None:
            direct.claim(NODES)
        await receive()  # the handshake
        await send({"type": "websocket.accept", "headers": [(PROOF.encode(), proof.encode())]})
        if direct is None:
            transport = AsgiWebSocketTransport(receive, send, limit=LINE_BYTES)
        else:
            transport = direct.take_over(limit=LINE_BYTES, ping=PING_SECONDS, pong=PONG_SECONDS)
        await neighbours.serve(transport)
