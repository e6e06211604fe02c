"""Nobody gets in who should not (H6, P12): tokens, names, pages of others, bodies and handshakes made to harm."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import resource
import socket
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.links import PATIENCE
from core.tests.support.remote import Remote, served
from holdfast.server.remote import Everybody, Names, RemoteLimits, SignIn, TokenFile, names_for
from holdfast.server.remote.authentication import Credential, hash_token
from holdfast.server.remote.requests import Refusal, RemoteRequest
from holdfast.server.remote.revocation import LOOK_SECONDS
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("H6")

ADA = Credential("ada", "ada")
"""With what ada is let in where tokens are names."""

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}

UPGRADE = {"upgrade": "websocket", "connection": "Upgrade", "sec_websocket_version": "13",
           "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip


async def upgrade(remote: Remote, token: str | None = "ada", **headers: str) -> int:
    """Try to open a WebSocket; return the status."""
    fields = {"host": f"127.0.0.1:{remote.port}", **UPGRADE}
    if token is not None:
        fields["authorization"] = f"Bearer {token}"
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in {**fields, **headers}.items())
    return (await remote.bytes(f"GET /acp HTTP/1.1\r\n{head}\r\n".encode(), whole=False)).status


async def test_a_token_is_needed_everywhere_and_before_any_upgrade(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.toml")
    good = tokens.add("ada")
    async with served(authenticator=tokens) as remote:
        for bad in (None, "", "hf_wrong", good[:-1], good + "x", hash_token(good), "\u00e9"):
            assert (await remote.ask("POST", body=INITIALIZE, token=bad)).status == 401
            assert (await remote.ask("GET", token=bad)).status == 401
            assert (await remote.ask("DELETE", token=bad)).status == 401
            assert (await remote.ask("GET", path="/metrics", token=bad)).status == 401
            assert (await remote.ask("GET", path="/anything", token=bad)).status == 401
            assert await upgrade(remote, bad) == 401
        assert (await remote.ask("POST", body=INITIALIZE, token=good)).status == 200
        assert await upgrade(remote, good) == 101
        assert await upgrade(remote, None, sec_websocket_protocol=f"acp.v1, bearer.{good}") == 101
        tokens.remove("ada")
        assert (await remote.ask("POST", body=INITIALIZE, token=good)).status == 401
        assert (await remote.ask("GET", path="/healthz", token=None)).status == 200


async def test_who_brings_a_token_is_told_that_it_is_not_known_and_nothing_more(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.toml")
    removed = tokens.add("ada")
    tokens.remove("ada")
    async with served(authenticator=tokens) as remote:
        for sent in (removed, "hf_wrong"):
            refused = await remote.ask("POST", body=INITIALIZE, token=sent)
            assert refused.status == 401
            assert refused.json() == {"error": "This token is not known here; was it removed?"}
        assert "Send a token" in (await remote.ask("POST", body=INITIALIZE, token=None)).json()["error"]


@pytest.mark.requirement("H6")
@pytest.mark.parametrize("way", ["websocket", "asgi websocket", "http"])
async def test_who_has_no_token_any_more_is_turned_out_and_nobody_else(way: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    tokens = TokenFile(file)
    ada, bob = tokens.add("ada"), tokens.add("bob")
    async with served(way=way, authenticator=tokens) as remote:
        client, other = await remote.client(way, token=ada), await remote.client(way, token=bob)
        assert await client.prompt(await client.new(), "hello") == "end_turn"
        written = file.read_text()
        file.write_text("this is not TOML")  # as while somebody edits it
        await asyncio.sleep(2 * LOOK_SECONDS)
        assert len(remote.server.connections) == 2
        file.write_text(written)
        TokenFile(file).remove("ada")  # as another process does
        async with asyncio.timeout(PATIENCE):
            while len(remote.server.connections) > 1:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert await other.prompt(await other.new(), "hello") == "end_turn"


async def test_only_the_hash_of_a_token_is_stored_and_others_cannot_read_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    token = TokenFile(file).add("ada")
    assert token not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    found = TokenFile(file).find(token)
    assert found is not None and found.principal == "ada" and found.id not in token


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}", ""]
)
async def test_a_server_that_is_asked_under_another_name_refuses(host: str) -> None:
    """The shape of DNS rebinding: the page's own name, and our address behind it."""
    async with served(authenticator=Everybody()) as remote:
        named = host.format(port=remote.port)
        assert (await remote.ask("POST", body=INITIALIZE, host=named)).status in (400, 403)
        assert await upgrade(remote, host=named) in (400, 403)


