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
    """Read the servers of a file. A mistake in it is named, with the server it is about."""
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
        servers = cast("dict[str, Any]", named).items()
        return tuple(_read(name, it, n) for n, (name, it) in enumerate(servers) if not _is_off(it))
    except InvalidParams as e:
        raise UsageError(f"{file}: {e.message}") from None


def _is_off(written: Any) -> bool:
    """Whether a server is there to be switched on another time."""
    if not isinstance(written, dict):
        return False
    it = cast("dict[str, Any]", written)
    return it.get("disabled") is True or it.get("enabled") is False


def _read(name: str, written: Any, at: int) -> Server:
    if not isinstance(written, dict):
        raise InvalidParams(f"MCP server {name!r} must be an object")
    it = cast("dict[str, Any]", written)
    kind = it.get("type") or ("http" if "url" in it else "stdio")
    wire = {**it, "name": name, "type": _ALIASES.get(kind, kind) if isinstance(kind, str) else kind}
    for member in ("env", "headers"):
        if isinstance(it.get(member), dict):
            wire[member] = [{"name": key, "value": value} for key, value in it[member].items()]
    return read_server(wire, at, KINDS, typed=True)
