"""Live sessions: what happens between a store that keeps them and connections that watch them.

The engine opens, restores, forks, closes and deletes sessions, runs their turns one after the other, puts every event
into the store before anyone sees it, and shows it to whoever watches. It speaks only the model: it knows no protocol,
no connection, and not what an agent does in a turn.
"""

from holdfast.engine.engine import Engine
from holdfast.engine.limits import Limits
from holdfast.engine.port import AgentPort, Watcher
from holdfast.engine.session import Attachment, LiveSession
from holdfast.engine.turn import Turn

__all__ = ["AgentPort", "Attachment", "Engine", "Limits", "LiveSession", "Turn", "Watcher"]
