"""Agents in the settings of editors: what is written there, shown first, and undone again.

`jsonc` changes text and knows no editor, `editors` knows which file an editor reads and in what form, `changes` writes
files so that nothing in them is lost. Nothing here asks anybody: that is the command line's.
"""

from holdfast_app.editor_setup.changes import Change, changes_made, plan_change, plan_undo
from holdfast_app.editor_setup.editors import EDITORS, Editor, Entry

__all__ = ["EDITORS", "Change", "Editor", "Entry", "changes_made", "plan_change", "plan_undo"]
