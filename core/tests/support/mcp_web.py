"""An MCP server on a port of its own, by hand, over streamable HTTP (`/mcp`) and as it was before (`/sse`).

It notes every request with its headers. Its tool `echo` gives its argument back; `tell` fails, and blabs the secret
that came in a header; `much` says as many bytes as it is asked for, as JSON, packed, without saying how many, or as an
event; `steps` tells as much progress as it is asked for, then answers. With `refuses` it lets nobody in, and says which
secret it was that did not fit.
"""

from __future__ import annotations

import gzip
import json
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator


class Seen(NamedTuple):
    """A request that came."""

    method: str
    path: str
    headers: dict[str, str]
    """By their names in small letters."""


class Web(ThreadingHTTPServer):
    """The server; see the module."""

    daemon_threads = True

    def __init__(self, *, refuses: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.refuses = refuses
        self.deaf = False
        """Whether it has nothing to say to who says goodbye."""
        self.seen: list[Seen] = []
        self.events: list[SimpleQueue[bytes]] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"


@contextmanager
def web(*, refuses: bool = False) -> Generator[Web]:
    """Have such a server."""
    with Web(refuses=refuses) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            for events in server.events:
                events.put(b"")
            server.shutdown()
            thread.join()


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _web(self) -> Web:
        assert isinstance(self.server, Web)
        return self.server

    def do_GET(self) -> None:
        if self._is_refused():
            return
        if not self.path.startswith("/sse"):
            self._answer(405)
            return
        events: SimpleQueue[bytes] = SimpleQueue()
        self._web.events.append(events)
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"event: endpoint\ndata: /messages?session_id=%d\n\n" % self._web.events.index(events))
        while event := events.get():
            self.wfile.write(b"event: message\ndata: %b\n\n" % event)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not body or self._is_refused():  # who left in the middle of it says nothing
            return
        said = json.loads(body)
        answer = self._answer_to(said)
        progress = _progress(said)
        if self.path.startswith("/messages"):
            for note in progress:
                self._web.events[int(self.path.rpartition("=")[2])].put(json.dumps(note).encode())
            if answer is not None:
                self._web.events[int(self.path.rpartition("=")[2])].put(json.dumps(answer).encode())
            self._answer(202)
        elif answer is None:
            self._answer(202)
        elif progress:
            self._say_events([*progress, answer])
        elif (how := answer.pop("how", None)) is not None:
            self._say_much(json.dumps(answer).encode(), how)
        else:
            self._answer(200, json.dumps(answer), "application/json", {"Mcp-Session-Id": "one"})

    def do_DELETE(self) -> None:
        if self._web.deaf:
            events: SimpleQueue[bytes] = SimpleQueue()
            self._web.events.append(events)
            events.get()
        elif not self._is_refused():
            self._answer(200)

    def _is_refused(self) -> bool:
        """Note the request; refuse it if all are."""
        self._web.seen.append(Seen(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
        if self._web.refuses:
            blabbed = f"{self._secret()} at {self.path} is no key to this door"
            self._answer(401, blabbed, "text/plain", {"WWW-Authenticate": f'Basic realm="not {self._secret()}"'})
        return self._web.refuses

    def _secret(self) -> str | None:
        return self.headers.get("Authorization")

    def _answer_to(self, said: dict[str, Any]) -> dict[str, Any] | None:
        match said.get("method"):
            case "initialize":
                about: dict[str, Any] = {"capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "0"}}
                return _result(said, {"protocolVersion": said["params"]["protocolVersion"], **about})
            case "tools/list":
                tools = [{"name": it, "inputSchema": {"type": "object"}} for it in ("echo", "tell", "much", "steps")]
                return _result(said, {"tools": tools})
            case "tools/call" if said["params"]["name"] == "echo":
                text = str(said["params"].get("arguments", {}).get("text"))
                return _result(said, {"content": [{"type": "text", "text": text}]})
            case "tools/call" if said["params"]["name"] == "much":
                how, size = said["params"]["arguments"]["how"], said["params"]["arguments"]["size"]
                return {"how": how} | _result(said, {"content": [{"type": "text", "text": "x" * size}]})
            case "tools/call" if said["params"]["name"] == "steps":
                return _result(said, {"content": [{"type": "text", "text": "done"}]})
            case "tools/call":
                error = {"code": -32000, "message": f"I was told {self._secret()}"}
                return {"jsonrpc": "2.0", "id": said["id"], "error": error}
            case _:
                return None

    def _say_events(self, messages: list[dict[str, Any]]) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for message in messages:
            self.wfile.write(b"event: message\ndata: %b\n\n" % json.dumps(message).encode())

    def _say_much(self, whole: bytes, how: str) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if how == "event" else "application/json")
        if how == "packed":
            whole = gzip.compress(whole)
            self.send_header("Content-Encoding", "gzip")
        if how == "event":
            whole = b"event: message\ndata: %b\n\n" % whole
        elif how == "json":
            self.send_header("Content-Length", str(len(whole)))
        self.end_headers()
        with suppress(OSError):  # it may be too much for whoever asked
            self.wfile.write(whole)

    def _answer(self, status: int, body: str = "", kind: str = "", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body.encode())))
        for name, value in {**({"Content-Type": kind} if kind else {}), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _result(said: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": said["id"], "result": result}


def _progress(said: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the notes of progress that a call of `steps` asks for."""
    params = said.get("params", {})
    if params.get("name") != "steps":
        return []
    about = {"jsonrpc": "2.0", "method": "notifications/progress"}
    token = params["_meta"]["progressToken"]
    return [
        {**about, "params": {"progressToken": token, "progress": n}} for n in range(int(params["arguments"]["count"]))
    ]
