"""MCP servers as a client names them: read, checked, and silent about their secrets (E1, P10). Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias
from urllib.parse import urlsplit

import msgspec

from holdfast.errors import InvalidParams

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

Pairs: TypeAlias = tuple[tuple[str, str], ...]

MAX_SERVERS = 64
"""More than anybody has; each is a process or a connection."""

HIDDEN = "[hidden]"

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
"""What is not plain is refused here: further on it would be quoted, in a form in which it is not found again."""


class _Silent(msgspec.Struct, frozen=True):
    """A server that shows its name and nothing else, whoever prints it."""

    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name)]


class StdioServer(_Silent, frozen=True):
    """A program to start and to talk to over its stdin and stdout."""

    kind: ClassVar = "stdio"

    command: str
    args: tuple[str, ...] = ()
    env: Pairs = ()

    __repr__ = _Silent.__repr__

    @property
    def secrets(self) -> tuple[str, ...]:
        """What nobody may be shown."""
        return tuple(value for _, value in self.env)


class HttpServer(_Silent, frozen=True):
    """A server that is reached over streamable HTTP."""

    kind: ClassVar = "http"

    url: str
    headers: Pairs = ()

    __repr__ = _Silent.__repr__

    @property
    def secrets(self) -> tuple[str, ...]:
        """What nobody may be shown."""
        return _secrets_of(self.url, self.headers)


class SseServer(_Silent, frozen=True):
    """A server that is reached over HTTP as it was before: events one way, posts the other. Version 1 only."""

    kind: ClassVar = "sse"

    url: str
    headers: Pairs = ()

    __repr__ = _Silent.__repr__

    @property
    def secrets(self) -> tuple[str, ...]:
        """What nobody may be shown."""
        return _secrets_of(self.url, self.headers)


Server: TypeAlias = StdioServer | HttpServer | SseServer


def read_servers(wire: Sequence[dict[str, Any]], allowed: Collection[str], *, typed: bool) -> tuple[Server, ...]:
    """Read what a client sends; `allowed` are the kinds that were advertised to it.

    Where a version's servers carry a type (`typed`), one without is refused; where not, none means stdio. The
    messages name servers and members, and never quote a value.
    """
    if len(wire) > MAX_SERVERS:
        raise InvalidParams(f"A session may have at most {MAX_SERVERS} MCP servers")
    return unique(read_server(it, n, allowed, typed=typed) for n, it in enumerate(wire))


def read_server(wire: dict[str, Any], at: int, allowed: Collection[str], *, typed: bool) -> Server:
    """Read one of them."""
    named = wire.get("name")
    what = f"MCP server {named[:100]!r}" if isinstance(named, str) and named else f"mcpServers[{at}]"
    kind = wire.get("type", None if typed else "stdio")
    if not isinstance(kind, str):
        raise InvalidParams(f"{what} must have a type, one of: {', '.join(sorted(allowed))}")
    if kind not in allowed:
        raise InvalidParams(
            f"{what}: this agent does not connect MCP servers of type {kind[:100]!r}; "
            f"it connects: {', '.join(sorted(allowed))}"
        )
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


def unique(servers: Iterable[Server]) -> tuple[Server, ...]:
    """Give numbers to the servers whose name another before them has."""
    kept: dict[str, Server] = {}
    for server in servers:
        name, n = server.name, 1
        while name in kept:
            n += 1
            name = f"{server.name}-{n}"
        kept[name] = server if n == 1 else msgspec.structs.replace(server, name=name)
    return tuple(kept.values())


def redacted(text: str, secrets: Collection[str]) -> str:
    """Take secrets out of a text; short ones only where they stand alone, or every text would be full of holes."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        for form in dict.fromkeys((secret, json.dumps(secret)[1:-1], repr(secret)[1:-1])):
            if len(form) >= 4:
                text = text.replace(form, HIDDEN)
            elif form.strip():
                text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", HIDDEN, text)
    return text


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
    return tuple((it.name, it.value) for it in wire or ())


def _secrets_of(url: str, headers: Pairs) -> tuple[str, ...]:
    """Find the values of headers, what follows the scheme in one (`Bearer …`), and what an address may carry."""
    parts = urlsplit(url)
    words = [word for _, value in headers for word in (value, *value.split()[1:])]
    return tuple(it for it in (*words, parts.query, parts.password, parts.username) if it)


def _check_command(server: StdioServer, what: str) -> None:
    if not server.command or any("\0" in it for it in (server.command, *server.args)):
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
