"""`Peer`: the dispatcher in the middle of a connection. It decides what is handled when.

Rules, then code:

- What arrives is handled in order (A10). A notification's handler ends before the next message is handled; a
  request's handler runs on beside, but has run to its first wait by then; a response is released in its place.
- `$/cancel_request` and urgent notifications overtake (P5).
- Every request gets exactly one response (P6), whatever its handler does.
- No line is longer than the transport's limit, in either direction (A4).
- While the other side does not read, what would have to be answered is not handled; when too much is waiting to be
  handled, the transport stops reading (P7).
- After the end of the input what was read before it is still served, for a moment; then all work is cancelled, and
  nothing of it outlives `run` but handlers that refuse to be cancelled (A11).

Requests of theirs are in `holdfast.peer.incoming`, requests of ours in `holdfast.peer.outgoing`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias, TypeVar, final, overload

import msgspec
from msgspec import UNSET, Raw

from holdfast.errors import ConnectionLost, MessageTooLarge
from holdfast.jsonrpc import (
    Batch,
    Invalid,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    decode,
    encode_error,
    encode_notification,
    oversized,
    salvaged,
)
from holdfast.peer.dropped_line import dropped_line, log_dropped_line
from holdfast.peer.faults import CANCELLED, ENDED, error_for
from holdfast.peer.incoming import BatchAnswer, IncomingRequest, IncomingRequests, fitting, handled, read_params
from holdfast.peer.limits import PeerLimits
from holdfast.peer.outgoing import CANCEL, CancelParams, OutgoingRequests, SentRequest
from holdfast.transport import Oversized

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from types import TracebackType

    from holdfast.peer.dropped_line import DroppedLine
    from holdfast.peer.routes import Routes
    from holdfast.transport import Line, Transport

log: logging.Logger = logging.getLogger(__name__)

T = TypeVar("T")

FRAME_BYTES = 256
"""What a frame costs while it waits, beside its bytes: a flood of empty ones is a flood too."""

Observer: TypeAlias = "Callable[[Literal['in', 'out'], bytes], None]"

_read_cancel = msgspec.json.Decoder(CancelParams).decode
_set_handled = handled.set


@final
class _Entry(NamedTuple):
    """One message of a batch, and where its answer goes."""

    message: Message
    batch: BatchAnswer


class Peer:
    """One end of a conversation.

    ``await peer.run()`` serves until the input ends; ``async with peer:`` does the same beside the body, for an end
    that mostly asks. `routes` may be replaced while it runs: the next message sees the new ones.
    """

    def __init__(
        self, transport: Transport, routes: Routes, *, limits: PeerLimits | None = None, answers_noise: bool = True
    ) -> None:
        """Create a peer on a transport.

        `answers_noise` says whether what is no message at all is answered with an error, as JSON-RPC has it. Programs
        that print to their stdout know nothing of answers; whoever starts some had better not give any.
        """
        self.routes = routes
        self.max_line: int = transport.max_line
        """How long a line may be, in bytes: what they send, and what we send (A4)."""
        self.on_lost: Callable[[ConnectionLost], None] | None = None
        """Is called once when no answer will come any more, after all that came before was handled."""
        self.on_dropped_line: Callable[[DroppedLine], None] | None = None
        """Is called with every line that was neither handled nor answered (A4)."""
        self._answers_noise = answers_noise
        self._transport = transport
        self._limits = limits or PeerLimits()
        self._observers: list[Observer] = []
        self._inbox: deque[Message | Malformed | _Entry] = deque()
        self._unread = 0
        self._paused = False
        self._news = asyncio.Event()
        self._ended = asyncio.Event()
        self._incoming = IncomingRequests(self.max_line, self._limits.requests, self._send)
        self._outgoing = OutgoingRequests(self.max_line, self._send)
        self._blocking: IncomingRequest | Notification | None = None  # whose handler the dispatcher waits for
        self._idle = False  # whether the dispatcher waits for something to do
        self._running: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()

    # What we send

    def notify(self, method: str, params: object = UNSET) -> None:
        """Send a notification. Never waits: whoever sends many calls `drain` now and then.

        Goes nowhere, silently, once the connection has ended: nobody is ever sure that a notification was heard.
        Raises `MessageTooLarge` for one that is longer than `max_line`.
        """
        encoded = encode_notification(method, params)
        if len(encoded) > self.max_line:
            raise MessageTooLarge(len(encoded), self.max_line)
        if self._observers:
            self._show("out", encoded)
        self._transport.send(encoded)

    @overload
    def request(self, method: str, params: object = UNSET) -> Coroutine[Any, Any, Raw]: ...
    @overload
    def request(self, method: str, params: object = UNSET, *, result: type[T]) -> Coroutine[Any, Any, T]: ...
    def request(self, method: str, params: object = UNSET, *, result: type[Any] = Raw) -> Coroutine[Any, Any, Any]:
        """Send a request and wait for its answer, decoded to `result`.

        Cancelling the wait (a timeout does it too) cancels the request over there. Raises `RemoteError` for an error
        answer, `InvalidAnswer` for one that does not fit, `ConnectionLost` when none will come, `MessageTooLarge` for
        a request that is longer than `max_line`.
        """
        return self._outgoing.request(method, params, result)

    def send_request(self, method: str, params: object = UNSET) -> SentRequest:
        """Send a request before this returns: what is sent next arrives behind it. `request` sends when it is awaited.

        Raise nothing: `SentRequest.answer` raises what kept it from being sent.
        """
        return self._outgoing.send(method, params)

    def send_block(self, *pieces: bytes) -> None:
        """Send messages that are encoded already, each a line with its newline; a piece may hold a part of them.

        Raises `MessageTooLarge`, and sends nothing, where one of them is longer than `max_line`.
        """
        if sum(map(len, pieces)) > self.max_line:  # only then can a line in it be
            longest = max(map(len, b"".join(pieces).split(b"\n")))
            if longest > self.max_line:
                raise MessageTooLarge(longest, self.max_line)
        if self._observers:
            for line in b"".join(pieces)[:-1].split(b"\n"):
                self._show("out", line)
        self._transport.send_block(*pieces)

    def flush(self) -> None:
        """Send what was queued now instead of at the end of the loop tick."""
        self._transport.flush()

    async def drain(self) -> None:
        """Wait while too much of what we sent is unread."""
        if self._transport.unsent > self._limits.unsent:
            await self._transport.drain(self._limits.unsent)

    @property
    def unsent(self) -> int:
        """How many bytes wait for the other side to read."""
        return self._transport.unsent

    def observe(self, observer: Observer) -> None:
        """Show every frame to a function: ``observer("in" | "out", line)``. It gets the very bytes, not a copy."""
        self._observers.append(observer)

    def _send(self, encoded: bytes, *, now: bool = False) -> None:
        if self._observers:
            self._show("out", encoded)
        if now:
            self._transport.send_now(encoded)
        else:
            self._transport.send(encoded)

    def _show(self, direction: Literal["in", "out"], line: bytes) -> None:
        for observer in self._observers:
            try:
                observer(direction, line)
            except Exception:
                log.exception("An observer failed")

    # What a request's handler may want of its request

    def after_answer(self, callback: Callable[[], None]) -> None:
        """Call a function right after the result of the request that is being handled was sent (P5).

        For a request in a batch that is after the array of all answers. The function is not called if an error is
        sent instead; it is called at once where no request is being handled, or its result was sent before.
        """
        request = handled.get()
        if isinstance(request, IncomingRequest):
            request.after_answer(callback)
        else:
            callback()

    def shield_request(self) -> None:
        """Leave the answer of the request that is being handled to its handler alone.

        A `$/cancel_request` for it that comes from now on changes nothing. After one that came before, the handler,
        which has seen the `CancelledError`, may take its time: it is not answered for.
        """
        request = handled.get()
        if isinstance(request, IncomingRequest):
            request.shield()

    # From the first line to the last

    async def run(self) -> None:
        """Serve until the input ends; then finish, as the rules above say."""
        self._transport.open(self)
        dispatcher = self._loop.create_task(self._dispatch(), name="dispatch")
        dispatcher.add_done_callback(lambda _: self.close())  # without it nothing would ever be answered
        try:
            await self._ended.wait()
            await self._finish(dispatcher)
        finally:
            self.close()
            self._abandon_requests()
            dispatcher.cancel()
            self._incoming.cancel_all()
            await self._wait_for({dispatcher, *self._incoming.ends}, self._limits.end_grace)
            self._answer_the_rest()
            await self._transport.close(self._limits.flush)

    def close(self) -> None:
        """End as if the input had ended here; `run` returns soon after."""
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
                self._abandon_requests()
                while ends := self._incoming.ends:
                    await asyncio.wait(ends)
        except TimeoutError:
            pass

    async def _wait_for(self, ends: set[asyncio.Future[None]], within: float) -> None:
        _, left = await asyncio.wait(ends, timeout=within)
        for end in left:
            name = end.get_name() if isinstance(end, asyncio.Task) else "A request"
            log.warning("%s does not let itself be cancelled; it is left behind", name)

    def _answer_the_rest(self) -> None:
        """Answer for handlers that were left behind, and what was never handled."""
        self._incoming.give_up_all()
        for frame in self._inbox:
            message, batch = frame if type(frame) is _Entry else (frame, None)
            if type(message) is Request:
                message = Invalid(message.id, CANCELLED if self._incoming.waiting.get(message.id) else ENDED)
            if type(message) is Invalid or type(message) is Malformed:
                self._refuse(message, batch)

    def _abandon_requests(self) -> None:
        lost = self._outgoing.lost or ConnectionLost("the connection has ended")
        self._outgoing.abandon(lost)
        on_lost, self.on_lost = self.on_lost, None
        if on_lost is not None:
            on_lost(lost)

    # What arrives

    def lines_received(self, lines: Sequence[Line]) -> None:
        """Take what arrived; handle what overtakes, and what nothing is before; queue the rest."""
        inbox, urgent, observers = self._inbox, self.routes.urgent, self._observers
        nothing_before = self._idle and not inbox
        unread = FRAME_BYTES * len(lines)
        for line in lines:
            if type(line) is Oversized:
                frame, seen = oversized(line.head, line.tail, line.limit), line.head
            else:
                frame, seen = decode(line), line
            if type(frame) is Malformed and not self._answers_noise:
                frame = salvaged(seen, frame)
            unread += len(seen)
            if observers:
                self._show("in", seen)
            if type(frame) is Notification and frame.method != CANCEL and frame.method not in urgent:
                inbox.append(frame)
            elif type(frame) is Batch:
                unread += FRAME_BYTES * len(frame.messages)
                self._take_batch(frame)
            elif type(frame) is Malformed or (type(frame) is Invalid and frame.id is None):
                self._take_noise(frame, line, seen)
            elif nothing_before and not inbox and self._handled_now(frame):
                nothing_before = False  # one at a time: the next waits until this one has run to its first wait
            elif not self._overtakes(frame):
                inbox.append(frame)
        if not inbox:
            return
        self._unread += unread
        if self._unread > self._limits.unread and not self._paused:
            self._paused = True
            self._transport.pause()
        self._news.set()

    def _handled_now(self, message: Message) -> bool:
        """Handle a message that nothing is before without the dispatcher; return whether it was."""
        if type(message) is Request:
            if self._is_ordered(message) or self._transport.unsent > self._limits.unsent:
                return False
            self._incoming.begin(message, self.routes)
            return True
        if type(message) is Response:
            self._outgoing.release(message)
            return True
        return False

    def _overtakes(self, message: Message) -> bool:
        """Handle what cannot wait for its turn; return whether nothing is left to do when that comes."""
        if type(message) is Notification:
            if message.method == CANCEL:
                self._cancel(message)
                return True
            if message.method in self.routes.urgent:
                self._notify_urgent(message)
        elif type(message) is Request:
            self._incoming.waiting[message.id] = False
        elif type(message) is Response or message.to_us:
            # The handler that asked is the one the dispatcher waits for, and so would wait for itself.
            asker = self._outgoing.asker(message.id)
            if asker is not None and asker is self._blocking:
                self._outgoing.release(message)
                return True
        return False

    def _take_batch(self, batch: Batch) -> None:
        owed = sum(type(m) is Request or (type(m) is Invalid and not m.to_us) for m in batch.messages)
        answer = BatchAnswer(owed, self.max_line, self._send)
        self._inbox.extend(_Entry(message, answer) for message in batch.messages if not self._overtakes(message))

    def _take_noise(self, frame: Invalid | Malformed, line: Line, seen: bytes) -> None:
        """Take what is no message, or a response to nobody. A blank line says nothing."""
        if not seen.strip(b" \t\r"):
            return
        if self._answers_noise and not (type(frame) is Invalid and frame.to_us):
            self._inbox.append(frame)
            return
        unreadable = type(frame) is Malformed or type(line) is Oversized or (type(frame) is Invalid and frame.to_us)
        size = line.size if type(line) is Oversized else len(line)
        dropped = dropped_line(frame.error.message, seen, size, unreadable=unreadable)
        try:
            (self.on_dropped_line or log_dropped_line)(dropped)
        except Exception:
            log.exception("Whoever is told of dropped lines failed")

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will arrive."""
        return self._ended.is_set()

    def input_ended(self, reason: ConnectionLost | None) -> None:
        """Note the end of the input; `run` does the rest."""
        if not self._ended.is_set():
            self._outgoing.lost = reason or ConnectionLost("the connection has ended")
            self._ended.set()
            self._news.set()

    async def _dispatch(self) -> None:
        """Handle what arrived, in order, until the input has ended and all of it is handled."""
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
                await self._handle_notifications(frame)
                continue
            if self._transport.unsent > self._limits.unsent and type(frame) is not Response:
                inbox.appendleft(frame)  # where it is found if this is cancelled
                await self.drain()
                inbox.popleft()
            message, batch = frame if type(frame) is _Entry else (frame, None)
            if type(message) is Request:
                await self._begin(message, batch)
            elif type(message) is Response:
                self._outgoing.release(message)
            elif type(message) is Notification:
                await self._handle_notifications(message)
            else:
                self._refuse(message, batch)
            if inbox and type(frame) is not Malformed:
                await asyncio.sleep(0)  # whoever this concerns runs before the next message is handled

    # Requests

    async def _begin(self, request: Request, batch: BatchAnswer | None) -> None:
        """Start the handler of a request; wait for the answer of an ordered one."""
        ordered = self._is_ordered(request)
        incoming = self._incoming.begin(request, self.routes, batch)
        if incoming is not None and ordered and not incoming.answered:
            incoming.waiter = self._loop.create_future()
            self._blocking = incoming
            try:
                await incoming.waiter
            finally:
                self._blocking = None

    def _is_ordered(self, request: Request) -> bool:
        route = self.routes.requests.get(request.method)
        return route is not None and route.ordered

    def _cancel(self, notification: Notification) -> None:
        try:
            id_ = _read_cancel(notification.params or b"{}").request_id
        except msgspec.DecodeError:
            return
        self._incoming.cancel(id_, self._limits.cancel_grace)

    def _refuse(self, frame: Invalid | Malformed, batch: BatchAnswer | None) -> None:
        """Answer what is no message with its error; fail the request of ours that a broken response was meant for."""
        id_ = None if type(frame) is Malformed else frame.id
        if type(frame) is Invalid and frame.to_us:
            self._outgoing.release(frame)
        elif batch is None:
            self._send(fitting(encode_error(id_, frame.error), id_, self.max_line))
        else:
            batch.add(fitting(encode_error(id_, frame.error), id_, batch.limit))

    # Notifications

    async def _handle_notifications(self, first: Notification) -> None:
        """Handle a notification, and those that stand right behind it: they mostly come in swarms."""
        inbox = self._inbox
        notification = first
        while True:
            route = self.routes.notifications.get(notification.method)
            if route is not None:
                self._blocking = notification
                _set_handled(notification)
                try:
                    await route.handle(read_params(route.decode, notification.params))
                except asyncio.CancelledError:
                    if (task := asyncio.current_task()) is not None and task.cancelling():
                        raise
                    log.warning("The handler of %s raised CancelledError", notification.method)
                except (KeyboardInterrupt, GeneratorExit):
                    raise
                except BaseException as e:  # noqa: BLE001  (nothing a handler raises may end the connection)
                    error_for(e, f"The notification {notification.method}")
                finally:
                    self._blocking = None
            elif notification.method in self.routes.urgent:
                self._notify_urgent(notification, in_place=True)
            elif self.routes.notification_fallback is not None:
                await self._notify_fallback(notification, self.routes.notification_fallback)
            if not inbox or type(behind := inbox[0]) is not Notification:
                return
            inbox.popleft()
            notification = behind

    async def _notify_fallback(
        self, notification: Notification, handle: Callable[[Notification], Awaitable[None]]
    ) -> None:
        try:
            await handle(notification)
        except Exception as e:  # noqa: BLE001
            error_for(e, f"The notification {notification.method}")

    def _notify_urgent(self, notification: Notification, *, in_place: bool = False) -> None:
        route = self.routes.urgent[notification.method]
        handle = route.in_place if in_place else route.at_once
        try:
            handle(read_params(route.decode, notification.params))
        except KeyboardInterrupt:
            raise
        except BaseException as e:  # noqa: BLE001
            error_for(e, f"The notification {notification.method}")
