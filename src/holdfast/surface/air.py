"""The extensions of JetBrains AIR, which are named under `_meta.jetbrains.air` (G1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.model.events import is_object

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.model import Update

VERSION = 1

LOAD_REPLAY_END = "loadReplayEnd"
"""A client that declares it is told when the history of a session that it loads is complete."""


def declared(capabilities: Update) -> frozenset[str]:
    """Return the extensions that a peer has declared in its capabilities."""
    air = extension(capabilities.get("_meta"))
    version, named = air.get("version"), air.get("capabilities")
    if not isinstance(version, int) or version < VERSION or not isinstance(named, list):
        return frozenset()
    return frozenset(name for name in _items(named) if isinstance(name, str))


def extension(meta: object) -> Update:
    """Return what a `_meta` holds for AIR."""
    vendor: object = meta.get("jetbrains") if is_object(meta) else None
    air: object = vendor.get("air") if is_object(vendor) else None
    return air if is_object(air) else {}


def meta(**members: Any) -> Update:
    """Return a `_meta` with these members for AIR."""
    return {"jetbrains": {"air": {"version": VERSION, **members}}}


def replay_end() -> Update:
    """Return the update that says that a replay is complete. It has no title: a null would clear it."""
    return {"sessionUpdate": "session_info_update", "_meta": meta(**{LOAD_REPLAY_END: True})}


def is_replay_end(update: Update) -> bool:
    """Return whether an update says that a replay is complete, and nothing else."""
    return LOAD_REPLAY_END in extension(update.get("_meta")) and not update.keys() - {"sessionUpdate", "_meta"}


def _items(listed: Any) -> Iterable[object]:
    return listed
