"""What an agent tells a version 1 client about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.surface.description import FORK

if TYPE_CHECKING:
    from holdfast.model import Update
    from holdfast.surface.description import Description

VERSION = 1

MCP_KINDS = frozenset({"stdio", "http", "sse"})
"""The kinds of MCP servers that are advertised and connected; everybody may send the first (E1)."""


def result(agent: Description) -> Update:
    """Return the answer to `initialize`."""
    info: Update = {"name": agent.name, "version": agent.version}
    if agent.title is not None:
        info["title"] = agent.title
    methods = [_method(*method) for method in agent.auth_methods]
    accepts, kinds = agent.accepts, MCP_KINDS & agent.mcp_kinds
    supported = ["list", "resume", "close", "delete", "fork", "archive", "status", "title"]
    if agent.additional_directories:
        supported.append("additionalDirectories")
    capabilities: Update = {
        "loadSession": True,
        "promptCapabilities": {
            "image": "image" in accepts,
            "audio": "audio" in accepts,
            "embeddedContext": "resource" in accepts,
        },
        "mcpCapabilities": {"http": "http" in kinds, "sse": "sse" in kinds},
        "sessionCapabilities": {ability: _marker() for ability in supported} | FORK | _system_prompt(accepts),
    }
    if methods:
        capabilities["auth"] = {"logout": _marker(), "status": _marker()}
    if agent.providers:
        capabilities["providers"] = _marker()
    answer = {"protocolVersion": VERSION, "agentInfo": info, "agentCapabilities": capabilities, "authMethods": methods}
    return answer if agent.meta is None else {**answer, "_meta": agent.meta}


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
    method: Update = {**(more or {}), "id": id_, "name": name}
    if arguments is not None:
        method |= {"type": "terminal", "args": list(arguments)}
    return method if description is None else {**method, "description": description}
