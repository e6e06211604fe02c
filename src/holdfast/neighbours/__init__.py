"""The other processes on the same store: sockets, nodes, who may connect to them, and links made of our own peer.

`PeerNeighbours` implements the port `Neighbours` of the engine. It knows how a link reaches another process and who
is at its other end, and nothing of what goes over it; that is `holdfast.engine.relay`.
"""

from holdfast.neighbours.links import PeerNeighbours, is_available
from holdfast.neighbours.node_secret import NodeSecret

__all__ = ["NodeSecret", "PeerNeighbours", "is_available"]
