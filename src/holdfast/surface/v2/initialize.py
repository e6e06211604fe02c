"""What an agent tells a version 2 client about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from holdfast.model import Update

VERSION = 2

MCP_KINDS = ("stdio", "http")
"""The kinds of MCP servers that are advertised and connected (E1)."""


def result(
    *,
    name: str,
    title: str | None,
    version: str,
    accepts: Collection[str],
    auth: Iterable[tuple[str, str, str | None]],
) -> Update:
    """Answer `initialize`. A marker of support is an empty object (A8); the early draft's are among them (B9)."""
    info: Update = {"name": name, "version": version}
    if title is not None:
        info["title"] = title
    prompt = {theirs: _marker() for ours, theirs in _PROMPT.items() if ours in accepts}
    supported = (
        "list",
        "load",
        "resume",
        "close",
        "delete",
        "fork",
        "archive",
        "status",
        "title",
        "additionalDirectories",
    )
    session = {"prompt": prompt, "mcp": {it: _marker() for it in MCP_KINDS}, **{it: _marker() for it in supported}}
    return {
        "protocolVersion": VERSION,
        "info": info,
        "capabilities": {"session": session},
        "authMethods": [_method(*it) for it in auth],
    }


_PROMPT = {"image": "image", "audio": "audio", "resource": "embeddedContext"}


def _marker() -> dict[str, Any]:
    return {}


def _method(id_: str, name: str, description: str | None) -> Update:
    method: Update = {"type": "agent", "methodId": id_, "name": name}
    return method if description is None else {**method, "description": description}
