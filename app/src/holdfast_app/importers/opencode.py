"""opencode's sessions: a SQLite database with sessions, their messages, and the parts of messages.

Versions before the database kept a file for each part; those are not read. opencode moves them into the database itself
when it starts.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast_app.importers.edits import change, changes_in_diff, changes_of_input
from holdfast_app.importers.found_session import (
    FoundSession,
    Spent,
    count,
    members_of,
    message,
    microseconds,
    objects,
    text_in,
    tool_call,
    tool_result,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast_app.importers.found_session import Update

_SESSION = "SELECT directory, title, time_created, time_updated FROM session WHERE id = ?"
_PARTS = """
SELECT message.id, message.data, part.id, part.data FROM message JOIN part ON part.message_id = message.id
WHERE message.session_id = ? ORDER BY message.time_created, message.id, part.id
"""


class OpencodeStore:
    """The sessions in a data directory of opencode."""

    def __init__(self, home: Path | None, env: Mapping[str, str]) -> None:
        data = Path(env.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
        self._database = (home or data / "opencode") / "opencode.db"

    def locate(self) -> list[str]:
        """Return the ids of sessions, newest first; those of subagents are parts of others."""
        if not self._database.is_file():
            return []
        with closing(self._connect()) as db:
            rows = db.execute("SELECT id FROM session WHERE parent_id IS NULL ORDER BY time_updated DESC")
            return [row[0] for row in rows]

    def read(self, place: str) -> FoundSession | None:
        """Read the session with an id."""
        with closing(self._connect()) as db:
            about = db.execute(_SESSION, (place,)).fetchone()
            rows: list[tuple[str, str, str, str]] = db.execute(_PARTS, (place,)).fetchall()
        if about is None:
            return None
        directory, title, created, updated = about
        said = (_updates(message_id, told, id_, part, directory) for message_id, told, id_, part in rows)
        updates = tuple(_joined(chain.from_iterable(said)))
        if not any(update["sessionUpdate"] == "user_message" for update in updates):
            return None
        spent = _spent({row[0]: json.loads(row[1]) for row in rows}.values())
        times = microseconds(created), microseconds(updated)
        return FoundSession(place, directory, title or None, *times, updates, spent)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self._database.absolute().as_uri()}?mode=ro", uri=True)


def _joined(updates: Iterator[Update]) -> list[Update]:
    """Make one message of all parts of a user's message."""
    joined: list[Update] = []
    for update in updates:
        last = joined[-1] if joined else None
        if last is not None and "messageId" in update and last.get("messageId") == update["messageId"]:
            last["content"] += update["content"]
        else:
            joined.append(update)
    return joined


def _spent(messages: Iterable[Update]) -> Spent:
    spent = Spent()
    for said in messages:
        if said.get("role") != "assistant":
            continue
        tokens = members_of(said.get("tokens"))
        cache = members_of(tokens.get("cache"))
        counts = {
            "input": count(tokens.get("input")),
            "cachedRead": count(cache.get("read")),
            "cachedWrite": count(cache.get("write")),
            "output": count(tokens.get("output")),
            "thought": count(tokens.get("reasoning")),
        }
        spent.add(**counts)
        spent.add_cost(said.get("cost"))
        spent.model = str(said.get("modelID") or spent.model)
        spent.context = sum(counts.values()) or spent.context
    return spent


def _changes(state: Update, directory: str) -> Iterator[Update]:
    """Yield the changes that a tool has made: as it noted them, else as it was asked to."""
    noted = members_of(state.get("metadata"))
    found = False
    for file in objects(noted.get("files")) or [members_of(noted.get("filediff"))]:
        path = file.get("filePath") or file.get("file")
        if isinstance(file.get("before"), str) or isinstance(file.get("after"), str):
            found = True
            before = None if file.get("type") == "add" else file.get("before")
            yield from change(path, before, file.get("after") or "", directory)
        elif diff := file.get("patch") or file.get("diff") or noted.get("diff"):
            found = True
            yield from changes_in_diff(path, diff, directory)
    if not found:
        yield from changes_of_input(state.get("input"))


def _updates(message_id: str, message_data: str, part_id: str, part_data: str, directory: str) -> Iterator[Update]:
    about: Any = json.loads(message_data)
    part: Any = json.loads(part_data)
    match part.get("type"):
        case "text" if part.get("text", "").strip() and not part.get("synthetic"):
            role = "user" if about.get("role") == "user" else "agent"
            yield message(role, message_id if role == "user" else part_id, part["text"])
        case "reasoning" if part.get("text", "").strip():
            yield message("agent_thought", part_id, part["text"])
        case "tool":
            state: Update = part.get("state") or {}
            call = tool_call(part["callID"], part["tool"], state.get("input"))
            yield call | ({"title": state["title"]} if state.get("title") else {})
            text = text_in(state.get("output")) or text_in(state.get("error"))
            yield tool_result(
                part["callID"], text, _changes(state, directory), failed=state.get("status") != "completed"
            )
        case _:
            return
