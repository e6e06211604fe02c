"""The life of a turn: everything that may follow something, and nothing else."""

from __future__ import annotations

from typing import get_args

import pytest

from holdfast.model import Phase, TurnTrigger, next_phase

LIFE = {
    Phase.WAITING: {"start": Phase.RUNNING, "end": Phase.ENDED},
    Phase.RUNNING: {"ask": Phase.ASKING, "end": Phase.ENDED},
    Phase.ASKING: {"ask": Phase.ASKING, "answer": Phase.RUNNING, "end": Phase.ENDED},
    Phase.ENDED: dict[str, Phase](),
}


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("trigger", get_args(TurnTrigger))
def test_a_turn_goes_through_its_phases_and_ends_once(phase: Phase, trigger: TurnTrigger) -> None:
    if trigger in LIFE[phase]:
        assert next_phase(phase, trigger) is LIFE[phase][trigger]
    else:
        with pytest.raises(AssertionError, match=phase.value):
            next_phase(phase, trigger)
