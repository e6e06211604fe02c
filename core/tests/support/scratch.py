"""A directory to make a mess in, where a sync costs nothing: what syncs are good for is tried with disks that fail."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

SHARED_MEMORY = Path("/dev/shm")


@contextmanager
def scratch() -> Generator[Path]:
    """Make a directory that is gone afterwards, in memory where the system allows."""
    with TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as path:
        yield Path(path)
