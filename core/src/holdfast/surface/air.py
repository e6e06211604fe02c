"""The extensions of JetBrains AIR, which are named under `_meta.jetbrains.air` (G1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.model.events import is_object

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from holdfast.model import Update

VERSION = 1

LOAD_REPLAY_END = "loadReplayEnd"
"""A client that declares it is told when the history of a session that it loads is complete."""


SESSION_INDEX = "sessionIndex"
"""A client that declares it lists, renames, archives and watches sessions with methods that begin with `_session/`."""

SERVED = (SESSION_INDEX, "sessionBatchGet", "sessionArchive", "sessionRename", "sessionListSubscribe")
"""What such a client is told that it can use; Holdfast itself answers (`holdfast.server.session_index`)."""

WITHHELD = frozenset({*SERVED, "sessionWorktrees", "nativeSubagentSessions", "recommendedValue"})
"""What a wrapped agent cannot offer through us: the sessions are ours, those of its subagents are unknown here, and the
`_meta` of options is not kept."""

NOT_FOR_AGENTS = frozenset({"nativeSubagentSessions", "recommendedValue"})
"""What of it a client declares and an agent must not be told: it would speak otherwise."""


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


def with_capabilities(meta: Update, served: Collection[str]) -> Update:
    """Return a `_meta` that names further abilities for AIR."""
    air, vendor = extension(meta), meta.get("jetbrains")
    named = [name for name in _items(air.get("capabilities") or ()) if name not in served]
    told = {**air, "version": air.get("version", VERSION), "capabilities": [*named, *served]}
    return {**meta, "jetbrains": {**(vendor if is_object(vendor) else {}), "air": told}}


def without_capabilities(meta: Update, withheld: Collection[str], *members: str) -> Update:
    """Return a `_meta` that does not name some abilities for AIR, and lacks some members of what is for AIR."""
    if not (air := extension(meta)):
        return meta
    told = {name: value for name, value in air.items() if name not in members}
    if isinstance(named := told.get("capabilities"), list):
        told["capabilities"] = [name for name in _items(named) if name not in withheld]
    return {**meta, "jetbrains": {**meta["jetbrains"], "air": told}}


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
