"""The chat's own slash commands. An agent's command of the same name wins; ours is then `/chat:name`.

What a command does is in `Talk`; here is what they are called, what they take, and how a line is completed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from holdfast.chat.screen import Candidate
from holdfast.view.safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast.client import ClientSession


@dataclass(frozen=True, slots=True)
class Command:
    """One of our commands."""

    name: str
    about: str
    takes: str = ""


COMMANDS = {
    it.name: it
    for it in (
        Command("help", "Keys and commands"),
        Command("mode", "Switch the mode, or show which there are", "[MODE]"),
        Command("model", "Switch the model, or show which there are", "[MODEL]"),
        Command("option", "Set an option, or show which there are", "[OPTION [VALUE]]"),
        Command("new", "Begin a new session"),
        Command("sessions", "List the sessions of this directory"),
        Command("resume", "Go on with another session", "ID"),
        Command("fork", "Go on in a copy of this session"),
        Command("details", "Show the tool calls of the last turn whole"),
        Command("quit", "Leave"),
    )
}
PREFIX = "chat:"

KEYS = """Enter sends, Alt-Enter begins a new line, Up brings back what you said before, Tab completes.
Ctrl-C stops the turn; twice in a row, or Ctrl-D, leaves. What you say while the agent works waits for its turn."""


def parse(text: str, theirs: Mapping[str, object]) -> tuple[Command, str] | None:
    """Find out whether a line is one of our commands; give it and what follows its name."""
    if not text.startswith("/"):
        return None
    name, _, rest = text[1:].strip().partition(" ")
    if name in theirs:
        return None
    command = COMMANDS.get(name.removeprefix(PREFIX))
    return None if command is None else (command, rest.strip())


def help_text(theirs: Mapping[str, Any]) -> str:
    """Write down the keys, our commands and the agent's."""
    ours = [(_reach(it.name, theirs), it.takes, it.about) for it in COMMANDS.values()]
    others = [(safe_line(name), _takes(it), safe_line(_about(it))) for name, it in theirs.items()]
    listed = [f"/{name} {takes}".rstrip() + f"  {about}" for name, takes, about in ours]
    if others:
        listed += [
            "",
            "The agent's own:",
            *(f"/{name} {takes}".rstrip() + f"  {about}" for name, takes, about in others),
        ]
    return "\n".join((KEYS, "", *listed))


def complete(line: str, session: ClientSession | None) -> Iterator[Candidate]:
    """Give what a line could become."""
    theirs = {} if session is None else session.commands
    if not line.startswith("/"):
        return
    if " " not in line:
        for name, it in theirs.items():
            if _is_word(name) and name.startswith(line[1:]):
                yield Candidate(f"/{name}", _about(it))
        for it in COMMANDS.values():
            name = _reach(it.name, theirs)
            if name.startswith(line[1:]):
                yield Candidate(f"/{name}", it.about)
        return
    found = parse(line, theirs)
    if found is not None and session is not None:
        head, _, rest = line.partition(" ")
        for text, about in _arguments(found[0].name, rest.lstrip(), session):
            if text.startswith(rest.lstrip()) and text != rest.strip():
                yield Candidate(f"{head} {text}", about)


def choices(option: Mapping[str, Any]) -> dict[str, str]:
    """Give the values of an option, and what they are called."""
    if option.get("type") == "boolean":
        return {"true": "on", "false": "off"}
    found: dict[str, str] = {}
    for it in _objects(option.get("options")):
        for choice in _objects(it.get("options")) or [it]:
            if isinstance(value := choice.get("value"), str):
                found[value] = str(choice.get("name") or value)
    return found


def _arguments(command: str, rest: str, session: ClientSession) -> Iterable[tuple[str, str]]:
    match command:
        case "mode":
            return session.modes.items()
        case "model":
            return session.models.items()
        case "option":
            option_id, space, _ = rest.partition(" ")
            if space and option_id in session.options:
                return [(f"{option_id} {value}", name) for value, name in choices(session.options[option_id]).items()]
            return [(id_, str(it.get("name", ""))) for id_, it in session.options.items()]
        case _:
            return ()


def _reach(name: str, theirs: Mapping[str, object]) -> str:
    return f"{PREFIX}{name}" if name in theirs else name


def _about(command: Any) -> str:
    about = cast("dict[str, Any]", command).get("description") if isinstance(command, dict) else ""
    return str(about or "")


def _takes(command: Any) -> str:
    match command:
        case {"input": {"hint": str(hint)}}:
            return safe_line(hint)
        case _:
            return ""


def _is_word(name: str) -> bool:
    return name.isprintable() and " " not in name


def _objects(value: Any) -> list[dict[str, Any]]:
    return [it for it in cast("list[Any]", value) if isinstance(it, dict)] if isinstance(value, list) else []
