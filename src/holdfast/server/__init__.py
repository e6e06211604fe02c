"""A connection: a peer, the surface its client asked for, and the engine behind both.

`Host` is what all connections of a process share; `serve_stdio` is the one connection of an agent an editor started.
"""

from holdfast.server.connection import Connection
from holdfast.server.host import Host
from holdfast.server.stdio import serve_stdio

__all__ = ["Connection", "Host", "serve_stdio"]
