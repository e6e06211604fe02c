"""The root set of a session, `[cwd, *additionalDirectories]`, and safe files inside it (P9).

`Workspace` says which paths are inside; `Files` is what agent code reads and writes them with. Nothing here knows of
sessions, protocols or connections.
"""

from holdfast.workspace.files import Files
from holdfast.workspace.reading import MAX_READ_BYTES
from holdfast.workspace.results import Entry, Match, Results
from holdfast.workspace.roots import Workspace

__all__ = ["MAX_READ_BYTES", "Entry", "Files", "Match", "Results", "Workspace"]
