"""The directories of a session, `[cwd, *additionalDirectories]`, and safe files inside them (P9).

`Workspace` says which paths are inside, and holds the directories open while a turn runs; `Files` is what agent code
reads and writes with. Nothing here knows sessions, protocols or connections.
"""

from holdfast.workspace.files import Files
from holdfast.workspace.read_files import MAX_READ_BYTES
from holdfast.workspace.results import Entry, Match, Results
from holdfast.workspace.roots import Workspace

__all__ = ["MAX_READ_BYTES", "Entry", "Files", "Match", "Results", "Workspace"]
