"""MCP servers as a client describes them: parsed, checked, and printed without their secrets (E1, P10). Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias
from urllib.parse import urlsplit

import msgspec

from holdfast.errors import InvalidParams
from holdfast.mcp.secrets import secrets_in_address, secrets_in_arguments, secrets_in_environment, secrets_in_headers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

Pairs: TypeAlias = tuple[tuple[str, str], ...]

MAX_SERVERS = 64
"""Nobody has more. Each is a process or a connection."""

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
"""Other characters are refused here. Later they would be escaped, and not be found in texts to be redacted."""


class _Named(msgspec.Struct, frozen=True):
    """A server that is printed as its name alone."""

    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name)]


class StdioServer(_Named, frozen=True):
    """A server that is a program, spoken to over its stdin and stdout."""

    kind: ClassVar[str] = "stdio"

    command: str
    args: tuple[str, ...] = ()
    env: Pairs = ()

    def __repr__(self) -> str:
        return _Named.__repr__(self)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no log and no message may hold."""
        return (*secrets_in_environment(self.env), *secrets_in_arguments(self.args))


class HttpServer(_Named, frozen=True):
    """A server that is reached over streamable HTTP."""

    kind: ClassVar[str] = "http"

    url: str
    headers: Pairs = ()

    def __repr__(self) -> str:
        return _Named.__repr__(self)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no log and no message may hold."""
        return (*secrets_in_headers(self.headers), *secrets_in_address(self.url))


class SseServer(_Named, frozen=True):
    """A server that is reached over HTTP and server-sent events, as before streamable HTTP. Version 1 only."""

    kind: ClassVar[str] = "sse"

    url: str
    headers: Pairs = ()

    def __repr__(self) -> str:
        return _Named.__repr__(self)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no log and no message may hold."""
        return (*secrets_in_headers(self.headers), *secrets_in_address(self.url))


Server: TypeAlias = StdioServer | HttpServer | SseServer


def read_servers(wire: Sequence[dict[str, Any]], allowed: Collection[str], *, typed: bool) -> tuple[Server, ...]:
    """Parse the servers of a request; `allowed` are the kinds that were advertised to the client.

    With `typed`, a server without a type is refused; otherwise it is a stdio server. Raises `InvalidParams`, whose
    message names servers and members and never quotes a value.
    """
    if len(wire) > MAX_SERVERS:
        raise InvalidParams(f"A session may have at most {MAX_SERVERS} MCP servers")
    return unique(read_server(entry, n, allowed, typed=typed) for n, entry in enumerate(wire))


def check_kinds(wire: Sequence[dict[str, Any]], allowed: Collection[str]) -> None:
    """Raise `InvalidParams` if a server is of a kind that was not advertised; one without a type is a stdio server."""
    for n, entry in enumerate(wire):
        _checked_kind(entry, n, allowed, typed=False)


def read_server(wire: dict[str, Any], at: int, allowed: Collection[str], *, typed: bool) -> Server:
    """Parse one server; `at` is its index in the request, for messages."""
    kind, what = _checked_kind(wire, at, allowed, typed=typed)
    try:
        server = msgspec.convert(wire, _SHAPES[kind]).server()
    except msgspec.ValidationError as e:
        raise InvalidParams(f"{what}: {e}") from None
    if not server.name:
        raise InvalidParams(f"{what} must have a name")
    if isinstance(server, StdioServer):
        _check_command(server, what)
    else:
        _check_address(server, what)
    return server


def _checked_kind(wire: dict[str, Any], at: int, allowed: Collection[str], *, typed: bool) -> tuple[str, str]:
    """Return the kind of a server, and what messages call it."""
    named = wire.get("name")
    what = f"MCP server {named[:100]!r}" if isinstance(named, str) and named else f"mcpServers[{at}]"
    kind = wire.get("type", None if typed else "stdio")
    known = ", ".join(sorted(allowed)) or "none"
    if not isinstance(kind, str):
        raise InvalidParams(f"{what} must have a type, one of: {known}")
    if kind not in allowed:
        raise InvalidParams(
            f"{what}: this agent does not connect MCP servers of type {kind[:100]!r}; it connects: {known}"
        )
    return kind, what


def described(server: Server) -> dict[str, Any]:
    """Return a server as a client of ours names it, with its type and its secrets: for the wire, never for a log."""
    if isinstance(server, StdioServer):
        return {
            "type": server.kind,
            "name": server.name,
            "command": server.command,
            "args": list(server.args),
            "env": [{"name": name, "value": value} for name, value in server.env],
        }
    headers = [{"name": name, "value": value} for name, value in server.headers]
    return {"type": server.kind, "name": server.name, "url": server.url, "headers": headers}


def unique(servers: Iterable[Server]) -> tuple[Server, ...]:
    """Return the servers with unique names: a number is added to a name that an earlier server has."""
    kept: dict[str, Server] = {}
    for server in servers:
        name, n = server.name, 1
        while name in kept:
            n += 1
            name = f"{server.name}-{n}"
        kept[name] = server if n == 1 else msgspec.structs.replace(server, name=name)
    return tuple(kept.values())


class _Pair(msgspec.Struct):
    name: str
    value: str


class _Stdio(msgspec.Struct):
    name: str
    command: str
    args: list[str] | None = None
    env: list[_Pair] | None = None

    def server(self) -> Server:
        return StdioServer(self.name, self.command, tuple(self.args or ()), _pairs(self.env))


class _Http(msgspec.Struct):
    name: str
    url: str
    headers: list[_Pair] | None = None

    def server(self) -> Server:
        return HttpServer(self.name, self.url, _pairs(self.headers))


class _Sse(msgspec.Struct):
    name: str
    url: str
    headers: list[_Pair] | None = None

    def server(self) -> Server:
        return SseServer(self.name, self.url, _pairs(self.headers))


_SHAPES: dict[str, type[_Stdio | _Http | _Sse]] = {"stdio": _Stdio, "http": _Http, "sse": _Sse}


def _pairs(wire: list[_Pair] | None) -> Pairs:
    return tuple((pair.name, pair.value) for pair in wire or ())


def _check_command(server: StdioServer, what: str) -> None:
    if not server.command or any("\0" in text for text in (server.command, *server.args)):
        raise InvalidParams(f"{what}: its command and arguments must be text that a system takes")
    for name, value in server.env:
        if not name or "=" in name or "\0" in name + value:
            raise InvalidParams(f"{what}: env has a name or a value that no system takes")


def _check_address(server: HttpServer | SseServer, what: str) -> None:
    try:
        parts = urlsplit(server.url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidParams(f"{what}: its url must begin with http:// or https:// and name a host")
    for name, value in server.headers:
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise InvalidParams(f"{what}: headers has a name or a value that HTTP does not allow")
