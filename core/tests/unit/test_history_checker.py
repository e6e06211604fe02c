"""The checker of histories notices every kind of fault that is put into a good one."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

from core.tests.support.history_checker import Accepted, Loaded, Shown, Stored, Witness, check

if TYPE_CHECKING:
    from collections.abc import Callable

History = dict[str, list[Stored]]


def good() -> tuple[Witness, History]:
    stored = {
        "s": [Stored("q1", "say a.0"), Stored("a1", "a.0 a.1 a.2"), Stored("q2", "say b.0"), Stored("a2", "b.0 b.1")],
        "t": [Stored("q3", "say c.0"), Stored("a3", "c.0")],
    }
    first = [Shown("s", (1, 1, n + 1), "a1", f"a.{n} ") for n in range(2)] + [Shown("s", (1, 1, 3), "a1", "a.2")]
    second = [Shown("s", (2, 2, 1), "a2", "b.0 "), Shown("s", (2, 2, 2), "a2", "b.1")]
    witness = Witness(
        shown=[[*first, *second], second, [Shown("t", (1, 1, 1), "a3", "c.0")]],
        loaded=[Loaded("s", [("q1", "say a.0"), ("a1", "a.0 a.1 ")]), Loaded("t", [])],
        accepted=[Accepted("s", "say a.0"), Accepted("s", "say b.0"), Accepted("t", "say c.0")],
    )
    return witness, stored


def test_a_good_history_is_good() -> None:
    assert check(*good()) == []


def lose_answer(_: Witness, stored: History) -> None:
    del stored["s"][1]


def lose_prompt(_: Witness, stored: History) -> None:
    del stored["t"][0]


def lose_session(_: Witness, stored: History) -> None:
    del stored["t"]


def double_prompt(_: Witness, stored: History) -> None:
    stored["s"].append(Stored("q9", "say a.0"))


def double_message(_: Witness, stored: History) -> None:
    stored["s"].append(stored["s"][1])


def gap(_: Witness, stored: History) -> None:
    stored["s"][1] = Stored("a1", "a.0 a.2")


def doubled_word(_: Witness, stored: History) -> None:
    stored["s"][3] = Stored("a2", "b.0 b.0 b.1")


def shortened(_: Witness, stored: History) -> None:
    stored["s"][1] = Stored("a1", "a.0 a.1")


def swapped(_: Witness, stored: History) -> None:
    stored["s"][1], stored["s"][3] = stored["s"][3], stored["s"][1]


def stale_shown(witness: Witness, _: History) -> None:
    witness.shown.append([Shown("s", (1, 3, 1), "stale", "d.0")])


def two_writers(witness: Witness, stored: History) -> None:
    stored["s"].append(Stored("a9", "e.0"))
    witness.shown.append([Shown("s", (2, 2, 2), "a9", "e.0")])


def back_in_time(witness: Witness, _: History) -> None:
    witness.shown[1].append(witness.shown[1][0])


def loaded_too_much(witness: Witness, _: History) -> None:
    witness.loaded.append(Loaded("t", [("q3", "say c.0"), ("a3", "c.0"), ("a4", "c.1")]))


def loaded_otherwise(witness: Witness, _: History) -> None:
    witness.loaded.append(Loaded("s", [("q1", "say a.0"), ("a1", "a.0 "), ("q2", "say b.0")]))


FAULTS: list[Callable[[Witness, History], None]] = [
    lose_answer, lose_prompt, lose_session, double_prompt, double_message, gap, doubled_word, shortened, swapped,
    stale_shown, two_writers, back_in_time, loaded_too_much, loaded_otherwise,
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_noticed(fault: Callable[[Witness, History], None]) -> None:
    witness, stored = copy.deepcopy(good())
    fault(witness, stored)
    assert check(witness, stored)
