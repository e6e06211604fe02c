"""What the chat's own commands do."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.chat.commands import choices, help_text
from holdfast.chat.opening import open_session
from holdfast.errors import RemoteError, UsageError
from holdfast.view.blocks import Call, Note
from holdfast.view.safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from holdfast.chat.commands import Command
    from holdfast.chat.talk import Talk
    from holdfast.client import ClientSession

LISTED = 20
"""So many sessions are listed."""


async def act(talk: Talk, command: Command, rest: str) -> None:
    """Do what a command says."""
    session = talk.session
    assert session is not None
    match command.name:
        case "help":
            talk.screen.show(Note("Keys and commands", help_text(session.commands)))
        case "mode":
            await _set(talk, _Setting("mode", session.modes, session.mode, session.set_mode), rest)
        case "model":
            await _set(talk, _Setting("model", session.models, session.model, session.set_model), rest)
        case "option":
            await _option(talk, session, rest)
        case "new":
            await _leave_for(talk, await talk.connection.new_session(talk.start.cwd))
        case "sessions":
            await _list(talk)
        case "resume":
            if not rest:
                raise UsageError("say which: /resume ID; /sessions lists them")
            await _leave_for(talk, await open_session(talk.connection, replace(talk.start, resume=rest)), restored=True)
        case "fork":
            await _leave_for(talk, await session.fork(), shown=True)
            talk.screen.show(Note("You go on in a copy; the session you come from stays as it is.", tone="good"))
        case "details":
            calls = [replace(it, whole=True) for it in talk.last_turn if isinstance(it, Call)]
            talk.screen.show(*(calls or [Note("No tool was used in the last turn.")]))
        case _:
            talk.screen.leave()


@dataclass(frozen=True, slots=True)
class _Setting:
    """Something that can be set: what it is called, its values and their names, and how it is changed."""

    name: str
    values: Mapping[str, str]
    current: str | None
    change: Callable[[str], Awaitable[None]]


async def _set(talk: Talk, setting: _Setting, value: str) -> None:
    """Show a setting, or change it: by its value, or by its name."""
    if not setting.values:
        raise UsageError(f"this agent has no {setting.name}s to choose from")
    if not value:
        marks = {it: " (now)" if it == setting.current else "" for it in setting.values}
        listed = (f"{it}  {safe_line(name)}{marks[it]}" for it, name in setting.values.items())
        talk.screen.show(Note(f"{setting.name.capitalize()}:", "\n".join(listed)))
        return
    found = [it for it, name in setting.values.items() if value.lower() in (it.lower(), name.lower())]
    if not found:
        raise UsageError(f"there is no {setting.name} {value}; there are: {', '.join(setting.values)}")
    await setting.change(found[0])
    talk.screen.show(Note(f"{setting.name.capitalize()}: {setting.values[found[0]]}", tone="good"))


async def _option(talk: Talk, session: ClientSession, rest: str) -> None:
    """Show the options, or set one."""
    option_id, _, value = rest.partition(" ")
    if option_id:
        option = session.options.get(option_id)
        if option is None:
            raise UsageError(f"there is no option {option_id}; there are: {', '.join(session.options) or 'none'}")

        async def change(wanted: str) -> None:
            await session.set_option(option_id, wanted == "true" if option.get("type") == "boolean" else wanted)

        await _set(talk, _Setting(option_id, choices(option), _value(option), change), value.strip())
        return
    if not session.options:
        raise UsageError("this agent has no options")
    listed = (f"{id_}  {safe_line(str(it.get('name', '')))}: {_value(it)}" for id_, it in session.options.items())
    talk.screen.show(Note("Options:", "\n".join(listed)))


async def _list(talk: Talk) -> None:
    """List the sessions of this directory, newest first."""
    if not talk.connection.can("list"):
        raise UsageError("this agent cannot list its sessions")
    lines: list[str] = []
    async for it in talk.connection.sessions(talk.start.cwd):
        if len(lines) == LISTED:
            lines.append("and more: holdfast sessions")
            break
        when = it.updated_at.astimezone().strftime("%Y-%m-%d %H:%M") if it.updated_at else ""
        here = " (this one)" if talk.session is not None and it.id == talk.session.id else ""
        lines.append(f"{it.id}  {when}  {safe_line(it.title or '')}{here}")
    talk.screen.show(Note("Sessions of this directory:" if lines else "There are none yet.", "\n".join(lines)))


async def _leave_for(talk: Talk, session: ClientSession, *, restored: bool = False, shown: bool = False) -> None:
    """Close the session that is open and go on in another."""
    left = talk.session
    talk.enter(session, restored=restored, shown=shown)
    if left is not None and left.id != session.id and talk.connection.can("close"):
        with suppress(RemoteError):
            await left.close()


def _value(option: Mapping[str, Any]) -> str:
    value = option.get("currentValue")
    return str(value).lower() if isinstance(value, bool) else str(value)
