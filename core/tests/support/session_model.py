"""A model of sessions so simple that one can see that it is right: lists of what was said, and a few values.

A turn is a list of instructions for a `ScriptedAgent`; `lines_after` says what the history has when they were done. An
entry is a tuple: what it is, what identifies it in the test, what it says. Ids that the engine makes up are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.model import Update

Line: TypeAlias = "tuple[Any, ...]"


def lines_after(script: Sequence[str]) -> list[Line]:
    """Say what instructions leave in the history."""
    lines: list[Line] = []
    speaking = ""
    for instruction in script:
        verb, _, rest = instruction.partition(" ")
        key, _, text = rest.partition(" ")
        if verb in ("say", "think"):
            kind = {"say": "agent", "think": "thought"}[verb]
            if speaking == kind:
                lines[-1] = (kind, "", lines[-1][2] + rest)
            else:
                lines.append((kind, "", rest))
            speaking = kind
        elif verb in ("call", "output", "done", "plan", "unknown", "usage"):
            speaking = ""
        match verb:
            case "call":
                lines.append(("call", key, "in_progress", ()))
            case "output":
                at = _call(lines, key)
                lines[at] = (*lines[at][:3], (*lines[at][3], text))
            case "done":
                at = _call(lines, key)
                lines[at] = (*lines[at][:2], "completed", lines[at][3])
            case "plan":
                lines[:] = view([*lines, ("plan", "plan", rest)])
            case "unknown":
                lines.append(("unknown", "", rest))
            case _:
                pass
    return lines


def _call(lines: list[Line], key: str) -> int:
    return next(i for i, it in enumerate(lines) if it[:2] == ("call", key))


def closed(lines: Iterable[Line], status: str) -> list[Line]:
    """Close the calls that are open."""
    return [(*it[:2], status, it[3]) if it[0] == "call" and it[2] == "in_progress" else it for it in lines]


def view(lines: Iterable[Line]) -> list[Line]:
    """Show lines as a history does: there is one plan, where it first was, as it last was."""
    shown: list[Line] = []
    for it in lines:
        at = next((i for i, other in enumerate(shown) if it[0] == "plan" == other[0]), None)
        if at is None:
            shown.append(it)
        else:
            shown[at] = it
    return shown


def finished(lines: list[Line]) -> list[Line]:
    """Say what of a running turn a fork gets."""
    for at, it in enumerate(lines):
        if it[0] == "call" and it[2] == "in_progress":
            return lines[:at]
    return lines[:-1] if lines and lines[-1][0] in ("agent", "thought") else lines


def remembered(script: Sequence[str]) -> dict[str, int]:
    """Say what instructions make the agent remember."""
    found = (it.split(" ") for it in script if it.startswith("remember "))
    return {key: int(value) for _, key, value in found}


@dataclass
class ModelTurn:
    """A turn that stands at a gate."""

    text: str
    before: list[str]
    after: list[str]
    reason: str

    def lines(self) -> list[Line]:
        return [("user", "", self.text), *lines_after(self.before)]


@dataclass
class ModelSession:
    """What should be known of a session."""

    id: str
    cwd: str
    lines: list[Line] = field(default_factory=list[Line])
    running: ModelTurn | None = None
    waiting: list[tuple[str, list[str]]] = field(default_factory=list[Any])
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    title: str | None = None
    titled: bool = False
    memory: dict[str, int] = field(default_factory=dict[str, int])
    stored_memory: dict[str, int] = field(default_factory=dict[str, int])
    additional: tuple[str, ...] = ()
    archived: bool = False
    active: int = 0
    listed: bool = False
    live: bool = True
    interrupted: bool = False

    def history(self) -> list[Line]:
        return view([*self.lines, *(self.running.lines() if self.running else [])])

    def messages(self) -> int:
        return sum(it[0] in ("user", "agent") for it in self.lines)

    def begin(self, text: str, now: int) -> None:
        self.listed = True
        self.active = now
        if not self.titled:
            self.title, self.titled = text.splitlines()[0], True
            self.stored_memory = dict(self.memory)

    def end(self, lines: list[Line], reason: str, now: int) -> None:
        status = {"end_turn": "completed", "cancelled": "cancelled"}.get(reason, "failed")
        self.lines += closed(lines, status)
        if reason != "end_turn":
            self.lines.append(("end", "", reason))
        self.running = None
        self.active = now
        self.interrupted = False
        self.stored_memory = dict(self.memory)

    def crash(self) -> None:
        if self.running is not None:
            self.lines += [*closed(self.running.lines(), "failed"), ("end", "", "interrupted")]
            self.running = None
            self.interrupted = True
        self.waiting.clear()
        self.memory = dict(self.stored_memory)
        self.live = False


FORKED_EARLIER: Line = ("forked", "", "earlier")
"""Ends a fork whose source goes on from there."""


def normal(updates: Iterable[Update]) -> list[Line]:
    """Write a history as the model does."""
    return [_normal(it) for it in updates]


def _normal(update: Update) -> Line:
    match update["sessionUpdate"]:
        case "user_message":
            return "user", "", _text(update["content"])
        case "agent_message":
            return "agent", "", _text(update["content"])
        case "agent_thought":
            return "thought", "", _text(update["content"])
        case "tool_call_update":
            texts = tuple(it["content"]["text"] for it in update.get("content") or ())
            return "call", update["toolCallId"], update["status"], texts
        case "plan_update":
            return "plan", "plan", update["plan"]["entries"][0]["content"]
        case "_zed/mood":
            return "unknown", "", update["mood"]
        case "_holdfast/turn_end":
            return "end", "", update["reason"]
        case "_holdfast/forked_earlier":
            return FORKED_EARLIER
        case kind:
            raise AssertionError(kind)


def _text(content: Iterable[Update]) -> str:
    return "".join(it["text"] for it in content)
