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
from collections import deque
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload

import msgspec
from msgspec import UNSET, Raw

from holdfast.errors import ConnectionLost, InternalError, InvalidAnswer, MethodNotFound, RemoteError
from holdfast.jsonrpc import (
    Batch,
    ErrorObject,
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
    salvaged,
)
from holdfast.peer.calls import BatchAnswer, Call, Entry, Pending
from holdfast.peer.faults import CANCELLED, error_for
from holdfast.transport import Oversized

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import TracebackType

    from holdfast.peer.calls import Send
    from holdfast.peer.routes import RequestRoute, Routes
    from holdfast.transport import Line, Transport

log = logging.getLogger(__name__)

T = TypeVar("T")

CANCEL = "$/cancel_request"

FRAME_BYTES = 256
"""What a frame costs while it waits, beside its bytes: a flood of empty ones is a flood too."""

AWAKE_SECONDS = 80e-6
"""How long an answer is waited for without sleep, where it is the only one. A core that slept takes as long to wake."""

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
    end_grace: float = 0.6
    """…and this long to end once cancelled."""
    flush: float = 0.3
    """What is unsent at the very end may take this long to leave."""


class _CancelParams(msgspec.Struct, frozen=True, rename="camel"):
    request_id: Id


_read_cancel = msgspec.json.Decoder(_CancelParams).decode

_handled: ContextVar[Message | None] = ContextVar("handled", default=None)  # by whom this code was called


