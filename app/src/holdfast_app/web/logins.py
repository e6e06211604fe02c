"""Logging in to an agent from the page: which ways it offers, and what to do where the page itself cannot.

A page has neither a terminal nor the environment of the agent's process. A way that needs one of them is shown with
what the user has to do instead.
"""

from __future__ import annotations

from shlex import join
from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import AuthRequired, RemoteError
from holdfast_app.web.requests import PageError

if TYPE_CHECKING:
    from holdfast.model import AuthMethod
    from holdfast_app.web.agents import PageAgent

IN_A_TERMINAL = (
    "It offers no way to log in from here. Log in with its own command or with “holdfast chat” in a terminal, "
    "then try again."
)

RUN_THIS = "Run this in a terminal on the machine of the agent, then try again:"


def wants_login(error: Exception) -> bool:
    """Return whether something was refused because the user has to log in first."""
    return isinstance(error, AuthRequired) or (isinstance(error, RemoteError) and error.code == AuthRequired.code)


async def login_refusal(agent: PageAgent, principal: str, error: Exception) -> PageError:
    """Return what the page is told instead: why, and the ways to log in."""
    said = getattr(error, "message", "") or str(error)
    return PageError(403, said, await ways_to_log_in(agent, principal))


async def ways_to_log_in(agent: PageAgent, principal: str) -> dict[str, object]:
    """Return the ways to log in to an agent, for the page's scripts."""
    description = await agent.describe(principal)
    ways = [_way(method, agent.command) for method in description.auth_methods]
    about = {"agent": agent.name, "title": description.title or description.name, "ways": ways}
    return {"login": {**about, "otherwise": "" if ways else IN_A_TERMINAL}}


def _way(method: AuthMethod, agent_command: tuple[str, ...]) -> dict[str, str]:
    """Return a way to log in; where the page cannot, `instead` says what to do, and `command` what to run, if known."""
    way = {"id": method.id, "name": method.name, "description": method.description or ""}
    instead, command = _instead(method, agent_command)
    return {**way, "instead": instead, "command": command}


def _instead(method: AuthMethod, agent_command: tuple[str, ...]) -> tuple[str, str]:
    more = method.more or {}
    match more:
        case {"type": "env_var"}:
            names = [str(name) for name in _named(more.get("vars"))]
            wanted = ", ".join(names) or "the variables it wants"
            return f"Set {wanted} in the environment, and start the page again.", ""
        case {"_meta": {"terminal-auth": {"command": str(command)} as meta}}:
            return RUN_THIS, join([command, *_words(cast("dict[str, Any]", meta).get("args"))])
        case {"type": "terminal"}:
            return _in_terminal(agent_command, _words(more.get("args")))
        case _:
            arguments = method.arguments
            return ("", "") if arguments is None else _in_terminal(agent_command, list(arguments))


def _in_terminal(agent_command: tuple[str, ...], arguments: list[str]) -> tuple[str, str]:
    if agent_command:
        return RUN_THIS, join([*agent_command, *arguments])
    added = f" with {join(arguments)} behind it" if arguments else ""
    return f"Run the agent's command in a terminal{added}, then try again.", ""


def _words(arguments: object) -> list[str]:
    return list(map(str, cast("list[Any]", arguments) if isinstance(arguments, list) else ()))


def _named(variables: object) -> list[object]:
    listed = cast("list[Any]", variables) if isinstance(variables, list) else []
    return [cast("dict[str, Any]", each).get("name", "") if isinstance(each, dict) else each for each in listed]
