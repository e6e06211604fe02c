"""The other processes on the same store: sockets, nodes, who may connect to them, and links made of our own peer.

`PeerNeighbours` implements the port `Neighbours` of the engine. It knows how a link reaches another process and who
is at its other end, and nothing of what goes over it; that is `holdfast.engine.relay`.
"""

from typing import TYPE_CHECKING

from holdfast.cluster.links import PeerNeighbours, is_available

if TYPE_CHECKING:
    from holdfast.cluster.node_secret import NodeSecret

__all__ = ["NodeSecret", "PeerNeighbours", "is_available"]


def __getattr__(name: str) -> object:
    """Import what nodes prove to each other only where there are nodes: an editor's agent should not wait for it."""
    if name == "NodeSecret":
        from holdfast.cluster.node_secret import NodeSecret  # noqa: PLC0415

        return NodeSecret
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
