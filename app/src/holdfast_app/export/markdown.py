"""A session as a Markdown file: what is known of it, then the transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.document import times
from holdfast.view.commands import Commands
from holdfast.view.entries import view_entry
from holdfast.view.transcript import inline, markdown_view

if TYPE_CHECKING:
    from holdfast.model import Entry, SessionInfo, SessionState
    from holdfast.view.commands import Shown


class MarkdownWriter:
    """Writes a Markdown file, piece by piece."""

    def __init__(self) -> None:
        self._commands = Commands()

    def opening(self, info: SessionInfo, state: SessionState) -> str:
        """Return what comes before the transcript."""
        del state
        lines = [
            f"# {inline(info.title or 'A session without a title')}",
            "",
            f"- Directory: {inline(info.cwd)}",
            f"- From {times.written(info.created_at)[:16]}Z to {times.written(info.updated_at)[:16]}Z",
            f"- Session: {inline(info.id)}",
            "",
        ]
        return "\n".join(lines)

    def entry(self, entry: Entry) -> str:
        """Take an entry; return those that are complete, as they are written."""
        return _written(self._commands.take(0, entry))

    def closing(self, redacted: int) -> str:
        """Return what comes after the transcript."""
        said = f"\n---\n\nSecrets taken out of this file: {redacted}\n" if redacted else ""
        return _written(self._commands.rest()) + said


def _written(shown: list[Shown]) -> str:
    return "".join(f"\n{markdown_view(view_entry(each.entry, each.terminals))}\n" for each in shown)
