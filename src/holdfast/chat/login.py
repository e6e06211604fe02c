"""Logging in to an agent: the user chooses a way, and is told why it failed where it does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

from holdfast.chat.screen import Choice, KeyQuestion
from holdfast.errors import RemoteError, UsageError
from holdfast.view.blocks import Note

if TYPE_CHECKING:
    from holdfast.chat.conversation import Conversation

MOST_METHODS = 9


def error_text(error: RemoteError) -> str:
    """Return what an agent says is wrong, with its reason."""
    return f"{error.message}: {error.reason}" if error.reason else error.message


async def log_in(chat: Conversation, why: str) -> bool:
    """Let the user log in, again where it fails; return False if the user gives up."""
    while True:
        methods = chat.connection.auth_methods[:MOST_METHODS]
        if not methods:
            raise UsageError("this agent offers no way to log in")
        choices = tuple(
            Choice(str(number), str(method.get("name") or method["id"]), str(method["id"]))
            for number, method in enumerate(methods, 1)
        )
        chosen = await chat.screen.ask_key(KeyQuestion(why, choices))
        if chosen is None:
            return False
        method = next(method for method in methods if str(method["id"]) == chosen)
        try:
            await _use(chat, method)
        except (RemoteError, UsageError, OSError) as e:
            reason = error_text(e) if isinstance(e, RemoteError) else str(e)
            chat.screen.show(Note(f"You are not logged in: {reason}", tone="error"))
            why = "Log in another way, or once more? Escape gives up."
        else:
            chat.screen.show(Note(f"Logged in: {method.get('name') or chosen}", tone="good"))
            return True


async def _use(chat: Conversation, method: dict[str, Any]) -> None:
    if method.get("type") == "env_var":
        names = ", ".join(str(_member(variable, "name")) for variable in _list(method.get("vars")))
        raise UsageError(f"set {names or 'the variables it wants'} in the environment and start the chat again")
    if method.get("type") == "terminal" or _terminal_meta(method) is not None:
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
    status = await chat.screen.run_elsewhere(command, chat.settings.cwd, {**os.environ, **variables})
    if status is None:
        raise UsageError(f"run this in a terminal, then start the chat again: {' '.join(command)}")
    if status != 0:
        raise UsageError(f"{command[0]} exited with status {status}")


def _terminal_meta(method: dict[str, Any]) -> dict[str, Any] | None:
    """Return the command that an agent names for editors that knew no logins in terminals yet."""
    match method.get("_meta"):
        case {"terminal-auth": {"command": str()} as meta}:
            return cast("dict[str, Any]", meta)
        case _:
            return None


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _member(value: Any, name: str) -> Any:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
