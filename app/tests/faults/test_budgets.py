"""What one takes keeps nobody else out: connections, feeds, bytes on their way, sockets (H6, P7)."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import ssl
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.faults.test_nodes_over_tls import certificate
from app.tests.support.remote_process import ServeProcess
from core.tests.support.links import PATIENCE
from core.tests.support.remote import Remote, served
from holdfast.errors import ConnectionRefused
from holdfast.server.remote import Credential, RemoteLimits, TokenFile
from holdfast.server.remote.door import DoorLimits, door_limits
from holdfast.server.remote.limits import Hold, Quotas
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from holdfast.transport.websocket import WebSocketTransport

pytestmark = pytest.mark.requirement("H6", "P7")

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


# Connections, and pages that listen


async def listen(scope: Any, receive: Any, send: Any) -> None:
    """A page that listens until it leaves."""
    del scope
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def feed(remote: Remote, token: str = "ada") -> WebSocketTransport:
    address = remote.url.replace("/acp", "/live")
    return await connect_websocket(address, headers={"Authorization": f"Bearer {token}"})


async def test_pages_that_listen_are_connections_too() -> None:
    async with served(limits=RemoteLimits(connections=3), pages=listen) as remote:
        client = await remote.client()
        feeds = [await feed(remote) for _ in range(2)]
        for _ in range(3):
            with pytest.raises(ConnectionRefused, match="429"):
                await feed(remote)
        assert (await remote.ask("POST", body=INITIALIZE)).status == 429
        feeds.append(await feed(remote, "bob"))
        await feeds.pop(0).close(0.0)
        await until(lambda: remote.server.quotas.may_connect("ada"))
        feeds.append(await feed(remote))
        assert await client.new()
        for each in feeds:
            await each.close(0.0)


async def test_pages_are_refused_while_the_server_ends() -> None:
    async with served(pages=listen) as remote:
        remote.server.draining = True
        with pytest.raises(ConnectionRefused, match="503"):
            await feed(remote)


# Bytes on their way


def post(remote: Remote, length: int, token: str = "ada", path: str = "/acp") -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{remote.port}\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    ).encode()


async def keep_body(scope: Any, receive: Any, send: Any) -> None:
    """A page that takes a body and keeps it for a while."""
    del scope
    body = (await receive())["body"]
    await asyncio.sleep(0.05)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(len(body)).encode()})


@pytest.mark.parametrize("path", ["/acp", "/sessions"])
async def test_bodies_of_one_principal_wait_for_room_and_those_of_others_do_not(path: str) -> None:
    size, room = 100_000, 450_000
    limits = RemoteLimits(message=size, bytes_in=room, all_bytes_in=500_000)
    async with served(limits=limits, pages=keep_body) as remote:
        held = remote.server.quotas.bytes_in
        padding = b" " * (size - len(json.dumps(INITIALIZE)))
        body = json.dumps(INITIALIZE).encode() + padding
        pairs = [await asyncio.open_connection("127.0.0.1", remote.port) for _ in range(30)]
        try:
            for _, writer in pairs:
                writer.write(post(remote, size, path=path) + body[:-1])
            await until(lambda: held["ada"] > room - size)
            assert (await remote.ask("POST", body=INITIALIZE, token="bob")).status == 200
            for _, writer in pairs:
                writer.write(body[-1:])
            most = 0
            for reader, _ in pairs:
                async with asyncio.timeout(PATIENCE):
                    status = await reader.readline()
                most = max(most, held["ada"])
                assert b" 200 " in status
            assert most <= room
            await until(lambda: not held)
        finally:
            for _, writer in pairs:
                writer.transport.abort()


async def test_a_body_for_which_there_is_no_room_in_time_is_refused() -> None:
    async with served(limits=RemoteLimits(message=100_000, bytes_in=200_000, body_seconds=1.0)) as remote:
        with Hold(remote.server.quotas, "ada") as hold:
            assert hold.up_to(200_000)
            refused = await remote.ask("POST", body=INITIALIZE)
            assert (refused.status, refused.headers["retry-after"]) == (429, "1")
            assert (await remote.ask("POST", body=INITIALIZE, token="bob")).status == 200
        assert (await remote.ask("POST", body=INITIALIZE)).status == 200


async def test_a_body_without_a_length_is_counted_as_it_comes() -> None:
    async with served(limits=RemoteLimits(message=100_000, bytes_in=200_000)) as remote:
        reader, writer = await asyncio.open_connection("127.0.0.1", remote.port)
        head = post(remote, 0).replace(b"content-length: 0", b"transfer-encoding: chunked")
        writer.write(head + b"ea60\r\n" + b" " * 60_000 + b"\r\n")
        await until(lambda: remote.server.quotas.bytes_in["ada"] == 60_000)
        writer.transport.abort()
        await until(lambda: not remote.server.quotas.bytes_in)
        del reader


async def test_sixty_large_posts_at_once_need_no_more_memory_than_the_budget(tmp_path: Path) -> None:
    with ServeProcess(tmp_path) as server:
        token = server.token("ada")
        before = resident(server.pid)
        body = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":' + b" " * (15 << 20)
        head = (
            f"POST /acp HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\nauthorization: Bearer {token}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body) + 1}\r\n\r\n"
        ).encode()
        async with sockets(server.port, 60) as opened:
            sending = [asyncio.ensure_future(send_all(each, head, body)) for each in opened]
            await asyncio.wait(sending, timeout=5.0)
            taken = resident(server.pid) - before
            for task in sending:
                task.cancel()
            await asyncio.wait(sending)
            assert taken < 200 << 20
        client = await connect_websocket(server.url, headers={"Authorization": f"Bearer {token}"})
        await client.close(0.0)


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


async def send_all(opened: socket.socket, *pieces: bytes) -> None:
    for piece in pieces:
        await asyncio.get_running_loop().sock_sendall(opened, piece)


@asynccontextmanager
async def sockets(port: int, count: int, first: bytes = b"") -> AsyncGenerator[list[socket.socket]]:
    """Open sockets, and send the beginning of something on each."""
    with ExitStack() as opened:
        made: list[socket.socket] = []
        for _ in range(count):
            each = opened.enter_context(socket.socket())
            each.setblocking(False)
            async with asyncio.timeout(PATIENCE):
                await asyncio.get_running_loop().sock_connect(each, ("127.0.0.1", port))
            with suppress(OSError):
                each.send(first)
            made.append(each)
        yield made


@pytest.mark.requirement("H1")
async def test_messages_that_arrive_in_part_share_the_room_of_their_principal() -> None:
    limits = RemoteLimits(message=100_000, bytes_in=250_000)
    async with served(limits=limits) as remote:
        held = remote.server.quotas.bytes_in
        begun = b"\x81\xff" + (90_000).to_bytes(8) + bytes(4) + b" " * 80_000
        transports = [await remote.transport("websocket") for _ in range(3)]
        for number, transport in enumerate(transports):
            raw: Any = transport
            raw._stream.write(begun)
            await until(lambda number=number: held["ada"] >= 80_000 * (number + 1))
        last: Any = await remote.transport("websocket")
        last.open(_Nothing())
        last._stream.write(begun)
        await until(lambda: last.closed_with is not None)
        assert last.closed_with[0] == 1013
        other = await remote.client(token="bob")
        assert await other.new()
        for transport in transports:
            await transport.close(0.0)
        await until(lambda: not held)


class _Nothing:
    def lines_received(self, lines: Any) -> None: ...

    def input_ended(self, reason: Any) -> None: ...


async def test_what_one_principal_leaves_unread_on_many_connections_is_bounded() -> None:
    limits = RemoteLimits(bytes_out=1 << 20)
    async with served(limits=limits) as remote:
        reading = await remote.client("http", token="bob")
        opened = [await remote.ask("POST", body=INITIALIZE) for _ in range(3)]
        ids = [each.headers["acp-connection-id"] for each in opened]
        for connection in ids:
            found = await remote.server.connections.find(connection, Credential("ada", "ada"))
            for _ in range(8):
                found.streams_of.connection.append(b"x" * 100_000)
        await until(lambda: remote.server.connections.unsent <= 1 << 20)
        left = [each for each in ids if await _is_there(remote, each)]
        assert 0 < len(left) < len(ids)
        assert await reading.new()


async def _is_there(remote: Remote, connection: str) -> bool:
    listing: Any = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
    return (await remote.ask("POST", body=listing, acp_connection_id=connection)).status == 202


def test_each_may_send_one_message_though_all_room_is_taken() -> None:
    quotas = Quotas(RemoteLimits(message=10, bytes_in=50, all_bytes_in=100), lambda: 0.0)
    assert quotas.take("ada", 50) and quotas.take("bob", 50)
    assert not quotas.take("ada", 1)
    assert quotas.take("eve", 10)
    assert not quotas.take("eve", 1)
    for name, size in (("ada", 50), ("bob", 50), ("eve", 10)):
        quotas.give(name, size)
    assert not quotas.bytes_in and quotas.take("ada", 50)


# Sockets


@contextmanager
def descriptors(few: int) -> Generator[Callable[[], None]]:
    """Let processes that are started have few descriptors; yield what gives this one all again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


