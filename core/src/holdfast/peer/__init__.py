"""One end of a JSON-RPC conversation, symmetric: it asks, it answers, it tells, it is told.

`Peer` keeps the promises every protocol on top relies on: order, exactly one answer to every request, cancellation in
both directions, bounded memory. It knows no method but `$/cancel_request`; `Routes` says who answers what.
"""

from holdfast.peer.dropped_line import DroppedLine
from holdfast.peer.incoming import IncomingRequest
from holdfast.peer.limits import PeerLimits
from holdfast.peer.outgoing import SentRequest
from holdfast.peer.peer import Observer, Peer
from holdfast.peer.routes import Routes

__all__ = ["DroppedLine", "IncomingRequest", "Observer", "Peer", "PeerLimits", "Routes", "SentRequest"]
