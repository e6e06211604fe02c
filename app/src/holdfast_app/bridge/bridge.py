"""`Bridge`: relays between an editor and a server, over connections that may be cut.

Rules, then code:

- What the editor sends reaches the server once, in order; while there is no connection it waits.
- What the server sends reaches the editor once, in order. Updates have positions: after a cut each open session is
  resumed at the last one, and what the editor has of it already is left out.
- A request that was on its way is sent again. A prompt has a name by which the server knows it again; where the server
  was started anew, it is not run again but answered with an error: what was said is stored, and has been shown.
- A question that the editor has been asked is not asked again: its answer goes to whoever asks for it now.
- What the editor asked before the end of its input is answered, if the server does not take too long; turns go on
  without it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import ConnectionLost, ConnectionRefused
from holdfast_app.bridge.messages import (
    AT,
    CLOSING,
    OPENING,
    UPDATE,
    Message,
    failed,
    meta_of,
    params_of,
    read_message,
    request,
    result_of,
    split_update,
    with_id,
)
from holdfast_app.bridge.open_requests import OpenAsk, OpenSession, PendingRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from holdfast.jsonrpc import Id
    from holdfast.transport import Line, Transport
    from holdfast_app.bridge.path_map import PathMap

log: logging.Logger = logging.getLogger(__name__)

_SAID_ONCE = ("session/prompt", "_session/steering")
"""What the server must know again when it is sent again: it says something to the agent."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Between two attempts to connect, in seconds: twice as long each time."""

START_SECONDS = 30.0
"""So long a server may be out of reach when the editor begins."""

UNREAD_BYTES = 1 << 20
"""While the editor has not read so much, the server is not read either."""

RESUME_SECONDS = 60.0
"""So long a server may take to bring a session back."""

LAST_SECONDS = 1.0
"""So long an editor is told that there is no server, at whatever it asks, before we end."""

END_SECONDS = 10.0
"""So long a server may take for what was asked before the end of the input, to be reached and to answer."""

ANSWER_SECONDS = 30.0
"""So long an answer of the editor's is kept, in case that the connection was cut under it."""

BROKEN = "The server was started anew while it worked on this; what was said is stored and was shown"

UNANSWERED = "The input ended before the server had answered this; a turn goes on over there"

_OURS = "holdfast-bridge-"


