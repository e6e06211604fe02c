"""Where sessions are kept: the port, and nothing about how.

A store keeps sessions whole and in order through crashes, lets several processes share them with one writer a session,
and finds them again. `open_store` gives the one a place names; `holdfast.store.sqlite` is the one there is.
"""

from holdfast.store.choice import default_path, open_store
from holdfast.store.port import Broken, Changes, Claim, Claimed, Hit, Record, Seen, Store, TurnLog, Unfinished
from holdfast.store.reports import Directory, Finding, Size, Stats

__all__ = [
    "Broken",
    "Changes",
    "Claim",
    "Claimed",
    "Directory",
    "Finding",
    "Hit",
    "Record",
    "Seen",
    "Size",
    "Stats",
    "Store",
    "TurnLog",
    "Unfinished",
    "default_path",
    "open_store",
]