class Peer:
    """One end of a conversation.

    ``await peer.run()`` serves until the input ends; ``async with peer:`` does the same beside the body, for an end
    that mostly asks. `routes` may be replaced while it runs: the next message sees the new ones.
    """

    def __init__(
        self, transport: Transport, routes: Routes, *, limits: Limits | None = None, answers_noise: bool = True
    ) -> None:
        """`answers_noise` says whether what is no message at all is answered with an error, as JSON-RPC has it.

        Programs that print to their stdout know nothing of answers; whoever starts some had better not give any.
        """
        self.routes = routes
        self.on_lost: Callable[[ConnectionLost], None] | None = None
        """Is told once that no answer will come any more, after all that came before it was handled."""
        self.on_no_message: Callable[[bytes, str | None], None] | None = None
        """Is told of a line that is no message and is not answered: its bytes, or the first of them where it is too
        long, and, if it was meant to be one, why it could not be read."""
        self._answers_noise = answers_noise
        self._transport = transport
        self._limits = limits or Limits()
        self._observers: list[Observer] = []
        self._inbox: deque[Message | Malformed | Entry] = deque()
        self._unread = 0
        self._paused = False
        self._news = asyncio.Event()
        self._ended = asyncio.Event()
        self._reason: ConnectionLost | None = None
        self._next_id = 0
        self._pending: dict[Id, Pending] = {}
        self._calls: dict[Id, Call] = {}
        self._work: dict[asyncio.Task[None], Call] = {}
        self._awaited: Message | None = None  # whose handler the dispatcher waits for
        self._idle = False  # whether the dispatcher waits for something to do
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
        self._pending[id_] = Pending(future, _handled.get())
        self._send(encoded)
        if len(self._pending) == 1:
            self._transport.flush()  # nothing is under way that it could share a system call with
            self._stay_awake(future, self._loop.time() + AWAKE_SECONDS)
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

    def _stay_awake(self, answer: asyncio.Future[Raw], until: float) -> None:
        """Keep the loop from sleeping for a moment: to wake it up takes longer than most answers do."""
        if not answer.done() and self._loop.time() < until:
            self._loop.call_soon(self._stay_awake, answer, until)

    async def drain(self) -> None:
        """Wait while too much of what we said is unread."""
        if self._transport.unsent > self._limits.unsent:
            await self._transport.drain(self._limits.unsent)

    def flush(self) -> None:
        """Send what was said so far now instead of at the end of the loop tick."""
        self._transport.flush()

    def send_block(self, *pieces: bytes) -> None:
        """Send messages that are encoded already, each a line with its newline; a piece may hold a part of them."""
        if self._observers:
            for line in b"".join(pieces)[:-1].split(b"\n"):
                self._show("out", line)
        self._transport.send_block(*pieces)

    @property
    def unsent(self) -> int:
        """How many bytes wait for the other side to read."""
        return self._transport.unsent

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
        dispatcher = self._loop.create_task(self._dispatch(), name="dispatch", context=self._context.copy())
        dispatcher.add_done_callback(lambda _: self.close())  # without it nothing would ever be answered
        try:
            await self._ended.wait()
            await self._finish(dispatcher)
        finally:
            self._ended.set()
            self._abandon_pending()
            for task in (dispatcher, *self._work):
                task.cancel()
            await self._see_off({dispatcher, *self._work}, self._limits.end_grace)
            self._answer_the_rest()
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

    def _answer_the_rest(self) -> None:
        """Answer for handlers that were left behind, and what was never looked at."""
        for call in self._work.values():
            call.give_up()
        for frame in self._inbox:
            message, answer = frame if type(frame) is Entry else (frame, self._send)
            if type(message) is Request:
                answer(encode_error(message.id, CANCELLED))
            elif type(message) is Invalid or type(message) is Malformed:
                self._refuse(message, answer)

    def _abandon_pending(self) -> None:
        for pending in self._pending.values():
            if not pending.future.done():
                pending.future.set_exception(self._lost())
        told, self.on_lost = self.on_lost, None
        if told is not None:
            told(self._lost())

    def _lost(self) -> ConnectionLost:
        return self._reason or ConnectionLost("the connection has ended")

    # What we hear

    def lines_received(self, lines: Sequence[Line]) -> None:
        """Take what arrived; see to what overtakes, queue the rest."""
        inbox, urgent, observers = self._inbox, self.routes.urgent, self._observers
        nothing_before = self._idle and not inbox
        self._unread += FRAME_BYTES * len(lines)
        for line in lines:
            if type(line) is Oversized:
                frame, seen = oversized(line.head, line.tail, line.limit), line.head
            else:
                frame, seen = decode(line), line
            self._unread += len(seen)
            if type(frame) is Malformed and not self._answers_noise:
                frame = salvaged(seen, frame)
            if observers:
                self._show("in", seen)
            if type(frame) is Notification and frame.method != CANCEL and frame.method not in urgent:
                inbox.append(frame)
            elif type(frame) is Batch:
                owed = sum(type(it) is Request or (type(it) is Invalid and not it.to_us) for it in frame.messages)
                answer = BatchAnswer(owed, self._send).add
                self._unread += FRAME_BYTES * len(frame.messages)
                inbox.extend(Entry(it, answer) for it in frame.messages if not self._overtakes(it))
            elif type(frame) is Malformed or (type(frame) is Invalid and frame.id is None and not frame.to_us):
                if not self._answers_noise:
                    self._pass_over(seen, frame, whole=type(line) is not Oversized)
                elif seen.strip(b" \t\r"):  # a blank line says nothing
                    inbox.append(frame)
            elif not self._overtakes(frame):
                if nothing_before and not inbox and self._at_once(frame):
                    nothing_before = False  # one at a time: the next waits until this one has run to its first wait
                else:
                    inbox.append(frame)
        if not inbox:
            if self._idle:
                self._unread = 0  # nobody else will: the dispatcher sleeps on
            return
        if self._unread > self._limits.unread and not self._paused:
            self._paused = True
            self._transport.pause()
        self._news.set()

    def _pass_over(self, line: bytes, frame: Invalid | Malformed, *, whole: bool) -> None:
        """Say that a line was no message. Programs print all sorts of things; what looks like JSON-RPC was meant."""
        log.info("Something came that is no message: %r", line[:200])
        if self.on_no_message is not None:
            unreadable = type(frame) is Malformed or not whole
            meant = unreadable and line.lstrip()[:1] in (b"{", b"[") and (b'"jsonrpc"' in line or b'"method"' in line)
            self.on_no_message(line, frame.error.message if meant else None)

    def _overtakes(self, message: Message) -> bool:
        """See to what cannot wait for its turn; say whether nothing is left to do when that comes."""
        if type(message) is Notification:
            if message.method == CANCEL:
                self._cancel(message)
                return True
            if message.method in self.routes.urgent:
                self._tell_at_once(message)
        elif type(message) is Request:
            self._waiting[message.id] = False
        elif type(message) is Response or message.to_us:
            pending = None if message.id is None else self._pending.get(message.id)
            if pending is not None and pending.asked is not None and pending.asked is self._awaited:
                self._release(message)
                return True
        return False

    def _at_once(self, message: Message) -> bool:
        """See to a message now if nothing is before it, to spare it the way through the dispatcher."""
        if self._transport.unsent > self._limits.unsent:
            return False
        if type(message) is Response:
            self._release(message)
            return True
        if type(message) is Request and not self._is_ordered(message):
            self._begin(message, self._send)
            return True
        return False

    def input_ended(self, reason: ConnectionLost | None) -> None:
        """Note the end; `run` sees to the rest."""
        if not self._ended.is_set():
            self._reason = reason
            self._ended.set()
            self._news.set()

    async def _dispatch(self) -> None:
        """Handle what was heard, in order, until the input has ended and all of it is handled."""
        inbox = self._inbox
        while True:
            if not inbox:
                self._unread = 0
                if self._paused:
                    self._paused = False
                    self._transport.resume()
                if self._ended.is_set():
                    return
                self._news.clear()
                self._idle = True
                await self._news.wait()
                self._idle = False
                continue
            frame = inbox.popleft()
            if type(frame) is Notification:
                await self._tell(frame)
                continue
            if self._transport.unsent > self._limits.unsent and type(frame) is not Response:
                inbox.appendleft(frame)  # where it is found if this is cancelled
                await self.drain()
                inbox.popleft()
            message, answer = frame if type(frame) is Entry else (frame, self._send)
            if type(message) is Request:
                await self._start(message, answer)
            elif type(message) is Response:
                self._release(message)
            elif type(message) is Notification:
                await self._tell(message)
            else:
                self._refuse(message, answer)
            if inbox and type(frame) is not Malformed:
                await asyncio.sleep(0)  # whoever this concerns runs before the next message is looked at

    def _refuse(self, it: Invalid | Malformed, answer: Send) -> None:
        if type(it) is Malformed:
            answer(encode_error(None, it.error))
        elif it.to_us:
            self._release(it)
        else:
            answer(encode_error(it.id, it.error))

    # Notifications

    async def _tell(self, it: Notification) -> None:
        """Tell of a notification, and of those that stand right behind it: they mostly come in swarms."""
        inbox = self._inbox
        while True:
            route = self.routes.notifications.get(it.method)
            if route is not None:
                self._awaited = it
                _handled.set(it)
                try:
                    await route.handle(route.read(it.params))
                except asyncio.CancelledError:
                    if (task := asyncio.current_task()) is not None and task.cancelling():
                        raise
                    log.warning("The handler of %s raised CancelledError", it.method)
                except (KeyboardInterrupt, GeneratorExit):
                    raise
                except BaseException as e:  # noqa: BLE001  (nothing a handler raises may end the connection)
                    error_for(e, f"The notification {it.method}")
                finally:
                    self._awaited = None
            elif it.method in self.routes.urgent:
                self._tell_at_once(it)
            elif self.routes.notification_fallback is not None:
                await self._tell_fallback(it, self.routes.notification_fallback)
            if not inbox or type(behind := inbox[0]) is not Notification:
                return
            inbox.popleft()
            it = behind

    async def _tell_fallback(self, it: Notification, tell: Callable[[Notification], Awaitable[None]]) -> None:
        try:
            await tell(it)
        except Exception as e:  # noqa: BLE001
            error_for(e, f"The notification {it.method}")

    def _tell_at_once(self, it: Notification) -> None:
        route = self.routes.urgent[it.method]
        try:
            route.handle(route.read(it.params))
        except KeyboardInterrupt:
            raise
        except BaseException as e:  # noqa: BLE001
            error_for(e, f"The notification {it.method}")

    # Answers to us

    def _release(self, answer: Response | Invalid) -> None:
        pending = self._pending.pop(answer.id, None) if answer.id is not None else None
        if pending is None or pending.future.done():
            return  # an answer to nothing we asked (A5), or too late
        if type(answer) is Invalid:
            pending.future.set_exception(InvalidAnswer(f"The answer cannot be read: {answer.error.message}"))
            return
        outcome = answer.outcome
        if type(outcome) is ErrorObject:
            pending.future.set_exception(RemoteError(outcome.code, outcome.message, _read_data(outcome)))
        else:
            pending.future.set_result(outcome)

    # Requests to us

    async def _start(self, request: Request, answer: Send) -> None:
        ordered = self._is_ordered(request)
        call = self._begin(request, answer)
        if call is not None and ordered:
            call.waiter = self._loop.create_future()
            self._awaited = request
            try:
                await call.waiter
            finally:
                self._awaited = None

    def _is_ordered(self, request: Request) -> bool:
        route = self.routes.requests.get(request.method)
        return route is not None and route.ordered

    def _begin(self, request: Request, answer: Send) -> Call | None:
        """Set somebody to work on a request, unless it has to be refused."""
        if self._waiting.pop(request.id, False):
            answer(encode_error(request.id, CANCELLED))
            return None
        if len(self._work) >= self._limits.calls:
            busy = ErrorObject(InternalError.code, f"Too many requests at once; at most {self._limits.calls}")
            answer(encode_error(request.id, busy))
            return None
        route = self.routes.requests.get(request.method)
        call = self._calls[request.id] = Call(request, answer)
        context = self._context.copy()
        if route is not None and route.ordered:
            context.run(_handled.set, request)
        task = call.task = self._loop.create_task(self._serve(call, route), name=request.method, context=context)
        self._work[task] = call
        task.add_done_callback(self._served)
        return call

    async def _serve(self, call: Call, route: RequestRoute | None) -> None:
        request = call.request
        try:
            result = await self._handle(request, route)
            try:
                encoded = encode_result(request.id, result)
            except Exception as e:  # noqa: BLE001
                encoded = encode_error(request.id, error_for(e, f"Encoding the result of {request.method}"))
        except KeyboardInterrupt:
            raise
        except BaseException as e:  # noqa: BLE001  (a handler that exits or raises a cancellation is answered too)
            encoded = encode_error(request.id, error_for(e, f"The request {request.method}"))
        call.answer(encoded)
        if self._awaited is request:
            self._awaited = None
        if len(self._work) == 1:
            self._transport.flush()  # nobody else is at work who could share a system call with it

    def _served(self, task: asyncio.Task[None]) -> None:
        call = self._work.pop(task)
        if self._calls.get(call.request.id) is call:
            del self._calls[call.request.id]
        call.give_up()  # a task that is cancelled before its first step never gets to answer

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


def _read_data(error: ErrorObject) -> object:
    """Read what came with an error, unless it holds a number nobody can."""
    try:
        return None if error.data is UNSET else msgspec.json.decode(error.data)
    except msgspec.DecodeError:
        return None