class Bridge:
    """Relays between an editor and a server."""

    def __init__(
        self,
        editor: Transport,
        connect: Callable[[], Awaitable[Transport]],
        paths: PathMap | None = None,
        *,
        patience: float = START_SECONDS,
    ) -> None:
        """Relay between the transport of an editor and what `connect` connects to, again and again.

        A server that is out of reach when the editor begins is waited for during `patience` seconds.
        """
        self._editor = editor
        self._connect = connect
        self._paths = paths
        self._patience = patience
        self._gone = ""  # why there is no server, once that is sure
        self._loop = asyncio.get_running_loop()
        self._server: Transport | None = None  # what the editor's messages go to, once it is where it was
        self._current: Transport | None = None  # what the server's messages come from
        self._draining: asyncio.Task[None] | None = None
        self._input_ended = False
        self._ended = asyncio.Event()  # nothing is waited for any longer
        self._cut = asyncio.Event()
        self._initialize: PendingRequest | None = None
        self._initialize_id: Id | None = None
        self._version = 1
        self._process: str | None = None
        self._pending: dict[Id, PendingRequest] = {}
        self._sessions: dict[str, OpenSession] = {}
        self._archived: dict[str, OpenSession] = {}  # what the editor had open, and has again once it is unarchived
        self._asks: dict[Id, OpenAsk] = {}
        self._next_ask = 0
        self._waiting: deque[bytes] = deque()
        self._unread = 0  # lines of the editor's that only the server can make sense of, and has not answered
        self._own: dict[str, asyncio.Future[Message]] = {}
        self._next_own = 0
        self._name = os.urandom(8).hex()

    async def run(self) -> None:
        """Relay until the editor has closed its end; raise `ConnectionLost` where no server wants us."""
        self._editor.open(_EditorEnd(self))
        try:
            await self._relay()
        except ConnectionLost as e:
            shut = isinstance(e, ConnectionRefused) and e.status is not None
            self._gone = f"The server does not let us in: {e}" if shut else str(e)
            for id_ in list(self._pending):
                self._answer_for_the_server(id_, self._gone)
            self._end_if_answered()
            await self._sleep(LAST_SECONDS)  # a client may ask again, as for another version of the protocol
            raise
        finally:
            if self._draining is not None:
                self._draining.cancel()
            for id_ in list(self._pending):
                self._answer_for_the_server(id_, UNANSWERED)
            await self._editor.close(0.5)

    async def _relay(self) -> None:
        pause = FIRST_PAUSE
        why = ""
        give_up = self._loop.time() + self._patience
        while not self._ended.is_set():
            try:
                server = await self._connect()
            except ConnectionLost as e:
                hopeless = isinstance(e, ConnectionRefused) and e.is_final
                if hopeless or (self._process is None and self._loop.time() >= give_up):
                    raise
                told, why = why, str(e)
                log.log(logging.INFO if why == told else logging.WARNING, "%s; trying again in %.1f s", e, pause)
                left = give_up - self._loop.time() if self._process is None else pause
                await self._sleep(min(pause, max(0, left)))
                if self._ended.is_set() and self._pending:
                    raise
                pause = min(LONGEST_PAUSE, 2 * pause)
                continue
            if await self._serve(server):
                pause = FIRST_PAUSE
            else:
                await self._sleep(pause)
                pause = min(LONGEST_PAUSE, 2 * pause)

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            pass

    async def _serve(self, server: Transport) -> bool:
        """Relay over one connection until it is cut; return whether it was of any use."""
        self._cut = asyncio.Event()
        self._current = server
        server.open(_ServerEnd(self, self._cut))
        ready = False
        try:
            if self._process is not None:
                await self._go_on(server)
            ready = True
            self._server = server
            self._send_waiting()
            ended, cut = asyncio.ensure_future(self._ended.wait()), asyncio.ensure_future(self._cut.wait())
            await asyncio.wait({ended, cut}, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            cut.cancel()
        except (ConnectionLost, TimeoutError) as e:
            log.warning("The server could not be gone on with: %s", e)
        finally:
            self._server = self._current = None
            for future in self._own.values():
                future.cancel()
            self._own.clear()
            for ask in self._asks.values():
                ask.server_id = None
            await server.close(1.0 if self._ended.is_set() else 0.0)
        return ready

    # What the editor sends

    def from_editor(self, line: bytes) -> None:
        """Take a message of the editor's."""
        if self._paths is not None:
            line = self._paths.outgoing(line)
        try:
            message = read_message(line)
        except msgspec.DecodeError:
            self._unread += 1
            self._send(line)  # the server says what is wrong with it
            return
        if message.method is None and message.id is not None:
            self._take_editors_answer(message)
        elif message.method is None or message.id is None:
            self._send(line)
        else:
            self._take_request(message, message.method, message.id, line)

    def _take_request(self, message: Message, method: str, id_: Id, line: bytes) -> None:
        if self._gone:
            self._answer_for_the_server(id_, self._gone)
            return
        params = params_of(message)
        if method == "initialize":
            line = request(id_, method, {**params, "_meta": {**meta_of(params), "holdfast/positions": True}})
            self._initialize, self._initialize_id = PendingRequest(line, method, params), id_
        elif method in _SAID_ONCE:
            self._next_own += 1
            named = {**meta_of(params), "holdfast/request": f"{self._name}-{self._next_own}"}
            line = request(id_, method, {**params, "_meta": named})
        self._pending[id_] = pending = PendingRequest(line, method, params)
        if self._server is not None:
            pending.sent = True
            self._server.send(line)

    def _take_editors_answer(self, message: Message) -> None:
        assert message.id is not None
        ask = self._asks.get(message.id)
        if ask is None:
            return
        ask.answer = message  # it may be lost on its way, and then be asked for again
        if self._server is not None and ask.server_id is not None:
            self._server.send(with_id(message, ask.server_id))
            self._loop.call_later(ANSWER_SECONDS, self._asks.pop, message.id, None)

    def _send(self, line: bytes) -> None:
        if self._server is not None:
            self._server.send(line)
        else:
            self._waiting.append(line)

    def _send_waiting(self) -> None:
        assert self._server is not None
        for pending in self._pending.values():
            if not pending.sent:
                pending.sent = True
                self._server.send(pending.line)
        while self._waiting:
            self._server.send(self._waiting.popleft())
        self._end_if_answered()

    def editor_ended(self) -> None:
        """Note that the editor asks nothing more: what it has asked is answered, and then we end."""
        self._input_ended = True
        self._loop.call_later(END_SECONDS, self._ended.set)
        self._end_if_answered()

    def _end_if_answered(self) -> None:
        is_answered = all(pending.sent and pending.method == "session/prompt" for pending in self._pending.values())
        if self._input_ended and is_answered and not self._unread and not self._waiting:
            self._ended.set()

    # What the server sends

    def from_server(self, line: bytes) -> None:
        """Take a message of the server's."""
        if line.startswith(UPDATE):
            session_id, position, line = split_update(line)
            session = self._sessions.get(session_id)
            if session is None or not session.take(position):
                self._to_editor(line)
            return
        try:
            message = read_message(line)
        except msgspec.DecodeError:
            self._to_editor(line)
            self._unread = max(0, self._unread - 1)  # a batch is answered by one
            self._end_if_answered()
            return
        if message.method is None:
            self._take_answer(message, line)
            self._end_if_answered()
        elif message.id is not None:
            self._ask_editor(message)
        elif message.method == "$/cancel_request":
            self._withdraw(params_of(message).get("requestId"))
        else:
            self._to_editor(line)

    def _take_answer(self, message: Message, line: bytes) -> None:
        if isinstance(message.id, str) and message.id.startswith(_OURS):
            future = self._own.pop(message.id, None)
            if future is not None and not future.done():
                future.set_result(message)
            return
        pending = None if message.id is None else self._pending.pop(message.id, None)
        if pending is None:
            self._unread = max(0, self._unread - 1)
        if pending is not None and bytes(message.result):
            self._note(pending, result_of(message))
        self._to_editor(line)

    def _note(self, pending: PendingRequest, result: dict[str, Any]) -> None:
        """Note what an answer says about what the editor has open."""
        meta = meta_of(result)
        session_id = result.get("sessionId") or pending.params.get("sessionId")
        if pending.method == "initialize":
            self._version = result.get("protocolVersion", 1)
            self._process = meta.get("holdfast/process", "")
        elif pending.method in OPENING and isinstance(session_id, str):
            before = self._sessions.get(session_id)
            position = meta.get(AT)
            opened = self._sessions[session_id] = OpenSession(pending.params, position)
            if before is not None and before.position == position:
                opened.lines = before.lines
        elif pending.method in CLOSING:
            closed = self._sessions.pop(str(session_id), None)
            if closed is not None and pending.method == "session/archive":
                self._archived[str(session_id)] = closed
        elif pending.method == "session/unarchive" and str(session_id) in self._archived:
            self._sessions[str(session_id)] = self._archived.pop(str(session_id))

    def _ask_editor(self, message: Message) -> None:
        assert message.id is not None and message.method is not None
        key = message.method.encode() + bytes(message.params)
        for editor_id, ask in self._asks.items():
            if ask.key == key and ask.server_id is None:
                ask.server_id = message.id
                if ask.answer is not None and self._current is not None:
                    self._current.send(with_id(ask.answer, message.id))
                    self._loop.call_later(ANSWER_SECONDS, self._asks.pop, editor_id, None)
                return
        self._next_ask += 1
        self._asks[self._next_ask] = OpenAsk(key, message.id)
        self._to_editor(with_id(message, self._next_ask))

    def _withdraw(self, server_id: object) -> None:
        for editor_id, ask in list(self._asks.items()):
            if ask.server_id == server_id and ask.answer is None:
                del self._asks[editor_id]
                cancel = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": editor_id}}
                self._to_editor(msgspec.json.encode(cancel))

    def _to_editor(self, line: bytes) -> None:
        self._editor.send(line if self._paths is None else self._paths.incoming(line))
        if self._editor.unsent > UNREAD_BYTES and self._current is not None and self._draining is None:
            self._current.pause()  # so that whoever does not read is waited for over there (P7)
            self._draining = self._loop.create_task(self._resume_when_read(self._current))

    async def _resume_when_read(self, server: Transport) -> None:
        await self._editor.drain(UNREAD_BYTES // 4)
        self._draining = None
        server.resume()

    # Going on after a cut

    async def _go_on(self, server: Transport) -> None:
        """Bring a new connection to where the old one was."""
        assert self._initialize is not None
        answer = await self._ask_server(server, "initialize", msgspec.json.decode(self._initialize.line)["params"])
        process = meta_of(result_of(answer)).get("holdfast/process", "")
        restarted, self._process = process != self._process, str(process)
        opening = {pending.params.get("sessionId") for pending in self._pending.values() if pending.method in OPENING}
        for session_id, session in list(self._sessions.items()):
            if session_id not in opening:
                await self._resume(server, session_id, session)
        for id_, pending in list(self._pending.items()):
            if pending.sent and restarted and pending.method in (*_SAID_ONCE, "session/fork"):
                self._answer_for_the_server(id_, BROKEN)
            else:
                pending.sent = False

    async def _resume(self, server: Transport, session_id: str, session: OpenSession) -> None:
        params = {**session.params, "sessionId": session_id}
        params.pop("replayFrom", None)
        if session.position is None:
            exact = params
        elif self._version == 1:
            exact = {**params, "_meta": {**meta_of(params), "holdfast/from": session.position}}
        else:
            exact = {**params, "replayFrom": {"type": "_holdfast/from", "position": session.position}}
        session.known = session.lines
        answer = await self._ask_server(server, "session/resume", exact)
        if not bytes(answer.error):
            return
        log.warning("Session %s cannot be gone on with exactly: %s", session_id, bytes(answer.error)[:300])
        session.known = 0
        answer = await self._ask_server(server, "session/resume", params)
        if bytes(answer.error):
            del self._sessions[session_id]
        title = "The connection was cut for too long: load the session again to see what is missing here"
        notice = {"sessionUpdate": "notice", "severity": "warning", "title": title}
        told = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session_id, "update": notice}}
        if self._version == 2 or self._wants_notices():
            self._to_editor(msgspec.json.encode(told))

    def _wants_notices(self) -> bool:
        assert self._initialize is not None
        match self._initialize.params:
            case {"clientCapabilities": {"session": {"notices": dict()}}}:
                return True
            case _:
                return False

    async def _ask_server(self, server: Transport, method: str, params: dict[str, Any]) -> Message:
        self._next_own += 1
        id_ = f"{_OURS}{self._next_own}"
        future: asyncio.Future[Message] = self._loop.create_future()
        self._own[id_] = future
        server.send(request(id_, method, params))
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            async with asyncio.timeout(RESUME_SECONDS):
                await asyncio.wait({future, cut}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            cut.cancel()
        if not future.done():
            raise ConnectionLost("the connection was cut again")
        return future.result()

    def _answer_for_the_server(self, id_: Id, why: str) -> None:
        self._pending.pop(id_, None)
        self._editor.send(failed(id_, why))


class _EditorEnd:
    """Receives what the editor sends."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def lines_received(self, lines: Sequence[Line]) -> None:
        for line in lines:
            if isinstance(line, bytes) and line.strip():
                self._bridge.from_editor(line)

    def input_ended(self, reason: ConnectionLost | None) -> None:  # noqa: ARG002
        self._bridge.editor_ended()


class _ServerEnd:
    """Receives what the server sends on one connection."""

    def __init__(self, bridge: Bridge, cut: asyncio.Event) -> None:
        self._bridge = bridge
        self._cut = cut

    def lines_received(self, lines: Sequence[Line]) -> None:
        for line in lines:
            if isinstance(line, bytes):
                self._bridge.from_server(line)

    def input_ended(self, reason: ConnectionLost | None) -> None:  # noqa: ARG002
        self._cut.set()