HALF = b"POST /acp HTTP/1.1\r\nhost: x\r\n"


async def test_half_open_heads_keep_nobody_out_who_has_a_token(tmp_path: Path) -> None:
    with descriptors(1_024) as give_back, ServeProcess(tmp_path) as server:
        give_back()
        token = server.token("ada")
        headers = {"Authorization": f"Bearer {token}"}
        early = await connect_websocket(server.url, headers=headers)
        async with sockets(server.port, 1_100, HALF) as strangers:
            late = await connect_websocket(server.url, headers=headers)
            assert not _has_ended(strangers[-1]), "they were only answered because the strangers had given up"
            for each in (early, late):
                each.send_now(json.dumps(INITIALIZE).encode())
                assert await _first_line(each)
                await each.close(0.0)
        assert "out of system resource" not in server.complaints()


def _has_ended(opened: socket.socket) -> bool:
    try:
        return opened.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


async def _first_line(transport: WebSocketTransport) -> bytes:
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    class Once(_Nothing):
        def lines_received(self, lines: Any) -> None:
            if not heard.done():
                heard.set_result(lines[0])

    transport.open(Once())
    async with asyncio.timeout(PATIENCE):
        return await heard


async def test_strangers_share_a_part_and_the_oldest_leaves_for_the_next() -> None:
    async with served(door=DoorLimits(strangers=10, each=20, principals=40)) as remote:
        client = await remote.client()
        async with sockets(remote.port, 60, HALF) as strangers:
            assert remote.server.door is not None
            count = remote.server.door.count
            await until(lambda: sum(map(_has_ended, strangers)) == 50)
            assert not any(map(_has_ended, strangers[-10:]))
            assert count()['{whose="strangers"}'] == 10
            assert (await remote.ask("POST", body=INITIALIZE)).status == 200
            assert await client.new()


