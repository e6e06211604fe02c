"""Where sessions are kept: the ports, and nothing about how.

A store keeps sessions whole and in order through crashes, lets several processes share them with one writer a session,
and finds them again. `open_store` opens the one an address names: that in `holdfast.store.sqlite` is for one
machine, that in `holdfast.store.postgres` for many.
"""

from holdfast.store.address import default_address, file_of, is_postgres, open_store, shown_address, store_mark
from holdfast.store.port import (
    Alias,
    Changes,
    Claim,
    Claimed,
    EventWindow,
    Forked,
    Hit,
    KeptLog,
    Library,
    Owner,
    PrivateEntry,
    Record,
    SearchArea,
    SessionStore,
    Shared,
    Snapshot,
    Store,
    UnsealedTurn,
)
from holdfast.store.reports import AgentUsage, Directory, Finding, Size, Stats
from holdfast.store.turn_log import TurnLog

__all__ = [
    "AgentUsage",
    "Alias",
    "Changes",
    "Claim",
    "Claimed",
    "Directory",
    "EventWindow",
    "Finding",
    "Forked",
    "Hit",
    "KeptLog",
    "Library",
    "Owner",
    "PrivateEntry",
    "Record",
    "SearchArea",
    "SessionStore",
    "Shared",
    "Size",
    "Snapshot",
    "Stats",
    "Store",
    "TurnLog",
    "UnsealedTurn",
    "default_address",
    "file_of",
    "is_postgres",
    "open_store",
    "shown_address",
    "store_mark",
]
