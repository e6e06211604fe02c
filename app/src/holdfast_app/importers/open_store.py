"""`open_agent_store`: the reader for an agent's own sessions, by the name that the command line has for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast_app.importers.claude import ClaudeStore
from holdfast_app.importers.codex import CodexStore
from holdfast_app.importers.gemini import GeminiStore
from holdfast_app.importers.opencode import OpencodeStore

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast_app.importers.found_session import AgentStore

_STORES = {"claude": ClaudeStore, "codex": CodexStore, "gemini": GeminiStore, "opencode": OpencodeStore}

AGENTS = tuple(_STORES)
"""The agents whose sessions can be read, by the names that their wrapped sessions belong to."""


def open_agent_store(agent: str, home: Path | None = None) -> AgentStore:
    """Return a reader of an agent's own sessions: those in `home`, or where the agent keeps them on this machine."""
    return _STORES[agent](home, os.environ)
