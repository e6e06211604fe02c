"""Holdfast gives every ACP agent sessions that hold.

`Agent` declares an agent, `Turn` is what its handler gets. `connect` starts any agent and returns a `Connection` with
its `ClientSession`s, whose turns are `ClientTurn`s. `asgi` serves an agent over the network. `holdfast.errors` has
every exception. Names are loaded when they are first used, so that a program that needs a part does not wait for the
rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.agent import Agent, Session, ToolCall, Turn
    from holdfast.asgi_app import asgi
    from holdfast.client import ClientSession, ClientTurn, Connection, connect
    from holdfast.errors import HoldfastError

__all__ = [
    "Agent",
    "ClientSession",
    "ClientTurn",
    "Connection",
    "HoldfastError",
    "Session",
    "ToolCall",
    "Turn",
    "asgi",
    "connect",
]

_HOMES = {
    "Agent": "holdfast.agent.agent",
    "ClientSession": "holdfast.client.session",
    "ClientTurn": "holdfast.client.turn",
    "Connection": "holdfast.client.connection",
    "HoldfastError": "holdfast.errors",
    "Session": "holdfast.agent.session",
    "ToolCall": "holdfast.agent.tools",
    "Turn": "holdfast.agent.turn",
    "asgi": "holdfast.asgi_app",
    "connect": "holdfast.client.connecting",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        from holdfast.model.near_names import near_name  # noqa: PLC0415  (a mistake)

        meant = f"; did you mean {near!r}?" if (near := near_name(name, __all__)) else ""
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}{meant}", name=name)
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
