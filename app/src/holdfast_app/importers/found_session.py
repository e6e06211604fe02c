"""What every reader of an agent's store returns, and the port they share."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Update: TypeAlias = dict[str, Any]

log: logging.Logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Spent:
    """What a session has taken, as far as the agent's files tell."""

    model: str = ""
    """The model of its last answer, by the name that the agent has for it."""
    tokens: dict[str, int] = field(default_factory=dict[str, int])
    """How many tokens its turns took, by the kinds of the protocol (`inputTokens`)."""
    context: int = 0
    """How many tokens were in the model's context last."""
    size: int = 0
    """How many the context can hold; 0 if that is not known."""
    cost: float = 0
    """In US dollars."""

    def add(self, **tokens: object) -> None:
        """Add what one answer took: `input` without what was read from a cache. What is no count is left out."""
        counts = {kind: count for kind, count in tokens.items() if type(count) is int and count > 0}
        for kind, count in {**counts, "total": sum(counts.values())}.items():
            if count:
                self.tokens[f"{kind}Tokens"] = self.tokens.get(f"{kind}Tokens", 0) + count

    def add_cost(self, dollars: object) -> None:
        """Add what one answer has cost, if that is told."""
        if isinstance(dollars, int | float) and dollars > 0:
            self.cost += dollars

    @property
    def usage(self) -> Update | None:
        """What is known of context and cost, as a `usage_update` has it; without `size` if that is not known."""
        update: Update = {"used": self.context} if self.context or self.cost else {}
        update |= {"size": self.size} if self.context and self.size else {}
        update |= {"cost": {"amount": round(self.cost, 6), "currency": "USD"}} if self.cost else {}
        return {"sessionUpdate": "usage_update", **update} if update else None


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session in an agent's own store. Times are microseconds since 1970, UTC."""

    id: str
    """The agent's own id of it."""
    cwd: str
    title: str | None
    created_at: int
    updated_at: int
    updates: tuple[Update, ...]
    """Its history, as updates of protocol version 2."""
    spent: Spent = field(default_factory=Spent)

    @property
    def prompts(self) -> list[str]:
        """The ids of the user's messages, in order."""
        return [update["messageId"] for update in self.updates if update["sessionUpdate"] == "user_message"]


class AgentStore(Protocol):
    """An agent's own sessions."""

    def locate(self) -> list[Any]:
        """Return where sessions may be, newest first: something to be given to `read`."""
        ...

    def read(self, place: Any) -> FoundSession | None:
        """Read one session; None where there is none, or none that a user has ever spoken in."""
        ...


def json_lines(file: Path) -> Iterator[Update]:
    """Return the objects in a file of JSON lines; a line that is torn or no object is left out."""
    with file.open("rb") as lines:
        for line in lines:
            try:
                found = json.loads(line)
            except ValueError:
                log.debug("%s has a line that is no JSON", file)
                continue
            if isinstance(found, dict):
                yield cast("Update", found)


def microseconds(time: object) -> int:
    """Return a time as agents write it, in ISO 8601 or milliseconds, in microseconds; 0 where it is none."""
    if isinstance(time, int | float):
        return int(time * 1000)
    try:
        return int(datetime.fromisoformat(str(time)).timestamp() * 1_000_000)
    except ValueError:
        return 0


def message(role: str, message_id: str, text: str) -> Update:
    """Return a whole message: `role` is ``user``, ``agent`` or ``agent_thought``."""
    kind = role if role == "agent_thought" else f"{role}_message"
    return {"sessionUpdate": kind, "messageId": message_id, "content": [{"type": "text", "text": text}]}


def tool_call(call_id: str, name: str, arguments: object, **members: Any) -> Update:
    """Return a tool call as it begins; what became of it is told by `tool_result`."""
    about: Update = cast("Update", arguments) if isinstance(arguments, dict) else {}
    title = next((str(about[key]) for key in _TITLES if about.get(key)), "")
    call: Update = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "title": title or name}
    call |= {"kind": _KINDS.get(name.lower(), "other"), "status": "failed", "rawInput": about, **members}
    path = next((about[key] for key in _PATHS if isinstance(about.get(key), str)), None)
    if path is not None and str(path).startswith("/"):
        call["locations"] = [{"path": path}]
    return call


def tool_result(call_id: str, text: str, changes: Iterable[Update] = (), *, failed: bool = False) -> Update:
    """Return how a tool call ended; one that failed has changed nothing."""
    content = [] if failed else list(changes)
    content += [{"type": "content", "content": {"type": "text", "text": text}}] if text else []
    status = "failed" if failed else "completed"
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": status, "content": content}


def members_of(value: object) -> Update:
    """Return the members of an object; none of anything else."""
    return cast("Update", value) if isinstance(value, dict) else {}


def count(value: object) -> int:
    """Return a number of tokens; 0 if it is none."""
    return value if type(value) is int and value > 0 else 0


_TITLES = ("command", "cmd", "file_path", "filePath", "absolute_path", "path", "pattern", "query", "url", "description")
_PATHS = ("file_path", "filePath", "absolute_path", "path")
_KINDS = {
    **dict.fromkeys(("bash", "exec_command", "shell", "shell_command", "run_shell_command", "local_shell"), "execute"),
    **dict.fromkeys(("read", "read_file", "view", "list", "ls", "list_directory", "read_many_files"), "read"),
    **dict.fromkeys(("edit", "write", "multiedit", "write_file", "replace", "apply_patch", "notebookedit"), "edit"),
    **dict.fromkeys(("grep", "glob", "search_file_content", "grep_search", "codesearch"), "search"),
    **dict.fromkeys(("webfetch", "web_fetch", "websearch", "google_web_search", "web_search"), "fetch"),
    **dict.fromkeys(("task", "agent", "todowrite", "update_plan", "write_todos"), "think"),
}


def objects(value: object) -> list[Update]:
    """Return the objects in a list; none where it is no list."""
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Update", each) for each in found if isinstance(each, dict)]


def text_in(content: object) -> str:
    """Return the text in content as agents keep it: a text, a part, or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_in, cast("list[object]", content))))
    if not isinstance(content, dict):
        return ""
    part = cast("Update", content)
    return next((text for key in ("text", "content", "output") if (text := text_in(part.get(key)))), "")
