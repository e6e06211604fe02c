"""What the store asks of the file system besides the database: private directories, and plain words for its errors."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from holdfast.errors import StoreError, StoreFull

if TYPE_CHECKING:
    from pathlib import Path


def make_directory(path: Path) -> None:
    """Make a directory that only the user can read, and that is still there when the machine has died."""
    missing = [it for it in (path, *path.parents) if not it.exists()]
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for it in missing:
        sync_directory(it.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive the death of the machine."""
    if os.name == "nt":  # it does so by itself, and opens no directories
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def explained(e: OSError, what: str) -> StoreError:
    """Say what an error of the system means for the user."""
    if e.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull("There is no space left for the sessions. Free some and try again")
    return StoreError(f"{what} ({e.strerror})")
