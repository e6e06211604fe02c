"""Logging in to an agent: the user chooses a way, and is told why it failed where it does."""

from __future__ import annotations

import os
import shlex
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import RemoteError, UsageError
from holdfast.view.blocks import Note
from holdfast_app.chat.commands import typed_name
from holdfast_app.chat.screen import Choice, KeyQuestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast_app.chat.conversation import Conversation
    from holdfast_app.chat.settings import ChatSettings

MOST_METHODS = 9


def error_text(error: RemoteError) -> str:
    """Return what an agent says is wrong, with its reason."""
    return f"{error.message}: {error.reason}" if error.reason else error.message


async def log_in(chat: Conversation, why: str, wanted: str = "") -> bool:
    """Let the user log in by the `wanted` way, or by one to choose, again where it fails; return False if given up.

    Raises `UsageError` where nobody can choose, and there is no such way, or it fails. Where somebody can, what is
    typed next is meant for the login, and must not go to the agent.
    """
    while True:
        methods = chat.connection.auth_methods[:MOST_METHODS]
        if not methods:
            raise UsageError("this agent offers no way to log in")
        if not wanted and not chat.screen.interactive:
            raise UsageError(f"{why}\n{ways_to_log_in(methods, chat.settings)}")
        try:
            method = _named(methods, wanted) if wanted else await _choose(chat, why, methods)
            if method is None:
                return False
            await _use(chat, method)
        except (RemoteError, UsageError, OSError) as e:
            reason = error_text(e) if isinstance(e, RemoteError) else str(e)
            if not chat.screen.interactive:
                raise UsageError(f"You are not logged in: {reason}") from None
            chat.screen.show(Note(f"You are not logged in: {reason}", tone="error"))
            why, wanted = "Log in another way, or once more? Escape gives up.", ""
        else:
            chat.screen.show(Note(f"Logged in: {_name(method)}", tone="good"))
            return True


async def log_out(chat: Conversation) -> None:
    """Log out of the agent. Raises `UsageError` where the agent does not offer it."""
    if not chat.connection.can("logout"):
        raise UsageError("this agent offers no way to log out")
    chat.show_activity("logging out")
    await chat.connection.logout()
    chat.screen.show(Note("Logged out.", tone="good"))


def login_note(chat: Conversation) -> Note:
    """Return what to type where the agent wants a login in the middle of a turn, or what to do elsewhere."""
    name = typed_name("login", chat.session.commands if chat.session is not None else {})
    methods = chat.connection.auth_methods[:MOST_METHODS]
    here = [method for method in methods if chat.screen.interactive or not _needs_terminal(method)]
    if not here:
        return Note("The agent wants you to log in:", dedent(ways_to_log_in(methods, chat.settings)), "ask")
    ways = " or ".join(f"/{name} {method['id']}" for method in here)
    return Note(f"The agent wants you to log in: type {ways}, then say it again.", tone="ask")


def _needs_terminal(method: Mapping[str, Any]) -> bool:
    return method.get("type") == "terminal" or _terminal_meta(method) is not None


def ways_to_log_in(methods: Sequence[Mapping[str, Any]], settings: ChatSettings) -> str:
    """Return what to do to log in, a line for each way, for whoever cannot be asked."""
    return "\n".join(f"  {_name(method)}: {_way(method, settings)}" for method in methods)


def _way(method: Mapping[str, Any], settings: ChatSettings) -> str:
    if method.get("type") == "env_var":
        return f"set {_variables(method) or 'the variables it wants'} in the environment"
    if (meta := _terminal_meta(method)) is not None:
        return f"run `{_shown((str(meta['command']), *map(str, _list(meta.get('args')))))}` in a terminal"
    if method.get("type") != "terminal":
        return f"/login {method['id']} in `{shlex.join(('holdfast', 'chat', *settings.named))}`"
    if not settings.agent_command:
        return "in a terminal where the agent runs"
    return f"run `{_shown((*settings.agent_command, *map(str, _list(method.get('args')))))}` in a terminal"


def _shown(command: tuple[str, ...]) -> str:
    """Return a command as one types it: our own agents are started by the Python we run in."""
    ours = command[:3] == (sys.executable, "-m", "holdfast")
    return shlex.join(("holdfast", *command[3:]) if ours else command)


async def _choose(chat: Conversation, why: str, methods: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    choices = tuple(Choice(str(number), _name(method), str(method["id"])) for number, method in enumerate(methods, 1))
    chosen = await chat.screen.ask_key(KeyQuestion(why, choices))
    return None if chosen is None else next(method for method in methods if str(method["id"]) == chosen)


def _named(methods: Sequence[dict[str, Any]], wanted: str) -> dict[str, Any]:
    for method in methods:
        if wanted.lower() in (str(method["id"]).lower(), _name(method).lower()):
            return method
    known = ", ".join(f"/login {method['id']} ({_name(method)})" for method in methods)
    raise UsageError(f"there is no way to log in called {wanted}; there are: {known}")


def _name(method: Mapping[str, Any]) -> str:
    return str(method.get("name") or method["id"])


async def _use(chat: Conversation, method: dict[str, Any]) -> None:
    if method.get("type") == "env_var":
        raise UsageError(
            f"set {_variables(method) or 'the variables it wants'} in the environment and start the chat again"
        )
    if _needs_terminal(method):
        await _in_terminal(chat, method)
        return
    chat.show_activity("logging in")
    try:
        await chat.connection.authenticate(str(method["id"]))
    finally:
        chat.show_activity("")


async def _in_terminal(chat: Conversation, method: dict[str, Any]) -> None:
    """Run the agent's own program to log in, in this terminal."""
    meta = _terminal_meta(method)
    if meta is not None:
        command = (str(meta.get("command")), *map(str, _list(meta.get("args"))))
        added: Any = meta.get("env")
    else:
        command = (*chat.settings.agent_command, *map(str, _list(method.get("args"))))
        added = method.get("env")
    variables = {
        str(name): str(value)
        for name, value in cast("dict[Any, Any]", added if isinstance(added, dict) else {}).items()
    }
    end = await chat.screen.run_elsewhere(command, chat.settings.process_cwd, {**os.environ, **variables})
    if end is None:
        raise UsageError(f"run this in a terminal, then start the chat again: {_shown(command)}")
    if end.status != 0:
        said = end.last_line.rpartition("holdfast: ")[2]  # a question that it asked may stand before it
        said = said.removeprefix("the login failed: ")
        raise UsageError(said or f"{_shown(command)} exited with status {end.status}")


def _terminal_meta(method: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the command that an agent names for editors that knew no logins in terminals yet."""
    match method.get("_meta"):
        case {"terminal-auth": {"command": str()} as meta}:
            return cast("dict[str, Any]", meta)
        case _:
            return None


def _variables(method: Mapping[str, Any]) -> str:
    return ", ".join(str(_member(variable, "name")) for variable in _list(method.get("vars")))


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _member(value: Any, name: str) -> Any:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
