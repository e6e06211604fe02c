"""`Peer`: the dispatcher in the middle of a connection.

Rules, then code:

- What arrives is handled in order (A10). A notification's handler ends before the next message is looked at; a
  request's handler runs on beside, but has run to its first wait by then; a response is released in its place.
- `$/cancel_request` and urgent notifications overtake (P5).
- Every request gets exactly one response (P6), whatever its handler does.
- While the other side does not read, what would have to be answered is not looked at; when too much is waiting to be
  looked at, the transport stops reading (P7).
- After the end of the input what was read before it is still served, for a moment; then all work is cancelled, and
  nothing of it outlives `run` but handlers that refuse to be cancelled (A11).
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload

import msgspec
from msgspec import UNSET, Raw

from holdfast.errors import ConnectionLost, InternalError, InvalidAnswer, MethodNotFound, RemoteError
from holdfast.jsonrpc import (
    Batch,
    ErrorObject,
    Frame,
    Id,
    Invalid,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    decode,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    oversized,
)
from holdfast.peer.calls import BatchAnswer, Call, Pending
from holdfast.peer.faults import CANCELLED, error_for
from holdfast.transport import Oversized

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import TracebackType

    from holdfast.peer.routes import RequestRoute, Routes
    from holdfast.transport import Line, Transport

log = logging.getLogger(__name__)

T = TypeVar("T")

CANCEL = "$/cancel_request"

Observer: TypeAlias = "Callable[[Literal['in', 'out'], bytes], None]"


class Limits(NamedTuple):
    """How much of what a peer takes, and how long it waits. Sizes in bytes, times in seconds."""

    unread: int = 4 << 20
    """Reading pauses while more than this waits to be handled."""
    unsent: int = 1 << 20
    """While more than this waits to be sent, `drain` waits and requests are not looked at."""
    calls: int = 1_024
    """Requests at work at once; more are refused."""
    cancel_grace: float = 5.0
    """A cancelled request whose handler goes on is answered for after this time."""
    linger: float = 0.5
    """Requests at work when the input ends have this long to finish by themselves…"""
    end_grace: float = 0.8
    """…and this long to end once cancelled."""
    flush: float = 0.4
    """What is unsent at the very end may take this long to leave."""


class _CancelParams(msgspec.Struct, frozen=True, rename="camel"):
    request_id: Id


_read_cancel = msgspec.json.Decoder(_CancelParams).decode

_dispatching: ContextVar[Peer | None] = ContextVar("dispatching", default=None)


class Peer:
    """One end of a conversation.

    ``await peer.run()`` serves until the input ends; ``async with peer:`` does the same beside the body, for an end
    that mostly asks. `routes` may be replaced while it runs: the next message sees the new ones.
    """

    def __init__(self, transport: Transport, routes: Routes, *, limits: Limits | None = None) -> None:
        self.routes = routes
        self._transport = transport
        self._limits = limits or Limits()
        self._observers: list[Observer] = []
        self._inbox: list[Frame] = []
        self._unread = 0
        self._paused = False
        self._news = asyncio.Event()
        self._ended = asyncio.Event()
        self._reason: ConnectionLost | None = None
        self._next_id = 0
        self._pending: dict[Id, Pending] = {}
        self._calls: dict[Id, Call] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._waiting: dict[Id, bool] = {}  # requests in the inbox; True once cancelled there
        self._running: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()

    # What we say

    def notify(self, method: str, params: object = UNSET) -> None:
        """Tell the other side. Never waits: whoever tells much calls `drain` now and then.

        Goes nowhere, silently, once the connection has ended: nobody is ever sure that a notification was heard.
        """
        self._send(encode_notification(method, params))

    @overload
    async def request(self, method: str, params: object = UNSET) -> Raw: ...
    @overload
    async def request(self, method: str, params: object = UNSET, *, result: type[T]) -> T: ...
    async def request(self, method: str, params: object = UNSET, *, result: type[Any] = Raw) -> Any:
        """Ask the other side and wait for its answer, decoded to `result`.

        Cancelling the wait (a timeout does it too) cancels the request over there. Raises `RemoteError` for an error
        answer, `InvalidAnswer` for one that does not fit, `ConnectionLost` when none will come.
        """
        if self._ended.is_set():
            raise self._lost()
        id_ = self._next_id
        encoded = encode_request(id_, method, params)
        self._next_id += 1
        future: asyncio.Future[Raw] = self._loop.create_future()
        self._pending[id_] = Pending(future, at_once=_dispatching.get() is self)
        self._send(encoded)
        try:
            raw = await future
        except asyncio.CancelledError:
            if not self._ended.is_set():
                self.notify(CANCEL, _CancelParams(id_))
            raise
        finally:
            self._pending.pop(id_, None)
        if result is Raw:
            return raw
        try:
            return msgspec.json.decode(raw, type=result)
        except msgspec.DecodeError as e:
            raise InvalidAnswer(f"The answer to {method} does not fit: {e}") from None

    async def drain(self) -> None:
        """Wait while too much of what we said is unread."""
        if self._transport.unsent > self._limits.unsent:
            await self._transport.drain(self._limits.unsent)

    def flush(self) -> None:
        """Send what was said so far now instead of at the end of the loop tick."""
        self._transport.flush()

    def observe(self, observer: Observer) -> None:
        """Show every frame to a function: ``observer("in" | "out", line)``. It gets the very bytes, not a copy."""
        self._observers.append(observer)

    def _send(self, encoded: bytes) -> None:
        if self._observers:
            self._show("out", encoded)
        self._transport.send(encoded)

    def _show(self, direction: Literal["in", "out"], line: bytes) -> None:
        for observer in self._observers:
            try:
                observer(direction, line)
            except Exception:
                log.exception("An observer failed")

    # A life

    async def run(self) -> None:
        """Serve until the input ends; then finish, as the rules above say."""
        self._transport.open(self)
        context = self._context.copy()
        context.run(_dispatching.set, self)
        dispatcher = self._loop.create_task(self._dispatch(), name="dispatch", context=context)
        try:
            await self._ended.wait()
            await self._finish(dispatcher)
        finally:
            self._ended.set()
            self._abandon_pending()
            for task in (dispatcher, *self._work):
                task.cancel()
            await self._see_off({dispatcher, *self._work}, self._limits.end_grace)
            await self._transport.close(self._limits.flush)

    def close(self) -> None:
        """Behave as if the input had ended here; `run` returns soon after."""
        self.input_ended(None)

    async def __aenter__(self) -> Self:
        self._running = self._loop.create_task(self.run(), name="peer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._running is not None
        self.close()
        await self._running

    async def _finish(self, dispatcher: asyncio.Task[None]) -> None:
        """Serve what was read before the input ended, for a moment."""
        try:
            async with asyncio.timeout(self._limits.linger):
                await asyncio.wait({dispatcher})
                self._abandon_pending()
                while self._work:
                    await asyncio.wait(self._work)
        except TimeoutError:
            pass

    async def _see_off(self, tasks: set[asyncio.Task[None]], within: float) -> None:
        _, left = await asyncio.wait(tasks, timeout=within)
        for task in left:
            log.warning("%s does not let itself be cancelled; it is left behind", task.get_name())

    def _abandon_pending(self) -> None:
        for pending in self._pending.values():
            if not pending.future.done():
                pending.future.set_exception(self._lost())

    def _lost(self) -> ConnectionLost:
        return self._reason or ConnectionLost("the connection has ended")

    # What we hear

    def lines_received(self, lines: Sequence[Line]) -> None:
        """Take what arrived; see to what overtakes, queue the rest."""
        inbox, urgent = self._inbox, self.routes.urgent
        for line in lines:
            if type(line) is Oversized:
                frame, seen = oversized(line.head, line.tail, line.limit), line.head
            else:
                frame, seen = decode(line), line
            self._unread += len(seen)
            if self._observers:
                self._show("in", seen)
            if type(frame) is Notification:
                if frame.method == CANCEL:
                    self._cancel(frame)
                    continue
                if frame.method in urgent:
                    self._tell_at_once(frame)
            elif type(frame) is Request:
                self._waiting[frame.id] = False
            elif type(frame) is Response:
                if frame.id in self._pending and self._pending[frame.id].at_once:
                    self._release(frame)
                    continue
            elif type(frame) is Malformed and not seen.strip():
                continue  # a blank line says nothing
            inbox.append(frame)
        if self._unread > self._limits.unread and not self._paused:
            self._paused = True
            self._transport.pause()
        self._news.set()

    def input_ended(self, reason: ConnectionLost | None) -> None:
        """Note the end; `run` sees to the rest."""
        if not self._ended.is_set():
            self._reason = reason
            self._ended.set()
            self._news.set()

    async def _dispatch(self) -> None:
        """Handle what was heard, in order, until the input has ended and all of it is handled."""
        while True:
            if not self._inbox:
                if self._ended.is_set():
                    return
                self._news.clear()
                await self._news.wait()
                continue
            frames, self._inbox, self._unread = self._inbox, [], 0
            if self._paused:
                self._paused = False
                self._transport.resume()
            last = len(frames) - 1
            for at, frame in enumerate(frames):
                if type(frame) is Notification:
                    await self._tell(frame)
                    continue
                if type(frame) is Response:
                    self._release(frame)
                else:
                    await self.drain()
                    await self._see_to(frame)
                if at < last and type(frame) is not Malformed:
                    await asyncio.sleep(0)  # whoever this concerns runs before the next message is looked at

    async def _see_to(self, frame: Request | Invalid | Malformed | Batch) -> None:
        """Handle what is owed an answer."""
        if type(frame) is Request:
            await self._start(frame, self._send)
        elif type(frame) is Malformed:
            self._send(encode_error(None, frame.error))
        elif type(frame) is Batch:
            owed = sum(type(m) is Request or (type(m) is Invalid and not m.to_us) for m in frame.messages)
            answer = BatchAnswer(owed, self._send).add
            for message in frame.messages:
                await self._see_to_entry(message, answer)
        else:
            await self._see_to_entry(frame, self._send)

    async def _see_to_entry(self, message: Message, answer: Callable[[bytes], None]) -> None:
        if type(message) is Request:
            await self._start(message, answer)
        elif type(message) is Notification:
            if message.method == CANCEL:
                self._cancel(message)
            else:
                await self._tell(message)
        elif type(message) is Response:
            self._release(message)
        elif not message.to_us:
            answer(encode_error(message.id, message.error))
        elif message.id is not None:
            self._release(Response(message.id, message.error))

    # Notifications

    async def _tell(self, it: Notification) -> None:
        route = self.routes.notifications.get(it.method)
        if route is None:
            if it.method in self.routes.urgent:
                self._tell_at_once(it)
            return
        try:
            await route.handle(route.read(it.params))
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            log.warning("The handler of %s raised CancelledError", it.method)
        except Exception as e:  # noqa: BLE001
            error_for(e, f"The notification {it.method}")

    def _tell_at_once(self, it: Notification) -> None:
        route = self.routes.urgent[it.method]
        try:
            route.handle(route.read(it.params))
        except Exception as e:  # noqa: BLE001
            error_for(e, f"The notification {it.method}")

    # Answers to us

    def _release(self, response: Response) -> None:
        pending = self._pending.pop(response.id, None) if response.id is not None else None
        if pending is None or pending.future.done():
            return  # an answer to nothing we asked (A5), or too late
        outcome = response.outcome
        if type(outcome) is ErrorObject:
            data = None if outcome.data is UNSET else msgspec.json.decode(outcome.data)
            pending.future.set_exception(RemoteError(outcome.code, outcome.message, data))
        else:
            pending.future.set_result(outcome)

    # Requests to us

    async def _start(self, request: Request, answer: Callable[[bytes], None]) -> None:
        if self._waiting.pop(request.id, False):
            answer(encode_error(request.id, CANCELLED))
            return
        if len(self._work) >= self._limits.calls:
            busy = ErrorObject(InternalError.code, f"Too many requests at once; at most {self._limits.calls}")
            answer(encode_error(request.id, busy))
            return
        route = self.routes.requests.get(request.method)
        ordered = route is not None and route.ordered
        call = self._calls[request.id] = Call(request, answer)
        context = self._context.copy()
        if ordered:
            context.run(_dispatching.set, self)
        task = call.task = self._loop.create_task(self._serve(call, route), name=request.method, context=context)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        if ordered:
            await asyncio.wait({task})

    async def _serve(self, call: Call, route: RequestRoute | None) -> None:
        request = call.request
        try:
            result = await self._handle(request, route)
            try:
                encoded = encode_result(request.id, result)
            except Exception as e:  # noqa: BLE001
                encoded = encode_error(request.id, error_for(e, f"Encoding the result of {request.method}"))
        except KeyboardInterrupt:
            call.answer(encode_error(request.id, CANCELLED))
            raise
        except BaseException as e:  # noqa: BLE001  (a handler that exits or raises a cancellation is answered too)
            encoded = encode_error(request.id, error_for(e, f"The request {request.method}"))
        finally:
            if self._calls.get(request.id) is call:
                del self._calls[request.id]
        call.answer(encoded)

    def _handle(self, request: Request, route: RequestRoute | None) -> Awaitable[object]:
        if route is not None:
            return route.handle(route.read(request.params))
        if self.routes.fallback is not None:
            return self.routes.fallback(request)
        raise MethodNotFound(f"Unknown method: {request.method[:200]}")

    def _cancel(self, it: Notification) -> None:
        try:
            id_ = _read_cancel(it.params or b"{}").request_id
        except msgspec.DecodeError:
            return
        if (call := self._calls.get(id_)) is not None:
            call.cancel(self._loop, self._limits.cancel_grace)
        elif id_ in self._waiting:
            self._waiting[id_] = True
