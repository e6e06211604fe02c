"""Codex's sessions: one "rollout" of JSON lines for each, in folders by date.

A rollout holds what the model was sent (`response_item`) and what was shown (`event_msg`). The first is read, as it is
complete in all versions; what Codex puts into the user's mouth is left out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.agent_stores.found_session import (
    FoundSession,
    json_lines,
    message,
    microseconds,
    objects,
    text_in,
    tool_call,
    tool_result,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.agent_stores.found_session import Update

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
        updates = tuple(update for at, item in enumerate(items) for update in _updates(item, f"{about['id']}-{at}"))
        if not any(update["sessionUpdate"] == "user_message" for update in updates):
            return None
        times = [microseconds(line.get("timestamp")) for line in lines]
        title = self._named().get(about["id"])
        return FoundSession(about["id"], about["cwd"], title, min(times), max(times), updates)

    def _named(self) -> dict[str, str]:
        """Return the titles that sessions have, by their ids."""
        if self._titles is None:
            index = self._home / "session_index.jsonl"
            lines = json_lines(index) if index.is_file() else ()
            self._titles = {line["id"]: line["thread_name"] for line in lines if line.get("thread_name")}
        return self._titles


def _updates(item: Update, fallback_id: str) -> Iterator[Update]:
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
            yield tool_call(item["call_id"], item["name"], _arguments(item))
        case "function_call_output" | "custom_tool_call_output":
            text = text_in(item.get("output"))
            yield tool_result(item["call_id"], text, failed=_FAILED.search(text) is not None)
        case _:
            return


def _parts(item: Update) -> list[str]:
    content = item.get("content")
    return [content] if isinstance(content, str) else [text_in(part) for part in objects(content)]


def _arguments(item: Update) -> Any:
    try:
        return json.loads(item.get("arguments") or "null")
    except ValueError:
        return {}
