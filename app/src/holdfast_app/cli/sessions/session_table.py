"""Sessions as a table in a terminal: a heading, and a row for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast_app.cli import output
from holdfast_app.cli.sessions.area_options import with_home
from holdfast_app.cli.store_arguments import SHORT, short_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.model import SessionInfo
    from holdfast_app.cli.sessions.open_sessions import OpenElsewhere

NARROW = 100
"""A terminal with fewer columns than these has no room for models."""

_GAP = 2


class ListedSession(NamedTuple):
    """A session to show."""

    info: SessionInfo
    model: str = ""
    opened: OpenElsewhere | None = None


class _Column(NamedTuple):
    heading: str
    widest: int
    """It takes so much room at most, in a terminal."""
    paint: dict[str, object]
    cell: Callable[[ListedSession], str]
    right: bool = False


class SessionTable:
    """Turns sessions into lines. The first sessions decide how wide columns are."""

    def __init__(self, first: Sequence[ListedSession], *, everywhere: bool) -> None:
        self._paint, self._room = output.painter(), output.width()
        narrow = self._room is not None and self._room < NARROW
        columns = (
            _Column("ID", SHORT, {"fg": "yellow"}, _id),
            _Column("UPDATED", 11, {"dim": True}, _updated),
            _Column("MESSAGES", 8, {}, _messages, right=True),
            *((_Column("DIRECTORY", 30, {"fg": "cyan"}, _directory),) if everywhere else ()),
            _Column("AGENT", 14, {"fg": "green"}, _agent),
            *(() if narrow else (_Column("MODEL", 20, {"dim": True}, _model),)),
        )
        self._columns = [(column, self._width(column, first)) for column in columns]

    def _width(self, column: _Column, first: Sequence[ListedSession]) -> int:
        widths = [output.cells(column.cell(session)) for session in first]
        widest = max((len(column.heading), *widths))
        return widest if self._room is None else max(len(column.heading), min(widest, column.widest))

    def heading(self) -> str:
        """Return the line above all sessions."""
        cells = [output.padded(column.heading, width, right=column.right) for column, width in self._columns]
        return self._paint((" " * _GAP).join([*cells, "TITLE"]), bold=True)

    def row(self, session: ListedSession) -> str:
        """Return the line of a session."""
        from holdfast.view.safe_text import safe_line  # noqa: PLC0415

        cells: list[str] = []
        used = 0
        for column, width in self._columns:
            cell = output.cut(column.cell(session), width if self._room else None)
            cells.append(self._paint(output.padded(cell, width, right=column.right), **column.paint))
            used += width + _GAP
        if (opened := session.opened) is not None:
            says = output.cut(safe_line(opened.describe()), self._room // 2 if self._room else None)
            cells.append(self._paint(says, fg="yellow" if opened.activity == "requires_action" else "green"))
            used += output.cells(says) + _GAP
        title = output.cut(safe_line(session.info.title or ""), max(self._room - used, 10) if self._room else None)
        return (" " * _GAP).join([*cells, title or self._paint("(no title)", dim=True)])


def _id(session: ListedSession) -> str:
    return short_id(session.info.id)


def _updated(session: ListedSession) -> str:
    return output.ago(session.info.updated_at)


def _messages(session: ListedSession) -> str:
    return str(session.info.messages)


def _directory(session: ListedSession) -> str:
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    return with_home(safe_line(session.info.cwd))


def _agent(session: ListedSession) -> str:
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    return safe_line(session.info.agent) or "-"


def _model(session: ListedSession) -> str:
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    return safe_line(session.model) or "-"
