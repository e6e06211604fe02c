"""What the author of an agent imports: `Agent` says what it is, `Turn` is what its handler gets.

Nothing here knows the protocol. An author says things and asks things; how they reach the client, what a version can
express and what survives a crash is not the author's business. Names are loaded when they are first used: an agent is
declared with `Agent` alone, and answers `initialize` before anything else is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.agent.agent import Agent
    from holdfast.agent.messages import Message
    from holdfast.agent.session import Session
    from holdfast.agent.terminals import BackgroundTerminal
    from holdfast.agent.tools import ToolCall
    from holdfast.agent.turn import Turn

__all__ = ["Agent", "BackgroundTerminal", "Message", "Session", "ToolCall", "Turn"]

_HOMES = {
    "Agent": "agent",
    "BackgroundTerminal": "terminals",
    "Message": "messages",
    "Session": "session",
    "ToolCall": "tools",
    "Turn": "turn",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
