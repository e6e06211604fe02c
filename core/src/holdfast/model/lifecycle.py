"""The phases of a turn, as a table.

A turn waits for its place, runs, may stop to wait for the user any number of times, and ends exactly once. A step that
is not in the table is a mistake in the engine.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal, TypeAlias

import msgspec

StopReason: TypeAlias = Literal[
    "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error", "interrupted"
]
"""Why a turn ended. `error` and `interrupted` (the process died) have no word in protocol version 1."""


class Phase(Enum):
    """What a turn is doing."""

    WAITING = "waiting"
    RUNNING = "running"
    ASKING = "asking"
    ENDED = "ended"


TurnTrigger: TypeAlias = Literal["start", "ask", "answer", "end"]
"""What moves a turn from one phase to the next."""

TRANSITIONS: dict[tuple[Phase, TurnTrigger], Phase] = {
    (Phase.WAITING, "start"): Phase.RUNNING,
    (Phase.WAITING, "end"): Phase.ENDED,  # cancelled before it began
    (Phase.RUNNING, "ask"): Phase.ASKING,
    (Phase.ASKING, "ask"): Phase.ASKING,  # questions may be asked side by side
    (Phase.ASKING, "answer"): Phase.RUNNING,
    (Phase.RUNNING, "end"): Phase.ENDED,
    (Phase.ASKING, "end"): Phase.ENDED,
}


def next_phase(phase: Phase, trigger: TurnTrigger) -> Phase:
    """Return the phase that follows; raise AssertionError where the table has none."""
    try:
        return TRANSITIONS[phase, trigger]
    except KeyError:
        raise AssertionError(f"a turn that is {phase.value} cannot {trigger}") from None


class TurnEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a turn ended; `error` is what the client was told where it failed."""

    reason: StopReason
    error: str | None = None
    more: dict[str, Any] = {}
    """Further members of what the client that prompted is told, as `usage` and `_meta`."""
