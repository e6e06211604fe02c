"""The file in which other tools keep their MCP servers, `{"mcpServers": {name: …}}`, read for `--mcp-config`."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from holdfast.errors import InvalidParams, UsageError
from holdfast.mcp.servers import read_server

if TYPE_CHECKING:
    from holdfast.mcp.servers import Server

KINDS = frozenset({"stdio", "http", "sse"})

_ALIASES = {"streamable-http": "http", "streamable_http": "http", "streamableHttp": "http"}


def read_config(file: str) -> tuple[Server, ...]:
    """Return the servers of a file. Raise `UsageError` that names the server with the mistake."""
    try:
        whole: object = msgspec.json.decode(Path(file).read_bytes().removeprefix(BOM_UTF8))
    except OSError as e:
        raise UsageError(f"{file} cannot be read: {e.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise UsageError(
            f"{file} is not JSON: {e if isinstance(e, msgspec.DecodeError) else 'it is not UTF-8'}"
        ) from None
    named: object = cast("dict[str, object]", whole).get("mcpServers") if isinstance(whole, dict) else None
    if not isinstance(named, dict):
        raise UsageError(f'{file} must hold an object like {{"mcpServers": {{"name": {{"command": "…"}}}}}}')
    try:
        entries = cast("dict[str, Any]", named).items()
        return tuple(_read(name, entry, n) for n, (name, entry) in enumerate(entries) if not _is_disabled(entry))
    except InvalidParams as e:
        raise UsageError(f"{file}: {e.message}") from None


def _is_disabled(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    members = cast("dict[str, Any]", entry)
    return members.get("disabled") is True or members.get("enabled") is False


def _read(name: str, entry: Any, at: int) -> Server:
    if not isinstance(entry, dict):
        raise InvalidParams(f"MCP server {name!r} must be an object")
    members = cast("dict[str, Any]", entry)
    kind = members.get("type") or ("http" if "url" in members else "stdio")
    wire = {**members, "name": name, "type": _ALIASES.get(kind, kind) if isinstance(kind, str) else kind}
    for member in ("env", "headers"):
        if isinstance(members.get(member), dict):
            wire[member] = [{"name": key, "value": value} for key, value in members[member].items()]
    return read_server(wire, at, KINDS, typed=True)
