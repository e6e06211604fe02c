"""The life of a turn, as a table.

A turn waits for its place, runs, may stop to wait for the user any number of times, and ends exactly once. What is not
in the table cannot happen; to try it is a mistake in the engine.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias

import msgspec

StopReason: TypeAlias = Literal[
    "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error", "interrupted"
]
"""Why a turn ended. `error` and `interrupted` (the process died) have no word in protocol version 1."""


class Phase(Enum):
    """Where a turn is."""

    WAITING = "waiting"
    RUNNING = "running"
    ASKING = "asking"
    ENDED = "ended"


Happening: TypeAlias = Literal["start", "ask", "answer", "end"]

TRANSITIONS: dict[tuple[Phase, Happening], Phase] = {
    (Phase.WAITING, "start"): Phase.RUNNING,
    (Phase.WAITING, "end"): Phase.ENDED,  # cancelled before it began
    (Phase.RUNNING, "ask"): Phase.ASKING,
    (Phase.ASKING, "ask"): Phase.ASKING,  # questions may be asked side by side
    (Phase.ASKING, "answer"): Phase.RUNNING,
    (Phase.RUNNING, "end"): Phase.ENDED,
    (Phase.ASKING, "end"): Phase.ENDED,
}


def next_phase(phase: Phase, happening: Happening) -> Phase:
    """Look up what follows."""
    try:
        return TRANSITIONS[phase, happening]
    except KeyError:
        raise AssertionError(f"a turn that is {phase.value} cannot {happening}") from None


class TurnEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a turn ended; `error` is what the client was told where it failed."""

    reason: StopReason
    error: str | None = None
