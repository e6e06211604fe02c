"""The other processes on the same store: sockets, who may connect to them, and links made of our own peer.

`SocketNeighbours` implements the port `Neighbours` of the engine. It knows how a link reaches another process and who
is at its other end, and nothing of what goes over it; that is `holdfast.engine.relay`.
"""

from holdfast.neighbours.links import SocketNeighbours, is_available

__all__ = ["SocketNeighbours", "is_available"]