@pytest.mark.parametrize(
    "origin",
    [
        *("https://evil.example", "null", "http://localhost:1", "file://", "http://127.0.0.1"),
        *(
            "http://[",
            "http://[::1",
            "://",
            "http://127.0.0.1:{port}/page",
            "http://me@127.0.0.1:{port}",
            "ws://127.0.0.1:{port}",
        ),
    ],
)
async def test_pages_of_others_are_refused(origin: str) -> None:
    async with served(authenticator=Everybody()) as remote:
        origin = origin.replace("{port}", str(remote.port))
        assert (await remote.ask("POST", body=INITIALIZE, origin=origin)).status == 403
        assert await upgrade(remote, origin=origin) == 403
        own = f"http://127.0.0.1:{remote.port}"
        assert (await remote.ask("POST", body=INITIALIZE, origin=own)).status == 200
        assert await upgrade(remote, origin=own) == 101
        assert (await remote.ask("POST", body=INITIALIZE, sec_fetch_site="cross-site")).status == 403


@pytest.mark.requirement("H6")
@pytest.mark.parametrize(
    ("asked_under", "origin", "secure", "is_let_in"),
    [
        ("agents.example.org", "https://agents.example.org", True, True),
        ("agents.example.org", "http://agents.example.org", True, False),  # somebody on the way may have made that page
        ("agents.example.org", "https://agents.example.org", False, True),  # a proxy in front has TLS
        ("10.0.0.7", "https://10.0.0.7", True, True),
        ("10.0.0.7", "https://6.6.6.6", True, False),
        ("agents.example.org", "https://6.6.6.6", True, False),
        ("agents.example.org", "https://6.6.6.6:443", False, False),
    ],
)
def test_a_page_at_an_address_of_somebody_elses_is_not_the_servers_own(
    asked_under: str, origin: str, secure: bool, is_let_in: bool
) -> None:
    names = names_for("0.0.0.0", 443, ["agents.example.org"])
    request = RemoteRequest("POST", "/acp", {"host": asked_under, "origin": origin}, (), "192.0.2.1", secure)
    if is_let_in:
        names.check(request)
    else:
        with pytest.raises(Refusal, match="may not use this server"):
            names.check(request)


def test_the_names_of_a_server_are_its_own() -> None:
    here = names_for("127.0.0.1", 8180)
    assert {"127.0.0.1:8180", "localhost:8180", "[::1]:8180"} <= here.hosts
    everywhere = names_for("0.0.0.0", 443, ["agents.example.org"])
    assert "agents.example.org" in everywhere.hosts


@pytest.mark.requirement("P12")
async def test_the_connection_of_another_is_not_there() -> None:
    async with served() as remote:
        connection = (await remote.ask("POST", body=INITIALIZE)).headers["acp-connection-id"]
        listing: Any = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
        for method, body in (("POST", listing), ("GET", b""), ("DELETE", b"")):
            foreign = await remote.ask(method, body=body, token="bob", acp_connection_id=connection)
            absent = await remote.ask(method, body=body, token="bob", acp_connection_id="x" * 32)
            assert (foreign.status, foreign.body) == (absent.status, absent.body) == (404, absent.body)
        assert (await remote.ask("POST", body=listing, acp_connection_id=connection)).status == 202


async def test_a_link_signs_in_one_browser_once() -> None:
    sign_in = SignIn()
    async with served(sign_in=sign_in) as remote:
        link = f"/link/{sign_in.new_link(ADA)}"
        assert (await remote.ask("GET", path="/link/guess", token=None)).status == 403
        first = await remote.ask("GET", path=link, token=None)
        assert first.status == 303
        cookie = first.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert (await remote.ask("GET", path=link, token=None)).status == 403
        named = cookie.partition(";")[0]
        own = f"http://127.0.0.1:{remote.port}"
        signed_in: dict[str, Any] = {"token": None, "cookie": named}
        assert (await remote.ask("POST", body=INITIALIZE, origin=own, **signed_in)).status == 200
        assert (await remote.ask("POST", body=INITIALIZE, **signed_in)).status == 403  # no page says that it asks
        assert (
            await remote.ask("POST", body=INITIALIZE, origin=own, token=None, cookie=named[:-6] + "AAAAAA")
        ).status == 401
        assert (await remote.ask("POST", body=INITIALIZE, origin="https://evil.example", **signed_in)).status == 403