async def test_handshakes_of_tls_that_never_end_are_strangers_too(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    trust = ssl.create_default_context(cafile=str(cert))
    tls: dict[str, Any] = {"ssl_certfile": cert, "ssl_keyfile": key}
    door = DoorLimits(strangers=5, each=20, principals=40)
    async with served(door=door, tls=tls) as remote, sockets(remote.port, 30, b"\x16\x03\x01") as strangers:
        url = remote.url.replace("http:", "https:")
        client = await connect_websocket(url, headers={"Authorization": "Bearer ada"}, tls=trust)
        client.send_now(json.dumps(INITIALIZE).encode())
        assert await _first_line(client)
        await until(lambda: sum(map(_has_ended, strangers)) >= 25)
        await client.close(0.0)


async def test_a_principal_that_holds_too_many_sockets_gives_back_idle_ones_first() -> None:
    async with served(door=DoorLimits(strangers=10, each=4, principals=40), pages=listen) as remote:
        idle = [await _asked(remote) for _ in range(4)]
        busy = [await feed(remote) for _ in range(4)]
        await until(lambda: all(reader.at_eof() for reader, _ in idle))
        with pytest.raises(ConnectionRefused, match="429"):
            await feed(remote)
        assert (await remote.ask("POST", body=INITIALIZE, token="bob")).status == 200
        await busy.pop().close(0.0)
        assert remote.server.door is not None
        await until(lambda: remote.server.door.count()['{whose="principals"}'] < 4)  # type: ignore[union-attr]
        busy.append(await feed(remote))
        for each in busy:
            await each.close(0.0)
        for _, writer in idle:
            writer.transport.abort()


async def _asked(remote: Remote) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for something, and keep the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", remote.port)
    writer.write(
        f"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1:{remote.port}\r\nauthorization: Bearer ada\r\n\r\n".encode()
    )
    async with asyncio.timeout(PATIENCE):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(length.partition(b":")[2]))
    return reader, writer


async def test_when_all_sockets_are_taken_the_one_who_holds_the_most_gives_one_back() -> None:
    async with served(door=DoorLimits(strangers=10, each=10, principals=6), pages=listen) as remote:
        many = [await feed(remote) for _ in range(6)]
        with pytest.raises(ConnectionRefused, match="429"):
            await feed(remote)
        one = await feed(remote, "bob")
        client = await remote.client(token="eve")
        assert await client.new()
        for each in (*many, one):
            await each.close(0.0)


async def test_a_socket_that_was_closed_is_counted_no_more() -> None:
    async with served() as remote:
        for _ in range(5):
            assert (await remote.ask("POST", body=INITIALIZE)).status == 200
            (await remote.transport("websocket")).send_now(b"{}")
        assert remote.server.door is not None
        door = remote.server.door
        await remote.close()
        await until(lambda: sum(door.count().values()) == 0)


def test_the_limits_of_the_door_leave_descriptors_to_the_sessions() -> None:
    with descriptors(1_024):
        limits = door_limits()
    assert limits.strangers + limits.principals <= 768
    assert limits.each < limits.principals


async def test_a_wrong_token_leaves_a_stranger_a_stranger(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.toml")
    async with served(authenticator=tokens, door=DoorLimits(strangers=3, each=20, principals=40)) as remote:
        wrong = b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nauthorization: Bearer hf_%s\r\n\r\n"
        async with sockets(remote.port, 20, wrong % (remote.port, b"x" * 43)) as strangers:
            await until(lambda: sum(map(_gone, strangers)) >= 17)


def _gone(opened: socket.socket) -> bool:
    try:
        while opened.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
