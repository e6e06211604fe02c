"""What the chat's own slash commands do."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.errors import RemoteError, UsageError
from holdfast.view.blocks import Call, Note
from holdfast.view.safe_text import safe_line
from holdfast_app.chat.background_jobs import list_jobs, stop_job
from holdfast_app.chat.commands import described, help_text, option_name, option_of, option_values
from holdfast_app.chat.login import log_in, log_out
from holdfast_app.chat.screen import ListQuestion
from holdfast_app.chat.session_opening import begin_session, fork_session, open_session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from holdfast.client import ClientSession, ListedSession
    from holdfast_app.chat.commands import Command, OptionValue
    from holdfast_app.chat.conversation import Conversation

MAX_LISTED = 20
"""So many sessions are listed."""
MAX_PICKED = 500
"""So many sessions can be chosen from, the newest."""


async def run_command(chat: Conversation, command: Command, argument: str) -> None:
    """Do what a command says. Raises `UsageError` if the argument does not fit."""
    session = chat.session
    assert session is not None
    match command.name:
        case "help":
            chat.screen.show(Note("Keys and commands", help_text(session.commands, chat.useless_commands())))
        case "mode":
            await _set(chat, _setting("mode", option_of(session, "mode"), partial(session.set, "mode")), argument)
        case "model":
            await _set(chat, _setting("model", option_of(session, "model"), partial(session.set, "model")), argument)
        case "option":
            await _option(chat, session, argument)
        case "new":
            await switch_to(chat, await begin_session(chat.connection, chat.settings, chat.settings.cwd))
        case "sessions":
            await _list_sessions(chat)
        case "resume":
            if chosen := argument or await _pick_session(chat):
                settings = replace(chat.settings, resume=chosen)
                await switch_to(chat, await open_session(chat.connection, settings), restored=True)
        case "fork":
            await switch_to(chat, await fork_session(chat.connection, chat.settings, session), shown=True)
            chat.screen.show(Note("You go on in a copy; the session you come from stays as it is.", tone="good"))
        case "edit":
            await chat.revision.choose(argument)
        case "undo":
            await switch_to(chat, await chat.revision.undo(), restored=True)
        case "login":
            await log_in(chat, "How do you want to log in?", argument)
        case "logout":
            await log_out(chat)
        case "details":
            _show_details(chat)
        case "jobs":
            list_jobs(chat, session)
        case "stop":
            await stop_job(chat, session, argument)
        case _:
            chat.screen.leave()


def _show_details(chat: Conversation) -> None:
    """Show the calls of the last turn and what goes on now, each once, as it is now."""
    calls = [block for block in (*chat.last_turn, *chat.view.going_on()) if isinstance(block, Call)]
    latest = {call.key or f"{number} in this list": call for number, call in enumerate(calls)}
    whole = [replace(call, whole=True) for call in latest.values()]
    chat.screen.show(*(whole or [Note("No tool was used in the last turn.")]))


@dataclass(frozen=True, slots=True)
class _Setting:
    """Something that can be set: what it is called, what it is about, its values, and what changes it."""

    name: str
    about: str
    values: Mapping[str, OptionValue]
    current: str
    change: Callable[[str], Awaitable[None]]


def _setting(name: str, option: Mapping[str, Any], change: Callable[[str], Awaitable[None]]) -> _Setting:
    return _Setting(name, str(option.get("description") or ""), option_values(option), _value(option), change)


async def _set(chat: Conversation, setting: _Setting, value: str) -> None:
    """Show a setting, or change it: by its value, or by its name."""
    title = setting.name[:1].upper() + setting.name[1:]
    if not setting.values:
        raise UsageError(f"this agent has no {setting.name}s to choose from")
    if not value:
        marks = {choice: " (now)" if choice == setting.current else "" for choice in setting.values}
        listed = (
            f"{choice}  {described(f'{safe_line(name)}{marks[choice]}', about)}"
            for choice, (name, about) in setting.values.items()
        )
        chat.screen.show(Note(f"{described(title, setting.about)}:", "\n".join(listed)))
        return
    wanted = value.lower()
    found = [choice for choice, named in setting.values.items() if wanted in (choice.lower(), named.name.lower())]
    if not found:
        raise UsageError(f"there is no {setting.name} {value}; there are: {', '.join(setting.values)}")
    await setting.change(found[0])
    chat.screen.show(Note(f"{title}: {safe_line(setting.values[found[0]].name)}", tone="good"))


async def _option(chat: Conversation, session: ClientSession, argument: str) -> None:
    """Show the options, or set one."""
    option_id, _, value = argument.partition(" ")
    if option_id:
        option = session.options.get(option_id)
        if option is None:
            raise UsageError(f"there is no option {option_id}; there are: {', '.join(session.options) or 'none'}")

        async def change(wanted: str) -> None:
            await session.set(option_id, wanted == "true" if option.get("type") == "boolean" else wanted)

        await _set(chat, _setting(option_name(option), option, change), value.strip())
        return
    if not session.options:
        raise UsageError("this agent has no options")
    chat.screen.show(Note("Options:", "\n".join(map(_listed, session.options.values()))))


def _listed(option: Mapping[str, Any]) -> str:
    """Return an option in one line: how to type it, its name, its value as it is called, what it is about."""
    value = _value(option)
    named = option_values(option).get(value)
    now = f"{option_name(option)}: {safe_line(named.name if named is not None else value)}"
    return f"{option.get('configId')}  {described(now, str(option.get('description') or ''))}"


async def _pick_session(chat: Conversation) -> str | None:
    """Let the user choose one of the sessions of this directory; return its id."""
    if not chat.connection.can("list"):
        raise UsageError("this agent cannot list its sessions; name one: /resume ID")
    items: list[tuple[str, str]] = []
    async for listed in chat.connection.sessions(chat.settings.cwd):
        here = " (this one)" if chat.session is not None and listed.id == chat.session.id else ""
        items.append((f"{_when(listed)}  {safe_line(listed.title or '(no title)')}{here}", listed.id))
        if len(items) == MAX_PICKED:
            break
    if not items:
        raise UsageError("there is no session of this directory yet")
    return await chat.screen.ask_item(
        ListQuestion("Go on with which session? Type to find, Escape leaves", tuple(items))
    )


def _when(listed: ListedSession) -> str:
    return listed.updated_at.astimezone().strftime("%Y-%m-%d %H:%M") if listed.updated_at else ""


async def _list_sessions(chat: Conversation) -> None:
    """List the sessions of this directory, newest first."""
    if not chat.connection.can("list"):
        raise UsageError("this agent cannot list its sessions")
    lines: list[str] = []
    async for listed in chat.connection.sessions(chat.settings.cwd):
        if len(lines) == MAX_LISTED:
            lines.append("and more: holdfast sessions")
            break
        here = " (this one)" if chat.session is not None and listed.id == chat.session.id else ""
        lines.append(f"{listed.id}  {_when(listed)}  {safe_line(listed.title or '')}{here}")
    chat.screen.show(Note("Sessions of this directory:" if lines else "There are none yet.", "\n".join(lines)))


async def switch_to(chat: Conversation, session: ClientSession, *, restored: bool = False, shown: bool = False) -> None:
    """Close the session that is open and go on in another."""
    before = chat.session
    chat.enter(session, restored=restored, shown=shown)
    if before is not None and before.id != session.id and chat.connection.can("close"):
        with suppress(RemoteError):
            await before.close()


def _value(option: Mapping[str, Any]) -> str:
    value = option.get("currentValue")
    return str(value).lower() if isinstance(value, bool) else str(value)
