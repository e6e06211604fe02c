"""How a torture ends: one line that says how much was tried and from where, and a status that says whether it is well.

The work itself is left out here; what it finds is tried in short by the tests of each.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.torture import eight_processes, every_write, kill9, mcp_cycles, power_loss, rename_race
from holdfast.workspace import openat2

if TYPE_CHECKING:
    from collections.abc import Callable


async def lost_power(rounds: int, seed: int, *, lies: bool = False) -> list[str]:
    return ["after seal: what was acknowledged is not there"] if lies or seed == 13 else []


async def cycled(count: int, tell: object) -> mcp_cycles.Outcome:
    if count == 13:
        raise AssertionError("process 1 lives on")
    return mcp_cycles.Outcome(count, 9, 9)


async def cycled_and_left_files(count: int, tell: object) -> mcp_cycles.Outcome:
    return mcp_cycles.Outcome(count, 9, 10)


async def crowded(place: object, seconds: float, processes: int, seed: int) -> eight_processes.Tally:
    tally = eight_processes.Tally()
    tally.counts["said"] = 5
    tally.wrong += ["a word is missing"] * (seed == 13)
    return tally


def killed(rounds: int, seed: int, jobs: int, tell: object) -> kill9.Tally:
    return kill9.Tally(rounds, 1, 1, 100, int(seed == 13))


def killed_too_few(rounds: int, seed: int, jobs: int, tell: object) -> kill9.Tally:
    return kill9.Tally(rounds - 1)


def killed_at_calls(every: int, progress: object) -> tuple[int, int, int, list[str]]:
    return 9, 8, 10, ["killed at write number 1"] * (every == 13)


def raced(kind: str, flip: str, way: str, tries: int) -> rename_race.Tally:
    return rename_race.Tally(tries, escapes=int(way == "realpath" or (way == "walk" and tries == 13)))


@pytest.mark.parametrize(
    ("module", "work", "arguments", "status", "says"),
    [
        (power_loss, {"trial": lost_power}, "--rounds 20 --seed 7", 0, "20 losses of power, 0 of them lost something"),
        (power_loss, {"trial": lost_power}, "--rounds 20 --seed 13", 1, "20 losses of power, 1 of them lost something"),
        (mcp_cycles, {"cycles": cycled}, "--cycles 20", 0, "20 cycles, 20 processes started, none left, +0 open"),
        (mcp_cycles, {"cycles": cycled}, "--cycles 13", 1, "FAILED, process 1 lives on"),
        (mcp_cycles, {"cycles": cycled_and_left_files}, "--cycles 20", 1, "none left, +1 open files"),
        (eight_processes, {"trial": crowded}, "--seconds 20 --seed 7", 0, "8 processes, 20 s, seed 7: 5 said; 0 wrong"),
        (eight_processes, {"trial": crowded}, "--seconds 20 --seed 13", 1, "1 wrong"),
        (kill9, {"torture": killed}, "--rounds 20 --seed 7", 0, "20 kills"),
        (kill9, {"torture": killed}, "--rounds 20 --seed 13", 1, "1 failures"),
        (kill9, {"torture": killed_too_few}, "--rounds 20 --seed 7", 1, "19 kills"),
        (every_write, {"torture": killed_at_calls, "missing": str}, "--every 20", 0, "killed at 9 points"),
        (every_write, {"torture": killed_at_calls, "missing": str}, "--every 13", 1, "1 failures"),
        (rename_race, {"race": raced, "compare_in_peace": str}, "--tries 20", 0, "320 tries"),
        (rename_race, {"race": raced, "compare_in_peace": str}, "--tries 13", 1, "8 escapes"),
    ],
    ids=lambda it: it if isinstance(it, str) else getattr(it, "__name__", "").rpartition(".")[2],
)
def test_it_says_what_was_tried_and_exits_with_1_if_anything_was_wrong(
    module: Any,
    work: dict[str, Callable[..., object]],
    arguments: str,
    status: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, instead in work.items():
        monkeypatch.setattr(module, name, instead)
    monkeypatch.setattr(openat2, "available", lambda: True)
    monkeypatch.setattr(logging, "disable", lambda: None)  # other tests want to hear it
    monkeypatch.setattr(sys, "argv", ["torture", *arguments.split()])
    assert module.main() == status
    *_, last = capsys.readouterr().out.splitlines()
    assert says in last
    assert (f"seed {arguments.rsplit(maxsplit=1)[-1]}" if "--seed" in arguments else "no seed") in last