async def test_a_link_that_another_page_leads_to_signs_in_nobody_unasked() -> None:
    sign_in = SignIn()
    async with served(sign_in=sign_in) as remote:
        link = f"/link/{sign_in.new_link(ADA)}"
        for site in ("cross-site", "same-site"):
            led = {"sec_fetch_site": site, "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
            asked = await remote.ask("GET", path=link, token=None, **led)
            assert asked.status == 200 and "set-cookie" not in asked.headers and b"asked for it" in asked.body
            for other in ({"sec_fetch_dest": "iframe"}, {"sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"}):
                refused = await remote.ask("GET", path=link, token=None, **{**led, **other})
                assert refused.status == 403 and "set-cookie" not in refused.headers
        assert (await remote.ask("GET", path=link, token=None, sec_fetch_site="same-origin")).status == 303


async def test_servers_on_other_ports_of_a_machine_have_cookies_of_their_own() -> None:
    sign_in = SignIn()
    async with served(sign_in=sign_in) as one, served(sign_in=sign_in) as other:
        named = [
            (await each.ask("GET", path=f"/link/{sign_in.new_link(ADA)}", token=None)).headers["set-cookie"]
            for each in (one, other)
        ]
        assert [cookie.partition("=")[0] for cookie in named] == [f"holdfast-{one.port}", f"holdfast-{other.port}"]


async def test_a_cookie_holds_across_restarts_and_not_with_another_key(tmp_path: Path) -> None:
    cookie = SignIn(tmp_path / "key").cookie_for(ADA, secure=True).partition("=")[2].partition(";")[0]
    assert SignIn(tmp_path / "key").credential_of(cookie) == ADA
    assert SignIn().credential_of(cookie) is None
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0


async def test_who_takes_too_much_is_refused_and_others_are_not() -> None:
    limits = RemoteLimits(connections=2, requests=0.01, burst=8.0)
    async with served(limits=limits) as remote:
        for expected in (200, 200, 429):
            assert (await remote.ask("POST", body=INITIALIZE)).status == expected
        assert await upgrade(remote) == 429
        statuses = [(await remote.ask("GET", path="/none")).status for _ in range(10)]
        assert statuses[-1] == 429
        assert (await remote.ask("POST", body=INITIALIZE, token="bob")).status == 200


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with served(limits=RemoteLimits(body_seconds=0.1)) as remote:
        slow = await remote.ask("POST", body=b"{", content_length="1000")
        assert slow.status == 408


@pytest.mark.parametrize("shape", ['{"jsonrpc":"2.0","id":1,"method":"x","params":%s}', '{"x":%s}', '{"id":%s}'])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
async def test_a_body_that_is_nested_deeply_is_refused_and_no_failure(shape: str, opening: str, closing: str) -> None:
    async with served() as remote:
        body = shape % (opening * 100_000 + "1" + closing * 100_000)
        answer = await remote.ask("POST", body=body.encode())
        assert (answer.status, b"nested" in answer.body) == (400, True)


async def test_headers_without_end_are_cut_off() -> None:
    async with served() as remote:
        reader, writer = await asyncio.open_connection("127.0.0.1", remote.port)
        writer.write(b"GET /acp HTTP/1.1\r\nhost: x\r\n")
        sent = 0
        try:
            async with asyncio.timeout(PATIENCE):
                while sent < 64 << 20 and not reader.at_eof():
                    writer.write(b"a: " + b"x" * 65_000 + b"\r\n")
                    sent += 65_000
                    await writer.drain()
                    await asyncio.sleep(0)
        except OSError:
            pass
        finally:
            writer.transport.abort()
        assert sent < 8 << 20


SMUGGLED = b"POST /acp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        b"content-length: 5\r\ntransfer-encoding: chunked\r\n",
        b"content-length: 5\r\ncontent-length: 6\r\n",
        b"transfer-encoding: chunked, identity\r\n",
        b"transfer-encoding : chunked\r\n",
        b"content-length: +5\r\n",
        b"content-length: 5, 5\r\n",
        b"x: y\r\n folded: z\r\ncontent-length: -1\r\n",
        b"host: other\r\ncontent-length: 0\r\n",
        b"authorization: Bearer bob\r\ncontent-length: 0\r\n",
        b"x\x00y: z\r\ncontent-length: 0\r\n",
    ],
)  # fmt: skip
async def test_requests_that_two_servers_would_read_in_two_ways_are_refused(headers: bytes) -> None:
    async with served() as remote:
        head = SMUGGLED.replace(b"{host}", f"127.0.0.1:{remote.port}".encode()) + b"authorization: Bearer ada\r\n"
        hidden = b"0\r\n\r\nGET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"
        reply = await remote.bytes(head + headers + b"\r\n" + hidden, whole=False)
        assert reply.status in (400, 413, 501)


