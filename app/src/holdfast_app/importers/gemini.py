"""Gemini CLI's sessions: a file for each, in a folder for each project.

Newer ones are JSON lines: messages, each perhaps several times (the last counts), and ``$set`` lines that change the
whole. Older ones are one JSON object. A project's directory is found in `projects.json`, or by the hash of its path.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from holdfast_app.importers.edits import change, changes_in_diff, changes_of_input
from holdfast_app.importers.found_session import (
    FoundSession,
    Spent,
    count,
    json_lines,
    log,
    members_of,
    message,
    microseconds,
    objects,
    text_in,
    tool_call,
    tool_result,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast_app.importers.found_session import Update

_CONTEXT = "<session_context>"


class GeminiStore:
    """The sessions in a home directory of Gemini CLI."""

    def __init__(self, home: Path | None, env: Mapping[str, str]) -> None:
        self._home = home or Path(env.get("GEMINI_CLI_HOME") or Path.home()) / ".gemini"
        self._directories: dict[str, str] | None = None

    def locate(self) -> list[Path]:
        """Return the files of sessions, newest first."""
        return sorted(self._home.glob("tmp/*/chats/session-*.json*"), key=lambda file: -file.stat().st_mtime)

    def read(self, place: Path) -> FoundSession | None:
        """Read the session in a file."""
        about = _lines(place) if place.suffix == ".jsonl" else _whole(place)
        messages: list[Update] = about.get("messages") or []
        updates = tuple(update for said in messages for update in _updates(said))
        if not about.get("sessionId") or not any(update["sessionUpdate"] == "user_message" for update in updates):
            return None
        cwd = self._directory(place.parent.parent.name, about.get("projectHash"))
        if cwd is None:
            log.warning("%s is left out: the directory it belongs to is not known", place)
            return None
        began, ended = microseconds(about.get("startTime")), microseconds(about.get("lastUpdated"))
        spent, title = _spent(messages), about.get("summary")
        return FoundSession(about["sessionId"], cwd, title, began, max(began, ended), updates, spent)

    def _directory(self, folder: str, project_hash: object) -> str | None:
        """Return the directory of a project, by its folder or by the hash of the directory."""
        if self._directories is None:
            file = self._home / "projects.json"
            projects: dict[str, str] = _whole(file).get("projects") or {} if file.is_file() else {}
            self._directories = {name: path for path, name in projects.items()}
            self._directories |= {hashlib.sha256(path.encode()).hexdigest(): path for path in projects}
        root = self._home / "tmp" / folder / ".project_root"
        if root.is_file():
            return root.read_text().strip()
        return self._directories.get(folder) or self._directories.get(str(project_hash))


def _whole(file: Path) -> Update:
    try:
        found: Any = json.loads(file.read_bytes())
    except ValueError:
        return {}
    return cast("Update", found) if isinstance(found, dict) else {}


def _lines(file: Path) -> Update:
    """Put the lines of a file together."""
    about: Update = {}
    messages: dict[str, Update] = {}
    for line in json_lines(file):
        changes: Update = line.get("$set") or (line if "sessionId" in line else {})
        if "messages" in changes:
            messages = {said["id"]: said for said in changes["messages"]}
        about |= changes
        if "id" in line and "type" in line:
            messages[line["id"]] = line
        if "$rewindTo" in line:
            messages = _up_to(messages, line["$rewindTo"])
    return about | {"messages": list(messages.values())}


def _spent(messages: Sequence[Update]) -> Spent:
    """Return what the answers took. Gemini counts what it reads from its cache as input too."""
    spent = Spent()
    for said in messages:
        if said.get("type") != "gemini":
            continue
        spent.model = str(said.get("model") or spent.model)
        tokens = members_of(said.get("tokens"))
        cached = count(tokens.get("cached"))
        counts = {
            "input": max(count(tokens.get("input")) - cached, 0) + count(tokens.get("tool")),
            "cachedRead": cached,
            "output": count(tokens.get("output")),
            "thought": count(tokens.get("thoughts")),
        }
        spent.add(**counts)
        spent.context = sum(counts.values()) or spent.context
    return spent


def _up_to(messages: dict[str, Update], last: str) -> dict[str, Update]:
    """Return the messages before the one that the user went back to."""
    ids = list(messages)
    return {id_: messages[id_] for id_ in ids[: ids.index(last)]} if last in messages else messages


def _updates(said: Update) -> Iterator[Update]:
    text = text_in(said.get("content")).strip()
    if said.get("type") == "user":
        if text and not text.startswith(_CONTEXT):
            yield message("user", said["id"], text)
        return
    if said.get("type") != "gemini":
        return
    for at, thought in enumerate(objects(said.get("thoughts"))):
        words = "\n".join(filter(None, (thought.get("subject"), thought.get("description"))))
        yield message("agent_thought", f"{said['id']}-thought-{at}", words)
    if text:
        yield message("agent", said["id"], text)
    for call in objects(said.get("toolCalls")):
        yield tool_call(call["id"], call["name"], call.get("args"))
        output = "\n".join(_outputs(call.get("result")))
        yield tool_result(call["id"], output, _changes(call), failed=call.get("status") != "success")


def _changes(call: Update) -> Iterator[Update]:
    """Yield the changes that a tool has made: as it showed them, else as it was asked to."""
    shown, given = members_of(call.get("resultDisplay")), members_of(call.get("args"))
    path = shown.get("filePath") or given.get("file_path") or given.get("absolute_path")
    if "newContent" in shown:
        yield from change(path, shown.get("originalContent") or None, shown["newContent"])
    elif shown.get("fileDiff"):
        yield from changes_in_diff(path, shown["fileDiff"])
    else:
        yield from changes_of_input(given)


def _outputs(result: Any) -> Iterator[str]:
    for part in objects(result):
        yield text_in(part.get("functionResponse", {}).get("response"))
