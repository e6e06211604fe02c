"""Which store to use: `HOLDFAST_STORE`, or the place the platform keeps such things."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.store.port import Store


def default_path() -> str:
    """Find out where sessions are kept unless somebody says otherwise."""
    if chosen := os.environ.get("HOLDFAST_STORE"):
        return chosen
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return str(base / "holdfast" / "sessions.db")


async def open_store(place: str | None = None) -> Store:
    """Open the store at a place: a path, or ``:memory:`` for one that is gone when it is closed."""
    from holdfast.store.sqlite import SqliteStore  # noqa: PLC0415  (whoever never stores never loads it)

    return await SqliteStore.open(place or default_path())
