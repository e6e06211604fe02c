"""What other agents keep of their sessions themselves, read and never written: where it lies, and what it says.

Each agent has a module with one class that finds its sessions and reads one, as updates. The formats are theirs,
undocumented, and change: what a session holds that is not known is skipped. Nothing here knows our store.
"""

from holdfast_app.importers.found_session import AgentStore, FoundSession
from holdfast_app.importers.open_store import AGENTS, open_agent_store

__all__ = ["AGENTS", "AgentStore", "FoundSession", "open_agent_store"]
