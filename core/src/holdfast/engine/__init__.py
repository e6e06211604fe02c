"""Live sessions: what happens between a store that keeps them and the clients that watch them.

The engine opens, restores, forks, closes and deletes sessions, and runs their turns one after the other. Every event
goes through the session's journal, which keeps it before any client is shown it. The engine speaks only the model: it
knows no protocol, no connection, and not what an agent does in a turn.
"""

from holdfast.engine.attachment import Attachment
from holdfast.engine.cluster import Link, LinkUser, Neighbours
from holdfast.engine.engine import Engine
from holdfast.engine.journal import claim_session
from holdfast.engine.limits import EngineLimits
from holdfast.engine.ports import (
    AgentPort,
    AgentSession,
    ConnectedClient,
    OpenAttachment,
    OpenSession,
    OpenTurn,
    Origin,
    SessionClient,
)
from holdfast.engine.session import LiveSession
from holdfast.engine.turn import LiveTurn

__all__ = [
    "AgentPort",
    "AgentSession",
    "Attachment",
    "ConnectedClient",
    "Engine",
    "EngineLimits",
    "Link",
    "LinkUser",
    "LiveSession",
    "LiveTurn",
    "Neighbours",
    "OpenAttachment",
    "OpenSession",
    "OpenTurn",
    "Origin",
    "SessionClient",
    "claim_session",
]
