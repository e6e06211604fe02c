"""Random stories of one session in many processes, in short; `core.tests.torture.relay` tells them for ten minutes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from core.tests.support.relay_stories import Step, stories, tell_story

QUIT_AND_KILL: list[Step] = [
    ("join", 1, 2),
    ("join", 2, 1),
    ("prompt", 1, 40, "end"),
    ("prompt", 2, 30, "ask"),
    ("pause", 0.2),
    ("answer", 0),
    ("prompt", 0, 50, "wait"),
    ("kill", 0),
    ("prompt", 2, 20, "wait"),
    ("pause", 0.1),
    ("quit", 1),
    ("join", 3, 2),
    ("prompt", 3, 10, "end"),
]


@pytest.mark.timeout(600)
@pytest.mark.requirement("F4", "F5", "P1", "P3", "P4")
@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.explicit, Phase.generate]
)
@given(stories)
@example(QUIT_AND_KILL)
def test_whatever_happens_all_clients_saw_one_order_and_the_store_has_it(story: list[Step]) -> None:
    tell_story(story)
