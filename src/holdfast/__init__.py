"""Holdfast gives every ACP agent sessions that hold.

`Agent` declares an agent, `Turn` is what its handler gets; `connect` talks to any agent, in a `Connection` with its
`ClientSession`s; `holdfast.errors` has every exception. Names are loaded when they are first used, so that whoever
needs a part does not wait for the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.agent import Agent, Session, ToolCall, Turn
    from holdfast.client import ClientSession, Connection, Prompting, connect
    from holdfast.errors import HoldfastError

__all__ = [
    "Agent",
    "ClientSession",
    "Connection",
    "HoldfastError",
    "Prompting",
    "Session",
    "ToolCall",
    "Turn",
    "connect",
]

_HOMES = {
    "Agent": "holdfast.agent.agent",
    "ClientSession": "holdfast.client.session",
    "Connection": "holdfast.client.connection",
    "HoldfastError": "holdfast.errors",
    "Prompting": "holdfast.client.session",
    "Session": "holdfast.agent.session",
    "ToolCall": "holdfast.agent.tools",
    "Turn": "holdfast.agent.turn",
    "connect": "holdfast.client.connecting",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
