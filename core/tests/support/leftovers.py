"""Whether a process that a test has caused is still there: its command has something in it that no other has."""

from __future__ import annotations

import subprocess
import time
from secrets import randbelow

from core.tests.support.links import PATIENCE


def own_time() -> str:
    """Return a time for `sleep`, an hour or so, that no other process of this machine was given."""
    return f"3600.{randbelow(10**12):012}"


def running(part: str) -> bool:
    """Return whether a process runs with this in its command; one that is dead and waits for its parent has none."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "args="], capture_output=True, text=True, check=True)
    return any(part in line for line in listed.stdout.splitlines())


def expect_gone(part: str) -> None:
    """Wait until no process has this in its command: one that was killed needs a moment on a busy machine."""
    last = time.monotonic() + PATIENCE
    while running(part):
        assert time.monotonic() < last, f"a process with {part!r} in its command was left behind"
        time.sleep(0.05)
