"""What tests of agents and clients need and Holdfast's own tests use too. Nothing else in Holdfast imports it.

- `connect_to(agent, …)` connects to an agent of this process, with scripted answers to what the agent asks.
- `ScriptedClient` is that client: `say` goes through a turn and returns a `TurnResult`, `transcript` is the whole
  conversation as a text to compare.
- `assert_valid_wire` checks every message that went over the line.
- `Clock` lets time pass without waiting, for agents with timeouts.
- `holdfast.testing.model_server` is a provider of models on loopback that answers by a script.

With pytest these are fixtures: `connect_to`, `agent_clock`, `compare_transcript`. Whoever has Holdfast and pytest has
them. Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.testing.clock import Clock
    from holdfast.testing.scripted_client import RunningTurn, ScriptedClient, connect_to
    from holdfast.testing.turn_result import ToolCallSeen, TurnResult
    from holdfast.testing.wire_checks import assert_valid_wire

__all__ = [
    "Clock",
    "RunningTurn",
    "ScriptedClient",
    "ToolCallSeen",
    "TurnResult",
    "assert_valid_wire",
    "connect_to",
]

_HOMES = {
    "Clock": "holdfast.testing.clock",
    "RunningTurn": "holdfast.testing.scripted_client",
    "ScriptedClient": "holdfast.testing.scripted_client",
    "ToolCallSeen": "holdfast.testing.turn_result",
    "TurnResult": "holdfast.testing.turn_result",
    "assert_valid_wire": "holdfast.testing.wire_checks",
    "connect_to": "holdfast.testing.scripted_client",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast.testing' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
