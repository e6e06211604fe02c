"""The directories of a session, `[cwd, *additionalDirectories]`, and safe files inside them (P9).

`Workspace` says which paths are inside, and holds the directories open while a turn runs; `Files` is what agent code
reads and writes with. Nothing here knows sessions, protocols or connections. Names are loaded when they are first used:
every session has a workspace, few agents touch files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.workspace.files import Files
    from holdfast.workspace.read_files import MAX_READ_BYTES
    from holdfast.workspace.results import Entry, Match, Results
    from holdfast.workspace.roots import Workspace

__all__ = ["MAX_READ_BYTES", "Entry", "Files", "Match", "Results", "Workspace"]

_HOMES = {
    "MAX_READ_BYTES": "read_files",
    "Entry": "results",
    "Files": "files",
    "Match": "results",
    "Results": "results",
    "Workspace": "roots",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
