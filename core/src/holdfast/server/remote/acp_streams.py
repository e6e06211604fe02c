"""Which message of a connection goes down which of its streams (H2, H3).

What is about a session goes down that session's stream, once there is one; everything else goes down the connection's.
The replay and the answer of a load or resume go down one stream, whichever is read when the request comes.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import ConnectionLost, InternalError
from holdfast.jsonrpc import ErrorObject, encode_error
from holdfast.server.remote.http_transport import HttpTransport
from holdfast.server.remote.kept_connections import KeptConnection, KeptSession
from holdfast.server.remote.requests import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.model import Position
    from holdfast.server.positions import SeenUpTo
    from holdfast.server.remote.event_streams import EventStream

PROMPT = "session/prompt"
OPENING = frozenset({"session/load", "session/resume"})
MAKING = frozenset({"session/new", "session/fork"})
ARCHIVE = "session/archive"
CLOSING = frozenset({"session/close", "session/delete", ARCHIVE})

_SESSION_IN_UPDATE = re.compile(rb'^\{"jsonrpc":"2\.0","method":"session/update","params":\{"sessionId":"([^"\\]+)"')


class _Params(msgspec.Struct, rename="camel"):
    session_id: str | None = None
    cwd: str | None = None
    additional_directories: list[str] | None = None
    mcp_servers: list[msgspec.Raw] | None = None


class Incoming(msgspec.Struct):
    """As much of a message as decides where it and its answer go."""

    id: int | str | None = None
    method: str | None = None
    params: _Params | None = None

    @property
    def session_id(self) -> str | None:
        """The session it names."""
        return None if self.params is None else self.params.session_id


class _Outgoing(msgspec.Struct):
    id: int | str | None = None
    method: str | None = None
    params: _Params | None = None
    result: msgspec.Raw = msgspec.Raw()


_read_incoming = msgspec.json.Decoder(Incoming, strict=True).decode
_read_loosely = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def read_incoming(body: bytes) -> Incoming:
    """Read a message that was POSTed; raise `Refusal` for what is none. What is odd in it is the peer's to judge."""
    if body.lstrip()[:1] == b"[":
        raise Refusal(501, "Batches are not taken over HTTP; send the messages one by one")
    try:
        try:
            return _read_incoming(body)
        except msgspec.ValidationError:
            return _read_oddity(body)
    except RecursionError:
        raise Refusal(400, "The body is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Refusal(400, "The body is not JSON") from None


def _read_oddity(body: bytes) -> Incoming:
    try:
        members = _read_loosely(body)
    except msgspec.DecodeError:
        raise Refusal(400, "The body is no JSON-RPC message") from None
    incoming = Incoming()
    for name in ("id", "method", "params"):
        try:
            setattr(incoming, name, msgspec.json.decode(members.get(name, b"null"), type=_TYPES[name]))
        except msgspec.DecodeError:
            continue
    return incoming


_TYPES = {"id": int | str | None, "method": str | None, "params": _Params | None}


class AcpStreams:
    """The streams of one connection over HTTP."""

    def __init__(self, limit: int, most: int) -> None:
        """Create them; a message has at most `limit` bytes, and there are at most `most` streams."""
        self.transport: HttpTransport = HttpTransport(self._stream_for, limit=limit)
        self.connection: EventStream = self.transport.add_stream()
        """The stream of what is about no session."""
        self.sessions: dict[str, EventStream] = {}
        """Those of sessions."""
        self.kept: KeptConnection | None = None
        """What is kept of the connection, once it has begun."""
        self.on_changed: Callable[[], None] = _nothing
        """Is called when that has changed."""
        self._most = most
        self._closed: set[str] = set()
        self._answers: dict[int | str, tuple[EventStream, str, _Params]] = {}
        self._loading: dict[str, EventStream] = {}
        self._initialize: tuple[int | str, asyncio.Future[bytes]] | None = None

    def expect_initialize(self, id_: int | str) -> asyncio.Future[bytes]:
        """Return what will be the answer to an `initialize`, which goes down no stream."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._initialize = (id_, future)
        return future

    def expect(self, message: Incoming) -> None:
        """Note where the answer to a request goes."""
        if message.id is None or message.method is None:
            return
        session_id = message.session_id
        stream = self.connection if session_id is None else self.sessions.get(session_id, self.connection)
        if session_id is not None and message.method in OPENING:
            stream = stream if stream.reader is not None else self.connection
            self._loading[session_id] = stream
        elif message.method == "session/fork":
            stream = self.connection
        self._answers[message.id] = (stream, message.method, message.params or _Params())
        if message.method == PROMPT and session_id is not None and self.kept is not None:
            self.kept.prompts.append((message.id, session_id))
            self.on_changed()

    def session_stream(self, session_id: str) -> EventStream:
        """Return the stream of a session; raise `Refusal` where there are too many."""
        stream = self.sessions.get(session_id)
        if stream is None:
            if len(self.sessions) >= self._most:
                raise Refusal(429, f"A connection has at most {self._most} streams; close sessions that are not used")
            stream = self.sessions[session_id] = self.transport.add_stream()
        return stream

    @property
    def is_read(self) -> bool:
        """Whether anybody reads any of them."""
        return self.connection.reader is not None or any(each.reader is not None for each in self.sessions.values())

    def end(self, reason: str | None = None) -> None:
        """End the connection."""
        if self._initialize is not None and not self._initialize[1].done():
            self._initialize[1].cancel()
        self.transport.end_input(None if reason is None else ConnectionLost(reason))

    # Positions: they are the ids of events (H4)

    def show(self, session_id: str, position: Position, block: bytes, known_lines: int) -> None:
        """Put the lines that say an event on the session's stream."""
        self._of_session(session_id).stand_at(position, known_lines)
        self.transport.send_block(block)

    def show_run(self, session_id: str, before: Position, block: bytes) -> None:
        """Put the lines of events on the session's stream, one line for each."""
        self.transport.append_run(self._of_session(session_id), before, block[:-1].split(b"\n"))

    def stand(self, session_id: str, position: Position | None) -> None:
        """Note where the reader of a session's stream stands."""
        self._of_session(session_id).stand_at(position or ())

    def rewind(self, session_id: str, seen: SeenUpTo) -> None:
        """Let a session's stream go back to what its reader has seen."""
        self._of_session(session_id).rewind((*seen.position, seen.lines))

    def rewound(self, session_id: str) -> None:
        """Note that all was put on the stream again."""
        self._of_session(session_id).rewound()

    def _stream_for(self, line: bytes) -> EventStream | None:
        if (update := _SESSION_IN_UPDATE.match(line)) is not None:
            return self._of_session(update[1].decode())
        message = msgspec.json.decode(line, type=_Outgoing)
        if message.method is not None:
            named = None if message.params is None else message.params.session_id
            return self.connection if named is None else self._of_session(named)
        return self._of_answer(message, line)

    def _of_session(self, session_id: str) -> EventStream:
        return self._loading.get(session_id) or self.sessions.get(session_id, self.connection)

    def _of_answer(self, message: _Outgoing, line: bytes) -> EventStream | None:
        if self._initialize is not None and message.id == self._initialize[0]:
            _, future = self._initialize
            self._initialize = None
            if not future.done():
                future.set_result(line)
            return None
        if message.id is None or message.id not in self._answers:
            return self.connection
        stream, method, params = self._answers.pop(message.id)
        session_id = params.session_id
        succeeded = bool(message.result)
        if method in OPENING and session_id is not None:
            self._loading.pop(session_id, None)
            made = session_id if succeeded else None
        else:
            made = _session_made(message.result) if method in MAKING else None
        if made is not None and len(self.sessions) < self._most:
            self.session_stream(made)
            self._closed.discard(made)
        elif method in CLOSING and session_id is not None and succeeded:
            self._closed.update({session_id} & self.sessions.keys())
        self._keep(message.id, method, params, made if succeeded else None)
        return stream

    def _keep(self, id_: int | str, method: str, params: _Params, made: str | None) -> None:
        """Note what is to be known of the connection after a restart."""
        kept = self.kept
        if kept is None:
            return
        if method == PROMPT:
            kept.prompts = [prompt for prompt in kept.prompts if prompt[0] != id_]
        elif made is not None and params.cwd is not None and not params.mcp_servers:
            kept.sessions[made] = KeptSession(params.cwd, tuple(params.additional_directories or ()))
        elif method in CLOSING and method != ARCHIVE and params.session_id is not None:  # open again once unarchived
            kept.sessions.pop(params.session_id, None)
        else:
            return
        self.on_changed()

    def answer_broken_prompts(self) -> None:
        """Answer the prompts that the end of an earlier process broke."""
        assert self.kept is not None
        for id_, session_id in self.kept.prompts:
            error = ErrorObject(InternalError.code, "The server ended while it worked on this; what was said is stored")
            self.session_stream(session_id).append(encode_error(id_, error), lasting=True)
        self.kept.prompts = []

    def forget_unread(self) -> None:
        """Forget the streams of closed sessions that nobody reads.

        One that is read stays: the TypeScript client may have posted the next request for its session already, and the
        end of the stream would fail it.
        """
        for session_id in [each for each in self._closed if self.sessions[each].reader is None]:
            self._closed.discard(session_id)
            self.transport.drop_stream(self.sessions.pop(session_id))


def _session_made(result: msgspec.Raw) -> str | None:
    """Return the session that an answer names."""
    try:
        return msgspec.json.decode(result, type=_Params).session_id
    except msgspec.DecodeError:
        return None


def _nothing() -> None: ...
