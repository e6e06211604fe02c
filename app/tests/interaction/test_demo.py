"""`holdfast demo`: the first thing somebody sees must be true."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest


@pytest.mark.timeout(150)
@pytest.mark.requirement("P1")
def test_the_demo_loses_nothing() -> None:
    command = (sys.executable, "-m", "holdfast", "demo", "--fast")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    received = int(re.findall(r"The editor had received (\d+) words", done.stdout)[0])
    kept = int(re.findall(r"The answer has (\d+) words, all that was received among them", done.stdout)[0])
    assert kept >= received >= 400
    assert f"{kept} words in the broken one" in done.stdout
    assert done.stdout.rstrip().splitlines()[-2] == "Nothing was lost."
    assert "\x1b" not in done.stdout
