"""Clients of servers, over sockets: they send what was encoded before and read bytes without understanding them."""

from __future__ import annotations

import base64
import os
import re
import select
import socket
import struct
from typing import TYPE_CHECKING, Self

from bench.wire import INITIALIZE, NEW_SESSION, prompt

if TYPE_CHECKING:
    from types import TracebackType

PATIENCE = 600.0
READ_BYTES = 1 << 20

_SESSION = re.compile(rb'"sessionId":\s*"([^"]*)"')


class RemoteClient:
    """What the clients have in common: one session, and turns in it."""

    session = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def take_turn(self, text: str) -> None:
        """Let the agent do something, reading whatever it says meanwhile."""
        self.send(prompt(text, self.session)[:-1])
        self.read_until(b'"stopReason"')

    def send(self, message: bytes) -> None:
        raise NotImplementedError

    def read_until(self, mark: bytes) -> bytes:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class WebSocketClient(RemoteClient):
    """A client over a WebSocket."""

    def __init__(self, port: int, *, version: int = 1, path: str = "/acp", small: bool = False) -> None:
        """Connect and introduce oneself. A `small` one takes little before it has to be read."""
        self.socket = socket.socket()
        if small:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        answer = self.read_until(b"\r\n\r\n")
        assert b" 101 " in answer, answer
        self.send(INITIALIZE[:-1].replace(b'"protocolVersion":1', b'"protocolVersion":%d' % version))
        self.read_until(b'"protocolVersion"')

    def new_session(self) -> Self:
        """Make the session that it works in."""
        self.send(NEW_SESSION[:-1])
        said = self.read_until(b'"sessionId"')
        while (found := _SESSION.search(said)) is None:
            said += self.socket.recv(READ_BYTES)
        self.session = found[1].decode()
        return self

    def watch(self, session: str) -> Self:
        """Watch the session of another."""
        self.session = session
        self.send(
            b'{"jsonrpc":"2.0","id":1,"method":"session/resume","params":{"sessionId":"%b","cwd":"/","mcpServers":[]}}'
            % session.encode()
        )
        self.read_until(b'"id":1')
        return self

    def send(self, message: bytes) -> None:
        size = len(message)
        head = bytes((0x81, 0x80 | size)) if size < 126 else b"\x81\xfe" + struct.pack(">H", size)
        self.socket.sendall(head + bytes(4) + message)  # masked with nothing

    def read_until(self, mark: bytes) -> bytes:
        said = b""
        while mark not in said:
            chunk = self.socket.recv(READ_BYTES)
            assert chunk, f"the server has hung up after {said[-200:]!r}"
            said = said[-4_096:] + chunk
        return said

    def close(self) -> None:
        self.socket.close()


class HttpClient(RemoteClient):
    """A client over HTTP: one connection for what it posts, and a stream each for itself and for its session."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._posts = self._connect()
        self._connection = b""
        answer = self._post(INITIALIZE[:-1])
        found = re.search(rb"(?i)acp-connection-id: *([^\r]+)", answer)
        assert found is not None, answer
        self._connection = found[1]
        self._streams = [self._stream()]

    def new_session(self) -> Self:
        """Make the session that it works in."""
        self._post(NEW_SESSION[:-1])
        found = _SESSION.search(self.read_until(b'"sessionId"'))
        assert found is not None
        self.session = found[1].decode()
        self._streams.append(self._stream(found[1]))
        return self

    def send(self, message: bytes) -> None:
        self._post(message)

    def read_until(self, mark: bytes) -> bytes:
        said = b""
        while mark not in said:
            ready, _, _ = select.select(self._streams, [], [], PATIENCE)
            assert ready, f"nothing came after {said[-200:]!r}"
            for stream in ready:
                chunk = stream.recv(READ_BYTES)
                assert chunk, f"a stream has ended after {said[-200:]!r}"
                said = said[-4_096:] + chunk
        return said

    def close(self) -> None:
        for stream in (self._posts, *self._streams):
            stream.close()

    def _connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), PATIENCE)

    def _post(self, body: bytes) -> bytes:
        session = b"Acp-Session-Id: %b\r\n" % self.session.encode() if self.session else b""
        named = b"Acp-Connection-Id: %b\r\n%b" % (self._connection, session) if self._connection else b""
        self._posts.sendall(
            b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nAccept: application/json,"
            b" text/event-stream\r\n%bContent-Length: %d\r\n\r\n%b" % (self._port, named, len(body), body)
        )
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._posts.recv(READ_BYTES)
        head, _, rest = answer.partition(b"\r\n\r\n")
        assert b" 20" in head[:16], answer
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        missing = int(length[1]) - len(rest) if length else 0
        while missing > 0:
            chunk = self._posts.recv(missing)
            rest, missing = rest + chunk, missing - len(chunk)
        if b"chunked" in head.lower():
            while not rest.endswith(b"0\r\n\r\n"):
                rest += self._posts.recv(READ_BYTES)
        return head + b"\r\n\r\n" + rest

    def _stream(self, session: bytes | None = None) -> socket.socket:
        stream = self._connect()
        named = b"" if session is None else b"Acp-Session-Id: %b\r\n" % session
        stream.sendall(
            b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\nAcp-Connection-Id: %b\r\n%b\r\n"
            % (self._port, self._connection, named)
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += stream.recv(1)
        assert b" 200 " in head, head
        return stream
