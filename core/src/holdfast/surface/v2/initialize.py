"""What an agent tells a version 2 client about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.surface.description import FORK

if TYPE_CHECKING:
    from holdfast.model import Update
    from holdfast.surface.description import Description

VERSION = 2

REPLAY_COMPLETE = "replayComplete"
"""The capability of clients that want to be told when they have seen the whole past (a draft)."""

MCP_KINDS = ("stdio", "http")
"""The kinds of MCP servers that are advertised and connected (E1)."""


def result(agent: Description) -> Update:
    """Return the answer to `initialize`. A marker of support is an empty object (A8, B9)."""
    info: Update = {"name": agent.name, "version": agent.version}
    if agent.title is not None:
        info["title"] = agent.title
    prompt = {theirs: _marker() for ours, theirs in _PROMPT.items() if ours in agent.accepts}
    mcp = {kind: _marker() for kind in MCP_KINDS if kind in agent.mcp_kinds}
    supported = ["list", "load", "resume", "close", "delete", "fork", "archive", "status", "title"]
    if agent.additional_directories:
        supported.append("additionalDirectories")
    abilities = {ability: _marker() for ability in supported}
    session = {"prompt": prompt, "mcp": mcp, **abilities, **FORK, **_system_prompt(agent.accepts)}
    methods = [_method(*method) for method in agent.auth_methods]
    capabilities: Update = {"session": session}
    if methods:
        capabilities["auth"] = {"status": _marker()}
    if agent.providers:
        capabilities["providers"] = _marker()
    answer: Update = {
        "protocolVersion": VERSION,
        "info": info,
        "capabilities": capabilities,
        "authMethods": methods,
    }
    return answer if agent.meta is None else {**answer, "_meta": agent.meta}


_PROMPT = {"image": "image", "audio": "audio", "resource": "embeddedContext"}


def _system_prompt(accepts: frozenset[str]) -> Update:
    """Return whether a client may give instructions to the agent's model, and whether in the place of its own."""
    if "system_prompt" not in accepts:
        return {}
    override = "system_prompt_override" in accepts
    return {"systemPrompt": {"mode": {"override": _marker()}} if override else _marker()}


def _marker() -> dict[str, Any]:
    return {}


def _method(
    id_: str, name: str, description: str | None, arguments: tuple[str, ...] | None, more: Update | None
) -> Update:
    method: Update = {"type": "agent", **(more or {}), "methodId": id_, "name": name}
    if isinstance(env := method.get("env"), dict):  # as an agent of version 1 has it
        method["env"] = [{"name": variable, "value": value} for variable, value in cast("Update", env).items()]
    if arguments is not None:
        method |= {"type": "terminal", "args": list(arguments)}
    return method if description is None else {**method, "description": description}
