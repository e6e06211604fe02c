"""Codex's sessions: one "rollout" of JSON lines for each, in folders by date.

A rollout holds what the model was sent (`response_item`) and what was shown (`event_msg`). The first is read, as it is
complete in all versions; what Codex puts into the user's mouth is left out.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from holdfast_app.importers.edits import change, changes_in_diff, changes_in_patch
from holdfast_app.importers.found_session import (
    FoundSession,
    Spent,
    count,
    json_lines,
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

_INJECTED = re.compile(r"\s*(<(environment_context|user_instructions|turn_aborted|skill|INSTRUCTIONS)\b|# AGENTS\.md )")
_FAILED = re.compile(r"(Process exited with code|Exit code:?) (?!0\b)|^aborted|\"exit_code\": ?(?!0\b)")


class CodexStore:
    """The sessions in a home directory of Codex."""

    def __init__(self, home: Path | None, env: Mapping[str, str]) -> None:
        self._home = home or Path(env.get("CODEX_HOME") or Path.home() / ".codex")
        self._titles: dict[str, str] | None = None

    def locate(self) -> list[Path]:
        """Return the files of sessions, newest first."""
        return sorted(self._home.glob("sessions/**/rollout-*.jsonl"), key=lambda file: -file.stat().st_mtime)

    def read(self, place: Path) -> FoundSession | None:
        """Read the session in a file."""
        lines = [line for line in json_lines(place) if isinstance(line.get("payload"), dict)]
        none: Update = {}
        about: Update = next((line["payload"] for line in lines if line.get("type") == "session_meta"), none)
        if not about.get("id") or not about.get("cwd") or isinstance(about.get("source"), dict):  # a subagent's
            return None
        items = [line["payload"] for line in lines if line.get("type") == "response_item"]
        applied = _events(lines, "patch_apply_end")
        changes = _changes(items, applied, about["cwd"])
        refused = {str(event.get("call_id")) for event in applied if event.get("success") is False}
        named = ((item, f"{about['id']}-{at}") for at, item in enumerate(items))
        updates = tuple(update for item, id_ in named for update in _updates(item, id_, changes, refused))
        if not any(update["sessionUpdate"] == "user_message" for update in updates):
            return None
        times = [microseconds(line.get("timestamp")) for line in lines]
        title = self._named().get(about["id"])
        return FoundSession(about["id"], about["cwd"], title, min(times), max(times), updates, _spent(lines))

    def _named(self) -> dict[str, str]:
        """Return the titles that sessions have, by their ids."""
        if self._titles is None:
            index = self._home / "session_index.jsonl"
            lines = json_lines(index) if index.is_file() else ()
            self._titles = {line["id"]: line["thread_name"] for line in lines if line.get("thread_name")}
        return self._titles


def _events(lines: Sequence[Update], kind: str) -> list[Update]:
    events = [line["payload"] for line in lines if line.get("type") == "event_msg"]
    return [event for event in events if event.get("type") == kind]


def _spent(lines: Sequence[Update]) -> Spent:
    """Return what the session took: each count of tokens has all before it. Input is counted with what was cached."""
    spent = Spent()
    for turn in (line["payload"] for line in lines if line.get("type") == "turn_context"):
        spent.model = str(turn.get("model") or spent.model)
    told = [info for event in _events(lines, "token_count") if (info := members_of(event.get("info")))]
    if told:
        total, last = (members_of(told[-1].get(f"{part}_token_usage")) for part in ("total", "last"))
        cached, thought = count(total.get("cached_input_tokens")), count(total.get("reasoning_output_tokens"))
        spent.add(
            input=max(count(total.get("input_tokens")) - cached, 0),
            cachedRead=cached,
            output=max(count(total.get("output_tokens")) - thought, 0),
            thought=thought,
        )
        spent.context, spent.size = count(last.get("total_tokens")), count(told[-1].get("model_context_window"))
    return spent


def _changes(items: Sequence[Update], applied: Sequence[Update], cwd: str) -> dict[str, list[Update]]:
    """Return by call what it has changed: as Codex noted it, else as the model wrote it."""
    changes: dict[str, list[Update]] = {}
    for item in items:
        if item.get("type") in ("function_call", "custom_tool_call"):
            given = members_of(_arguments(item))
            directory = posixpath.join(cwd, str(given.get("workdir") or ""))
            changes[item["call_id"]] = list(changes_in_patch(_written(item, given), directory))
    for event in applied:
        noted = members_of(event.get("changes")).items()
        if found := [item for path, made in noted for item in _noted(path, members_of(made), cwd)]:
            changes[str(event.get("call_id"))] = found
    return changes


def _written(item: Update, given: Update) -> str:
    """Return where a patch would stand in a call: in the input itself, or in a command."""
    for text in (item.get("input"), given.get("input"), given.get("cmd"), given.get("command")):
        if text:
            return "\n".join(map(str, cast("list[object]", text))) if isinstance(text, list) else str(text)
    return ""


def _noted(path: str, made: Update, cwd: str) -> Iterator[Update]:
    """Yield one change, as ``{"type": "update", …}`` or, in older versions, ``{"update": {…}}``."""
    kind = str(made.get("type") or next(iter(made), ""))
    about = members_of(made.get(kind)) or made
    if kind == "add":
        yield from change(path, None, about.get("content"), cwd)
    elif kind == "delete":
        yield from change(path, about.get("content"), "", cwd)
    else:
        yield from changes_in_diff(about.get("move_path") or path, about.get("unified_diff"), cwd)


def _updates(
    item: Update, fallback_id: str, changes: Mapping[str, list[Update]], refused: set[str]
) -> Iterator[Update]:
    id_ = item.get("id") or fallback_id
    match item.get("type"):
        case "message" if item.get("role") == "user":
            text = "\n".join(part for part in _parts(item) if not _INJECTED.match(part))
            if text.strip():
                yield message("user", id_, text)
        case "message" if item.get("role") == "assistant":
            text = "\n".join(_parts(item))
            if text.strip():
                yield message("agent", id_, text)
        case "reasoning":
            text = text_in(item.get("summary"))
            if text:
                yield message("agent_thought", id_, text)
        case "function_call" | "custom_tool_call":
            paths = dict.fromkeys(made["path"] for made in changes.get(item["call_id"], ()))
            located = {"locations": [{"path": path} for path in paths]} if paths else {}
            yield tool_call(item["call_id"], item["name"], _arguments(item)) | located
        case "function_call_output" | "custom_tool_call_output":
            text = text_in(item.get("output"))
            failed = item["call_id"] in refused or _FAILED.search(text) is not None
            yield tool_result(item["call_id"], text, changes.get(item["call_id"], ()), failed=failed)
        case _:
            return


def _parts(item: Update) -> list[str]:
    content = item.get("content")
    return [content] if isinstance(content, str) else [text_in(part) for part in objects(content)]


def _arguments(item: Update) -> Any:
    if isinstance(item.get("input"), str):
        return {"input": item["input"]}
    try:
        return json.loads(item.get("arguments") or "null")
    except ValueError:
        return {}
