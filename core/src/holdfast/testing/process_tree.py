"""Which processes are below another, and which still run: by /proc on Linux, by `ps` elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from typing import NamedTuple


class _Row(NamedTuple):
    pid: int
    parent: int
    state: str


def descendants(root: int) -> frozenset[int]:
    """Return a process and everything below it."""
    rows = _running()
    found = {root}
    while more := {row.pid for row in rows if row.parent in found} - found:
        found |= more
    return frozenset(found)


def alive(pids: frozenset[int]) -> frozenset[int]:
    """Return which of these still run; one that is dead and waits for its parent to notice does not."""
    return pids & {row.pid for row in _running()} if pids else pids


def marked(mark: bytes) -> frozenset[int]:
    """Return the processes that have these bytes in their environment; none where the system does not tell.

    So one is found that has left its parent, its group and its session.
    """
    found: set[int] = set()
    for row in _from_proc() if sys.platform == "linux" else ():
        with suppress(OSError), open(f"/proc/{row.pid}/environ", "rb") as file:  # noqa: PTH123
            if mark in file.read():
                found.add(row.pid)
    return frozenset(found)


def _running() -> list[_Row]:
    if sys.platform == "win32":
        return []  # never tried there: what needs this is reported as not tested
    rows = _from_proc() if sys.platform == "linux" else _from_ps()
    return [row for row in rows if row.state[:1] not in {"Z", "X"}]


def _from_proc() -> list[_Row]:
    rows: list[_Row] = []
    for name in os.listdir("/proc"):  # noqa: PTH208  (no path is needed)
        if name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
                rows.append(_Row(int(name), int(parent), state.decode()))
    return rows


def _from_ps() -> list[_Row]:
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="],  # noqa: S607  (where `ps` is differs between systems)
        capture_output=True, check=False, text=True,
    )  # fmt: skip
    fields = (line.split() for line in listed.stdout.splitlines())
    return [_Row(int(row[0]), int(row[1]), row[2]) for row in fields if len(row) == 3]
