"""Links between nodes: a WebSocket at a path of the node's own HTTP port, opened with a proof of the secret."""

from __future__ import annotations

import asyncio
import hmac
from typing import TYPE_CHECKING

from holdfast.cluster.node_secret import PROOF
from holdfast.errors import ConnectionRefused, NeighbourLost, UsageError
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from holdfast.cluster.node_secret import NodeSecret
    from holdfast.transport.websocket import WebSocketTransport

PATH = "/holdfast/node"
"""Where a node takes links, below its address."""

CONNECT_SECONDS = 4.0
"""So long it may take until a link is open."""

PING_SECONDS, PONG_SECONDS = 4.0, 6.0
"""A node that is stopped, or behind a cable that was cut, is noticed within ten seconds."""

LINE_BYTES = 64 << 20
"""An event is at most 12 MiB long, and its text is sent beside it."""


def is_node_address(address: str) -> bool:
    """Return whether an address is one of a node on a network."""
    return address.startswith(("http://", "https://"))


async def connect(address: str, secret: NodeSecret | None) -> WebSocketTransport:
    """Open a WebSocket to a node; raise `NeighbourLost` where it is not there, or one of us lacks the secret."""
    if secret is None:
        raise NeighbourLost("this process does not know the secret of the nodes (HOLDFAST_NODE_SECRET)")
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await _prove_and_connect(address.rstrip("/") + PATH, secret)
    except TimeoutError:
        raise NeighbourLost("it does not answer", hangs=True) from None
    except (ConnectionRefused, UsageError, ValueError) as e:
        raise NeighbourLost(str(e)) from None


async def _prove_and_connect(url: str, secret: NodeSecret) -> WebSocketTransport:
    try:
        transport = await connect_websocket(url)
    except ConnectionRefused as e:
        if e.status != 401:
            raise
        proof = secret.answer(e.headers.get("www-authenticate", ""))
    else:
        await transport.close(0)
        raise ValueError("it lets in everybody, and so is no node")
    headers = {"Authorization": proof.authorization}
    try:
        transport = await connect_websocket(
            url, headers=headers, limit=LINE_BYTES, ping=PING_SECONDS, pong=PONG_SECONDS
        )
    except ConnectionRefused as e:
        raise ValueError("it has another secret" if e.status == 401 else str(e)) from None
    if not hmac.compare_digest(transport.headers.get(PROOF, "").encode(), proof.expected.encode()):
        await transport.close(0)
        raise ValueError("it does not know the secret")
    return transport
