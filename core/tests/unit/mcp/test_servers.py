from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import InvalidParams
from holdfast.mcp.servers import MAX_SERVERS, HttpServer, SseServer, StdioServer, read_servers

V1 = frozenset({"stdio", "http", "sse"})
V2 = ("stdio", "http")

STDIO: dict[str, Any] = {
    "name": "files", "command": "/bin/files", "args": ["--root", "/"], "env": [{"name": "KEY", "value": "hunter2"}],
}  # fmt: skip
HTTP: dict[str, Any] = {
    "name": "web", "type": "http", "url": "https://host.test/mcp",
    "headers": [{"name": "Authorization", "value": "Bearer hunter2"}],
}  # fmt: skip


@pytest.mark.requirement("E1")
def test_version_1_names_stdio_servers_without_a_type() -> None:
    servers = read_servers([STDIO, {**STDIO, "name": "typed", "type": "stdio"}, HTTP], V1, typed=False)
    assert servers[0] == StdioServer("files", "/bin/files", ("--root", "/"), (("KEY", "hunter2"),))
    assert isinstance(servers[1], StdioServer)
    assert servers[2] == HttpServer("web", "https://host.test/mcp", (("Authorization", "Bearer hunter2"),))
    assert isinstance(read_servers([{**HTTP, "type": "sse"}], V1, typed=False)[0], SseServer)


@pytest.mark.requirement("E1", "E2")
def test_version_2_names_the_type_and_may_leave_out_the_rest() -> None:
    (server,) = read_servers([{"type": "stdio", "name": "a", "command": "a"}], V2, typed=True)
    assert server == StdioServer("a", "a")
    (server,) = read_servers([{"type": "http", "name": "a", "url": "http://a.test", "headers": None}], V2, typed=True)
    assert server == HttpServer("a", "http://a.test")
    with pytest.raises(InvalidParams, match="must have a type, one of: http, stdio"):
        read_servers([STDIO], V2, typed=True)


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("kind", ["sse", "acp", "_custom", "", "websocket"])
def test_a_type_that_was_not_advertised_is_refused_by_name(kind: str) -> None:
    with pytest.raises(InvalidParams, match=f"of type '{kind}'; it connects: http, stdio"):
        read_servers([{**HTTP, "type": kind}], V2, typed=True)


@pytest.mark.requirement("E1", "P10")
@pytest.mark.parametrize(
    "change",
    [
        {"name": None}, {"name": 5}, {"name": ""}, {"command": None}, {"command": ""}, {"command": "a\0b"},
        {"args": "hunter2"}, {"args": [1]}, {"args": ["\0"]}, {"env": {"KEY": "hunter2"}},
        {"env": [{"name": "hunter2"}]}, {"env": [{"name": "A=B", "value": "hunter2"}]},
        {"env": [{"name": "", "value": "hunter2"}]}, {"env": [{"name": "A", "value": "hunter2\0"}]}, {"type": 5},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_malformed_is_refused_without_a_word_of_what_it_held(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams) as caught:
        read_servers([{**STDIO, **change}], V1, typed=False)
    assert caught.value.code == -32602
    assert "hunter2" not in caught.value.message


@pytest.mark.requirement("E1", "P10")
@pytest.mark.parametrize(
    "change",
    [
        {"url": "ftp://hunter2"}, {"url": "hunter2"}, {"url": "http://"}, {"url": "http://[hunter2"}, {"url": 1},
        {"headers": [{"name": "a b", "value": "hunter2"}]}, {"headers": [{"name": "a", "value": "hunter2\r\nb: c"}]},
        {"headers": [{"name": "a", "value": "hunter2 é"}]},
    ],
    ids=str,
)  # fmt: skip
def test_addresses_and_headers_are_checked(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams) as caught:
        read_servers([{**HTTP, **change}], V1, typed=False)
    assert "hunter2" not in caught.value.message


def test_servers_of_one_name_are_numbered() -> None:
    named = [{**STDIO, "name": it} for it in ("a", "a", "b", "a", "a-2")]
    assert [it.name for it in read_servers(named, V1, typed=False)] == ["a", "a-2", "b", "a-3", "a-2-2"]


def test_there_is_an_end_to_servers() -> None:
    with pytest.raises(InvalidParams, match="at most"):
        read_servers([STDIO] * (MAX_SERVERS + 1), V1, typed=False)


@pytest.mark.requirement("P10")
def test_whoever_prints_a_server_sees_its_name_and_nothing_else() -> None:
    for server in read_servers([STDIO, HTTP, {**HTTP, "type": "sse"}], V1, typed=False):
        assert repr(server) == f"{type(server).__name__}({server.name!r})"
        assert f"{server}" == repr(server)
