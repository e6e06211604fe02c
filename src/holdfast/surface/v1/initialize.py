"""What an agent tells a version 1 client about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from holdfast.model import Update

VERSION = 1

MCP_KINDS = frozenset({"stdio", "http", "sse"})
"""The kinds of MCP servers that are advertised and connected; everybody may send the first (E1)."""


def result(
    *,
    name: str,
    title: str | None,
    version: str,
    accepts: Collection[str],
    auth: Iterable[tuple[str, str, str | None]],
) -> Update:
    """Answer `initialize`."""
    info: Update = {"name": name, "version": version}
    if title is not None:
        info["title"] = title
    methods = [_method(*it) for it in auth]
    supported = ("list", "resume", "close", "delete", "fork", "archive", "status", "title", "additionalDirectories")
    capabilities: Update = {
        "loadSession": True,
        "promptCapabilities": {
            "image": "image" in accepts,
            "audio": "audio" in accepts,
            "embeddedContext": "resource" in accepts,
        },
        "mcpCapabilities": {"http": "http" in MCP_KINDS, "sse": "sse" in MCP_KINDS},
        "sessionCapabilities": {it: _marker() for it in supported},
    }
    if methods:
        capabilities["auth"] = {"logout": _marker()}
    return {"protocolVersion": VERSION, "agentInfo": info, "agentCapabilities": capabilities, "authMethods": methods}


def _marker() -> dict[str, Any]:
    return {}


def _method(id_: str, name: str, description: str | None) -> Update:
    method: Update = {"id": id_, "name": name}
    return method if description is None else {**method, "description": description}
