"""Claude Code's sessions: one file of JSON lines for each, in a folder for each working directory.

Lines form a tree by `parentUuid`: where the user went back, the branch that was left stays in the file. What counts is
the way from the last line to the first.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast_app.importers.edits import change, changes_in_hunks, changes_of_input
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

_INJECTED = re.compile(r"<(system-reminder|local-command-\w+|command-\w+)>.*?</\1>\s*", re.DOTALL)
_INTERRUPTED = "[Request interrupted by user"


class ClaudeStore:
    """The sessions in a configuration directory of Claude Code."""

    def __init__(self, home: Path | None, env: Mapping[str, str]) -> None:
        self._projects = (home or Path(env.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")) / "projects"

    def locate(self) -> list[Path]:
        """Return the files of sessions, newest first."""
        return sorted(self._projects.glob("*/*.jsonl"), key=lambda file: -file.stat().st_mtime)

    def read(self, place: Path) -> FoundSession | None:
        """Read the session in a file."""
        whole = list(json_lines(place))
        lines = [line for line in whole if not line.get("isSidechain")]
        spoken = _on_the_way([line for line in lines if line.get("type") in ("user", "assistant")], lines)
        inputs = {block["id"]: block.get("input") for line in spoken for block in _blocks(line, "tool_use")}
        updates = tuple(update for line in spoken for update in _updates(line, inputs))
        found = [line for line in spoken if line.get("cwd")]
        if not found or not any(update["sessionUpdate"] == "user_message" for update in updates):
            return None
        times = [microseconds(line.get("timestamp")) for line in spoken]
        spent = _spent(whole, spoken)
        return FoundSession(place.stem, found[0]["cwd"], _title(lines), min(times), max(times), updates, spent)


def _spent(whole: Sequence[Update], spoken: Sequence[Update]) -> Spent:
    """Return what all answers took, also those of subagents and of branches that were left.

    A message has a line for each of its blocks, and each line has what the whole message took.
    """
    spent = Spent()
    answers = {said.get("id") or line.get("uuid"): (said, line) for line in whole if (said := _answer(line))}
    for said, line in answers.values():
        spent.add(**_tokens(said))
        spent.add_cost(line.get("costUSD"))
    for said in filter(None, map(_answer, spoken)):
        spent.model = str(said.get("model") or spent.model)
        spent.context = sum(_tokens(said).values()) or spent.context
    return spent


def _answer(line: Update) -> Update:
    """Return the message in a line if a model has made it: Claude Code writes some itself."""
    said = members_of(line.get("message")) if line.get("type") == "assistant" else {}
    return {} if said.get("model") == "<synthetic>" else said


def _tokens(said: Update) -> dict[str, int]:
    usage = members_of(said.get("usage"))
    return {
        "input": count(usage.get("input_tokens")),
        "cachedRead": count(usage.get("cache_read_input_tokens")),
        "cachedWrite": count(usage.get("cache_creation_input_tokens")),
        "output": count(usage.get("output_tokens")),
    }


def _title(lines: Sequence[Update]) -> str | None:
    """Return the title: what the user named it, else what the model did."""
    for kind, member in (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary")):
        named = [line[member] for line in lines if line.get("type") == kind and line.get(member)]
        if named:
            return str(named[-1])
    return None


def _on_the_way(spoken: Sequence[Update], lines: Sequence[Update]) -> list[Update]:
    """Return what was said on the way from the last line to the first, in the order of the file.

    Tool calls made at once are branches of one message, and come along with it.
    """
    if not spoken:
        return []
    by_id = {line["uuid"]: line for line in lines if "uuid" in line}
    way: set[str] = set()
    at: Any = spoken[-1].get("uuid")
    while at in by_id and at not in way:
        way.add(at)
        at = by_id[at].get("parentUuid") or by_id[at].get("logicalParentUuid")
    messages = {by_id[id_].get("message", {}).get("id") for id_ in way} - {None}
    calls = {block["id"] for line in spoken if _is_of(line, way, messages) for block in _blocks(line, "tool_use")}
    return [
        line
        for line in spoken
        if _is_of(line, way, messages) or any(result["tool_use_id"] in calls for result in _blocks(line, "tool_result"))
    ]


def _is_of(line: Update, way: set[str], messages: set[Any]) -> bool:
    return line.get("uuid") in way or line.get("message", {}).get("id") in messages


def _blocks(line: Update, kind: str) -> list[Update]:
    return [block for block in objects(line.get("message", {}).get("content")) if block.get("type") == kind]


def _updates(line: Update, inputs: Mapping[str, Any]) -> Iterator[Update]:
    said: Update = line.get("message") or {}
    if line["type"] == "assistant":
        yield from _of_assistant(line, said)
        return
    for block in _blocks(line, "tool_result"):
        call, failed = block["tool_use_id"], bool(block.get("is_error"))
        yield tool_result(call, text_in(block.get("content")), _changes(line, inputs.get(call)), failed=failed)
    if line.get("isMeta") or line.get("isCompactSummary"):
        return
    content: Any = said.get("content")
    texts = [content] if isinstance(content, str) else [block["text"] for block in _blocks(line, "text")]
    text = _INJECTED.sub("", "\n".join(texts)).strip()
    if text and not text.startswith(_INTERRUPTED):
        yield message("user", line["uuid"], text)


def _changes(line: Update, given: object) -> Iterator[Update]:
    """Yield the changes that a tool has made: as the line of its result has them, else as it was asked to."""
    result = members_of(line.get("toolUseResult"))
    path = result.get("filePath")
    if result.get("type") == "create":
        yield from change(path, None, result.get("content"))
    elif "structuredPatch" in result:
        yield from changes_in_hunks(path, result["structuredPatch"])
    elif "newString" in result:
        yield from change(path, result.get("oldString") or None, result["newString"])
    else:
        yield from changes_of_input(given)


def _of_assistant(line: Update, said: Update) -> Iterator[Update]:
    for at, block in enumerate(objects(said.get("content"))):
        id_ = f"{line['uuid']}-{at}" if at else line["uuid"]
        if block.get("type") == "text" and block["text"].strip():
            yield message("agent", id_, block["text"])
        elif block.get("type") == "thinking" and block.get("thinking"):
            yield message("agent_thought", id_, block["thinking"])
        elif block.get("type") == "tool_use":
            yield tool_call(block["id"], block["name"], block.get("input"))
