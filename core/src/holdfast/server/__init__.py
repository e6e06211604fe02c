"""Connections and who asks: a peer, the surface its client asked for, its principal, and the engine behind them.

`Host` is what all connections of a process share: it is given an agent's port and never looks behind it. `serve_stdio`
is the one connection of an agent that an editor started.
"""

from holdfast.server.connection import ClientConnection
from holdfast.server.host import Host
from holdfast.server.stdio import serve_stdio

__all__ = ["ClientConnection", "Host", "serve_stdio"]