async def test_no_token_and_no_link_is_logged() -> None:
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    logger = logging.getLogger()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        sign_in = SignIn()
        async with served(sign_in=sign_in) as remote:
            link = sign_in.new_link(ADA)
            await remote.ask("GET", path=f"/link/{link}", token=None)
            client = await remote.client(token="hf_very-secret-token")
            session = await client.new()
            await client.prompt(session, "very secret words")
            await remote.ask("POST", body=b"{", token="hf_very-secret-token")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    for secret in (link, "hf_very-secret-token", "very secret words"):
        assert secret not in heard.getvalue()


async def test_as_many_connections_as_there_are_descriptors_harm_nobody_who_is_in() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = 400
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    sockets: list[socket.socket] = []
    try:
        async with served() as remote:
            client = await remote.client()
            session = await client.new()
            asyncio.get_running_loop().set_exception_handler(_ignore)  # asyncio complains of each that it refuses
            try:
                while True:
                    sockets.append(socket.create_connection(("127.0.0.1", remote.port), timeout=1))
                    await asyncio.sleep(0)
            except OSError:
                pass
            print(f"{len(sockets)} connections were open, of {few} descriptors")  # noqa: T201
            assert await client.prompt(session, "still there?") == "end_turn"
            for each in sockets:
                each.close()
            await asyncio.sleep(1.1)  # asyncio listens again a second later
            assert (await remote.ask("POST", body=INITIALIZE)).status == 200
    finally:
        for each in sockets:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


BAD_FRAMES = (
    b"\xff\xff" + bytes(12), b"\x81\x05hello", b"\x83\x80\0\0\0\0", b"\x09\x80\0\0\0\0", b"\x80\x80\0\0\0\0",
    b"\x89\xfe\x00\x7e\0\0\0\0", b"\x81\xff" + b"\xff" * 8 + bytes(4),
)  # fmt: skip


async def test_frames_that_are_none_end_their_connection_alone() -> None:
    async with served() as remote:
        client = await remote.client()
        for bad in BAD_FRAMES:
            await _is_gone_after(bad, await remote.transport("websocket"))
        assert await client.new()


async def test_a_frame_that_stops_in_its_head_ends_its_connection_when_a_sign_of_life_is_asked_for() -> None:
    async with served() as remote:
        client = await remote.client()
        for bad in (b"\xff\xff", b"\x81\xff" + b"\xff" * 8):
            headers = {"Authorization": "Bearer ada"}
            await _is_gone_after(bad, await connect_websocket(remote.url, headers=headers, ping=0.3, pong=0.3))
        assert await client.new()


async def _is_gone_after(bad: bytes, transport: Any) -> None:
    transport.open(_Ignore())
    transport._stream.write(bad)
    async with asyncio.timeout(PATIENCE):
        await transport._gone.wait()


def _ignore(_loop: asyncio.AbstractEventLoop, _happened: dict[str, Any]) -> None: ...


class _Ignore:
    def lines_received(self, lines: Any) -> None: ...

    def input_ended(self, reason: Any) -> None: ...


async def test_names_are_exact() -> None:
    assert json.dumps(sorted(Names(["A.example"]).hosts)) == '["a.example"]'
