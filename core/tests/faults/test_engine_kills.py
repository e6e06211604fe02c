"""kill -9, in short; `core.tests.torture.kill9` and `core.tests.torture.every_write` do it at length.

They run in processes of their own: whoever forks must not have threads.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from core.tests.torture.every_write import missing

ROOT = Path(__file__).parents[3]

ROUNDS = 300


def run(program: str, *arguments: str) -> str:
    command = [sys.executable, "-m", f"core.tests.torture.{program}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(900)
@pytest.mark.requirement("B1", "B15", "C8", "D1")
def test_whatever_was_told_before_a_kill_is_there_after_it_whenever_it_came() -> None:
    said = run("kill9", "--rounds", str(ROUNDS))
    counts = [int(it.replace(",", "")) for it in re.findall(r"[\d,]*\d", said)]
    kills, broken, recoveries, seen, failures = counts[:5]
    assert kills == ROUNDS
    assert failures == 0
    # It must have been worth it: many were in the middle of something, and much had been seen.
    assert broken > ROUNDS / 10
    assert recoveries > ROUNDS / 10
    assert seen > ROUNDS


@pytest.mark.timeout(900)
def test_whatever_was_told_is_there_after_a_kill_at_one_write_or_another() -> None:
    if reason := missing():
        pytest.skip(reason)
    assert "0 failures" in run("every_write", "--every", "23")
