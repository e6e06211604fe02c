"""Servers elsewhere: what is sent to them with every request, and that nobody else sees it (E1, E6, P10)."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import pytest

from core.tests.support.mcp import QUICK, toolbox
from core.tests.support.mcp_web import web
from holdfast.errors import McpError, ServerUnavailable, ToolFailed
from holdfast.mcp import HttpServer, SseServer
from holdfast.mcp.pacing import ReadBudget

if TYPE_CHECKING:
    from holdfast.mcp import Progress
    from holdfast.mcp.servers import Pairs

SECRET = "hunter2-and-more"

HEADERS: Pairs = (("Authorization", f"Bearer {SECRET}"), ("X-Team", "a, b"), ("x-empty", ""))

KINDS = pytest.mark.parametrize(("kind", "path"), [(HttpServer, "mcp"), (SseServer, "sse")])


@pytest.mark.requirement("E1", "E6")
@KINDS
async def test_every_request_to_a_server_has_its_headers(kind: type[HttpServer | SseServer], path: str) -> None:
    with web() as server:
        async with toolbox(kind("web", server.url(path), HEADERS)) as box:
            (status,) = await box.ready()
            assert status.state == "ready", status.reason
            assert [it.name for it in await box.tools()] == ["echo", "tell", "much", "steps"]
            assert (await box.call("web", "echo", {"text": "hi"})).text == "hi"
        assert len(server.seen) >= 4  # the handshake in two, the list, the call
        assert {it.method for it in server.seen} >= {"GET", "POST"}
        for it in server.seen:
            assert {name: it.headers.get(name.lower()) for name, _ in HEADERS} == dict(HEADERS), it


@pytest.mark.requirement("E6")
@KINDS
async def test_two_servers_at_one_address_each_get_their_own_headers(
    kind: type[HttpServer | SseServer], path: str
) -> None:
    with web() as server:
        named = [kind(it, server.url(f"{path}?{it}"), (("X-Name", it),)) for it in ("one", "two")]
        async with toolbox(*named) as box:
            assert [it.state for it in await box.ready()] == ["ready", "ready"]
            await box.tools()
        for it in server.seen:
            if "?one" in it.path or "?two" in it.path:
                assert it.path.endswith(it.headers["x-name"])
        assert {it.headers["x-name"] for it in server.seen} == {"one", "two"}


@pytest.mark.requirement("E3", "P10")
@KINDS
async def test_a_server_that_blabs_is_not_quoted(
    kind: type[HttpServer | SseServer], path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with web() as server:
        async with toolbox(kind("web", server.url(f"{path}?key={SECRET}"), HEADERS)) as box:
            with pytest.raises(ToolFailed, match=r"I was told \[hidden\]") as caught:
                await box.call("web", "tell")
            assert SECRET not in str(caught.value)
    assert SECRET not in caplog.text


@pytest.mark.requirement("E3", "P10")
@KINDS
async def test_a_server_that_refuses_us_fails_and_its_secret_is_not_said(
    kind: type[HttpServer | SseServer], path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with web(refuses=True) as server:
        async with toolbox(kind("web", server.url(f"{path}?key={SECRET}"), HEADERS)) as box:
            (status,) = await box.ready()
            assert status.state == "failed"
            assert "401 Unauthorized" in (status.reason or "")
            assert SECRET not in (status.reason or "")
            with pytest.raises(ServerUnavailable, match="401 Unauthorized") as caught:
                await box.call("web", "echo")
            assert SECRET not in str(caught.value)
        assert server.seen
    assert "MCP server web failed" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.requirement("E4", "P10")
async def test_a_key_that_fits_no_longer_is_said_to_whoever_calls() -> None:
    with web() as server:
        async with toolbox(HttpServer("web", server.url("mcp"), HEADERS)) as box:
            assert (await box.call("web", "echo", {"text": "hi"})).text == "hi"
            server.refuses = True
            with pytest.raises(ToolFailed, match="the server answered: 401 Unauthorized"):
                await box.call("web", "echo")
            server.refuses = False
            assert (await box.call("web", "echo", {"text": "again"})).text == "again"


@pytest.mark.requirement("E4")
@pytest.mark.parametrize("how", ["json", "unmeasured", "event"])
async def test_a_long_answer_is_heard_whole(how: str) -> None:
    with web() as server:
        async with toolbox(HttpServer("web", server.url("mcp"))) as box:
            size = 12 << 20
            assert len((await box.call("web", "much", {"size": size, "how": how})).text) == size


@pytest.mark.requirement("E3", "P7")
@pytest.mark.parametrize("how", ["json", "unmeasured", "event", "packed"])
async def test_an_answer_that_is_too_long_fails_the_call_and_is_not_held(how: str) -> None:
    with web() as server:
        async with toolbox(HttpServer("web", server.url("mcp")), limits=QUICK._replace(message_bytes=1 << 20)) as box:
            with pytest.raises(McpError, match=r"1048576 byte|Failed to parse"):
                await box.call("web", "much", {"size": 3 << 20, "how": how})
            assert (await box.call("web", "echo", {"text": "again"})).text == "again"


@pytest.mark.requirement("E3", "P7")
async def test_an_event_that_is_too_long_for_sse_ends_the_connection_and_the_next_call_has_another() -> None:
    with web() as server:
        async with toolbox(SseServer("web", server.url("sse"))) as box:
            assert len((await box.call("web", "much", {"size": 1_000_000, "how": "event"})).text) == 1_000_000
            with pytest.raises(ServerUnavailable, match="1048576 byte"):
                await box.call("web", "much", {"size": 1 << 20, "how": "event"})
            assert (await box.call("web", "echo", {"text": "again"})).text == "again"


@pytest.mark.requirement("E3", "P7")
@pytest.mark.parametrize(
    "event", [b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}', b'{"jsonrpc":"2.0","id":9,"result":{}}']
)
async def test_a_server_that_says_much_unasked_is_read_slowly(event: bytes) -> None:
    count = 300
    with web() as server:
        async with toolbox(SseServer("web", server.url("sse"))) as box:
            await box.ready()
            before = time.monotonic()
            for _ in range(count):
                server.events[0].put(event)
            assert (await box.call("web", "echo", {"text": "hi"})).text == "hi"
            assert time.monotonic() - before > 0.9 * (count * ReadBudget.MESSAGE - ReadBudget.BURST) / ReadBudget.SHARE


@pytest.mark.requirement("P7", "E4")
@KINDS
async def test_of_much_progress_the_newest_is_heard(kind: type[HttpServer | SseServer], path: str) -> None:
    heard: list[float] = []

    async def hear(progress: Progress) -> None:
        heard.append(progress.done)

    count = 1_000
    with web() as server:
        async with toolbox(kind("web", server.url(path))) as box:
            result = await box.call("web", "steps", {"count": count}, on_progress=hear)
            assert result.text == "done"
            assert heard == sorted(heard)
            assert heard[-1] == count - 1
            assert 2 < len(heard) < count
            assert (await box.call("web", "echo", {"text": "hi"})).text == "hi"


@pytest.mark.requirement("E5")
async def test_who_does_not_hear_our_goodbye_is_left() -> None:
    with web() as server:
        async with toolbox(HttpServer("web", server.url("mcp"))) as box:
            assert (await box.call("web", "echo", {"text": "hi"})).text == "hi"
            server.deaf = True
        assert server.events  # we said it
