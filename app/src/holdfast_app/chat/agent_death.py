"""What the user is told and asked when the agent's process is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import ProcessExited, without_chatter
from holdfast.view.blocks import Note
from holdfast_app.chat.screen import Choice, KeyQuestion

if TYPE_CHECKING:
    from holdfast.errors import ConnectionLost

QUOTED_LINES = 15
"""So many lines of what a dead agent wrote last are quoted."""


def death_note(lost: ConnectionLost, *, quoted: bool) -> Note:
    """Return a note on how the agent ended; what it wrote last is `quoted` unless it was shown already."""
    if not isinstance(lost, ProcessExited):
        return Note("The connection to the agent is lost", str(lost), "error")
    written = lost.stdout.splitlines()[-QUOTED_LINES:]
    if quoted:
        written += without_chatter(lost.stderr).splitlines()[-QUOTED_LINES:] or ["It wrote no error to stderr."]
    return Note(f"The agent {lost.how}", "\n".join(written), "error")


def has_said_why(lost: ConnectionLost) -> bool:
    """Return whether the last line that it wrote is the error `holdfast run` ended with: nothing better can follow."""
    if not isinstance(lost, ProcessExited) or lost.stdout:
        return False
    return lost.returncode == 1 and "\nholdfast: " in f"\n{lost.stderr}"


def again_question(*, in_vain: bool) -> KeyQuestion:
    """Return the question whether to start the agent again.

    Enter does, as it may end a line that was being typed when the agent died; unless that was `in_vain` the last time:
    an agent that dies at once would be started over and over by a key that is held down.
    """
    choices = (Choice("r", "Start it again with this session", "again", "good"), Choice("q", "Leave", "leave"))
    return KeyQuestion("The agent is gone.", choices, "leave" if in_vain else "again", enter_ends_text=True)
