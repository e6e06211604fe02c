"""Notices that an agent's file was changed, or one that it may import from beside it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

POLL_SECONDS = 0.3
SETTLED_SECONDS = 0.2
"""Editors write a file in several steps; nothing must have changed for so long."""
MAX_FILES = 500
"""So many files beside the agent's own are looked at."""

Snapshot: TypeAlias = dict[str, tuple[int, int]]
"""Size and time of change of each file."""


def take_snapshot(file: Path) -> Snapshot:
    """Return how an agent's file is now, and the Python files beside it and in the packages beside it."""
    beside = islice((*file.parent.glob("*.py"), *_in_packages(file.parent)), MAX_FILES)
    found: Snapshot = {}
    for path in (file, *beside):
        with suppress(OSError):
            about = path.stat()
            found[str(path)] = (about.st_size, about.st_mtime_ns)
    return found


def _in_packages(directory: Path) -> tuple[Path, ...]:
    return tuple(path for package in directory.glob("*/__init__.py") for path in package.parent.glob("*.py"))


async def wait_for_change(file: Path, before: Snapshot) -> None:
    """Wait until the files differ from what they were, and no longer change."""
    while (now := take_snapshot(file)) == before or str(file) not in now:  # noqa: ASYNC110  (files tell nobody)
        await asyncio.sleep(POLL_SECONDS)
    while True:
        await asyncio.sleep(SETTLED_SECONDS)
        if (later := take_snapshot(file)) == now:
            return
        now = later
