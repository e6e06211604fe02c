"""The chat's own slash commands. An agent's command of the same name wins; ours is then `/chat:name`.

Here is what they are called, what they take, and how a line is completed; `command_actions` has what they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from holdfast.view.safe_text import safe_line
from holdfast_app.chat.screen import Candidate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from holdfast.client import ClientSession


@dataclass(frozen=True, slots=True)
class Command:
    """One of our commands."""

    name: str
    about: str
    takes: str = ""


COMMANDS = {
    command.name: command
    for command in (
        Command("help", "Keys and commands"),
        Command("mode", "Switch the mode, or show which there are", "[MODE]"),
        Command("model", "Switch the model, or show which there are", "[MODEL]"),
        Command("option", "Set an option, or show which there are", "[OPTION [VALUE]]"),
        Command("new", "Begin a new session"),
        Command("sessions", "List the sessions of this directory"),
        Command("resume", "Go on with another session: choose it, or name it", "[ID]"),
        Command("fork", "Go on in a copy of this session"),
        Command("edit", "Say otherwise what you said before: choose it, or 1 for the last", "[NUMBER]"),
        Command("undo", "Go back to what was before the last edit"),
        Command("login", "Log in to the agent: choose how, or name it", "[WAY]"),
        Command("logout", "Log out of the agent"),
        Command("details", "Show the tool calls of the last turn whole, and what goes on in the background"),
        Command("jobs", "List what goes on in the background, beside the turns"),
        Command("stop", "Stop something of that: choose it, or name it by its number", "[NUMBER]"),
        Command("quit", "Leave"),
    )
}
PREFIX = "chat:"

KEYS = """Enter sends; Ctrl-J, Alt-Enter and Shift-Enter begin a new line; Tab completes.
Up brings back what you said before, Ctrl-R searches it. Ctrl-X Ctrl-E opens your editor.
@ names a file: @src/main.py. Ctrl-V pastes an image. !command runs a command here.
Escape stops the turn; twice, in an empty line, it takes up a message of yours again (/edit).
Ctrl-C stops the turn; twice in a row, or Ctrl-D, leaves. Ctrl-L clears the screen, Ctrl-Z suspends.
What you say while the agent works waits for its turn."""


def parse_command(text: str, of_agent: Mapping[str, object]) -> tuple[Command, str] | None:
    """Return the command of ours that a line is, and its argument; None if it is none."""
    if not text.startswith("/"):
        return None
    name, _, argument = text[1:].strip().partition(" ")
    if name in of_agent:
        return None
    command = COMMANDS.get(name.removeprefix(PREFIX))
    return None if command is None else (command, argument.strip())


def is_help_of_agent(text: str, of_agent: Mapping[str, object]) -> bool:
    """Return whether a line asks for help, and the agent has a help of its own."""
    return text.strip() == "/help" and "help" in of_agent


def help_text(of_agent: Mapping[str, Any], without: Collection[str] = ()) -> str:
    """Return the keys, our commands and the agent's, as text; `without` those of ours that are of no use here."""
    shown = [command for command in COMMANDS.values() if command.name not in without]
    ours = [(typed_name(command.name, of_agent), command.takes, command.about) for command in shown]
    others = [(safe_line(name), _takes(command), safe_line(_about(command))) for name, command in of_agent.items()]
    listed = [f"/{name} {takes}".rstrip() + f"  {about}" for name, takes, about in ours]
    if others:
        listed += [
            "",
            "The agent's own:",
            *(f"/{name} {takes}".rstrip() + f"  {about}" for name, takes, about in others),
        ]
    return "\n".join((KEYS, "", *listed))


def complete_line(line: str, session: ClientSession | None, without: Collection[str] = ()) -> Iterator[Candidate]:
    """Yield what a line could be completed to, `without` the commands of ours that are of no use here."""
    of_agent = {} if session is None else session.commands
    if not line.startswith("/"):
        return
    if " " not in line:
        for name, command in of_agent.items():
            if _is_typeable(name) and name.startswith(line[1:]):
                yield Candidate(f"/{name}", _about(command))
        for command in COMMANDS.values():
            name = typed_name(command.name, of_agent)
            if name.startswith(line[1:]) and command.name not in without:
                yield Candidate(f"/{name}", command.about)
        return
    found = parse_command(line, of_agent)
    if found is not None and session is not None:
        head, _, argument = line.partition(" ")
        for text, about in _arguments(found[0].name, argument.lstrip(), session):
            if text.startswith(argument.lstrip()) and text != argument.strip():
                yield Candidate(f"{head} {text}", about)


class OptionValue(NamedTuple):
    """One of the values of an option: what it is called, and what it means."""

    name: str
    about: str = ""


def option_values(option: Mapping[str, Any]) -> dict[str, OptionValue]:
    """Return the values of an option, with their names and descriptions."""
    if option.get("type") == "boolean":
        return {"true": OptionValue("on"), "false": OptionValue("off")}
    found: dict[str, OptionValue] = {}
    for item in _objects(option.get("options")):
        for choice in _objects(item.get("options")) or [item]:
            if isinstance(value := choice.get("value"), str):
                found[value] = OptionValue(str(choice.get("name") or value), _about(choice))
    return found


def option_of(session: ClientSession, category: str) -> Mapping[str, Any]:
    """Return the option that modes or models are; an empty one where there are none."""
    none: dict[str, Any] = {}
    return next((option for option in session.options.values() if option.get("category") == category), none)


def option_name(option: Mapping[str, Any]) -> str:
    """Return what an option is called."""
    return safe_line(str(option.get("name") or option.get("configId") or ""))


def described(name: str, about: str) -> str:
    """Return a name with what it means, in one line."""
    return f"{safe_line(name)} — {safe_line(about)}" if about and about != name else safe_line(name)


def _arguments(command: str, argument: str, session: ClientSession) -> Iterable[tuple[str, str]]:
    match command:
        case "mode" | "model":
            values = option_values(option_of(session, command))
            return [(value, described(*named)) for value, named in values.items()]
        case "option":
            option_id, space, _ = argument.partition(" ")
            if space and option_id in session.options:
                values = option_values(session.options[option_id])
                return [(f"{option_id} {value}", described(*named)) for value, named in values.items()]
            options = session.options.items()
            return [(option_id, described(option_name(option), _about(option))) for option_id, option in options]
        case _:
            return ()


def typed_name(name: str, of_agent: Mapping[str, object]) -> str:
    """Return what to type behind the slash for one of our commands: the agent may have one of the same name."""
    return f"{PREFIX}{name}" if name in of_agent else name


def _about(described: Any) -> str:
    about = cast("dict[str, Any]", described).get("description") if isinstance(described, dict) else ""
    return str(about or "")


def _takes(command: Any) -> str:
    match command:
        case {"input": {"hint": str(hint)}}:
            return safe_line(hint)
        case _:
            return ""


def _is_typeable(name: str) -> bool:
    return name.isprintable() and " " not in name


def _objects(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]
