"""`ListedSession`: one session as the agent's list describes it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from holdfast.model import Update


class ListedSession(NamedTuple):
    """A session as the agent lists it.

    Attributes:
        id: its id.
        cwd: its directory.
        title: its title, None where it has none.
        updated_at: when something was last said in it, None where the agent does not tell.
        additional: its further directories.
        archived: whether the user has put it aside.
        raw: the whole object that the agent sent.

    """

    id: str
    cwd: str
    title: str | None
    updated_at: datetime | None
    additional: tuple[str, ...]
    archived: bool
    raw: dict[str, Any]


def read_session_page(page: Update) -> list[ListedSession]:
    """Return the sessions of one answer to `session/list`; what has no id is left out."""
    rows: Any = page.get("sessions")
    found: list[ListedSession] = []
    for row in cast("list[Any]", rows) if isinstance(rows, list) else ():
        match row:
            case {"sessionId": str(session_id)}:
                found.append(_listed(session_id, cast("Update", row)))
            case _:
                pass
    return found


def _listed(session_id: str, row: Update) -> ListedSession:
    title = row.get("title")
    additional: Any = row.get("additionalDirectories")
    return ListedSession(
        session_id,
        str(row.get("cwd") or ""),
        title if isinstance(title, str) else None,
        _parse_time(row.get("updatedAt")),
        tuple(map(str, cast("list[object]", additional))) if isinstance(additional, list) else (),
        row.get("archived") is True,
        row,
    )


def _parse_time(text: object) -> datetime | None:
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return time if time is None or time.tzinfo is not None else time.replace(tzinfo=UTC)
