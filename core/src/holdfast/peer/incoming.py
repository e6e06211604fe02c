"""What the other side asks of us: which handler runs, and that every request is answered exactly once (P6).

`IncomingRequests` runs each handler in a task of its own. In which order requests begin is decided by the peer, what
becomes of the bytes of an answer by the function it is given.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Protocol, final

import msgspec
from msgspec import Raw

from holdfast.errors import InternalError, InvalidParams, MessageTooLarge, MethodNotFound
from holdfast.jsonrpc import ErrorObject, Id, encode_batch, encode_error, encode_result
from holdfast.peer.faults import CANCELLED, ENDED, error_for

if TYPE_CHECKING:
    from asyncio import Future, Task, TimerHandle
    from collections.abc import Awaitable, Callable

    from holdfast.jsonrpc import Notification, Request
    from holdfast.peer.routes import Decode, RequestRoute, Routes

log: logging.Logger = logging.getLogger(__name__)

handled: ContextVar[IncomingRequest | Notification | None] = ContextVar("handled", default=None)
"""What the code that runs now was called for; tasks that a handler starts inherit it."""

_NO_PARAMS = Raw(b"{}")


class Send(Protocol):
    """Sends an encoded message at the end of the loop tick, or now."""

    def __call__(self, encoded: bytes, *, now: bool = False) -> None: ...


def read_params(decode: Decode, params: Raw | None) -> Any:
    """Return parameters in the type a handler wants; raise `InvalidParams` where they do not fit."""
    if params is None:
        params = _NO_PARAMS
    if decode is None:
        return params
    try:
        return decode(params)
    except msgspec.ValidationError as e:
        raise InvalidParams(str(e)) from None


def fitting(encoded: bytes, id_: Id | None, limit: int) -> bytes:
    """Return an answer, or in place of one that is longer than `limit` the error that says so (A4)."""
    if len(encoded) <= limit:
        return encoded
    error = error_for(MessageTooLarge(len(encoded), limit), "An answer")
    encoded = encode_error(id_, error)
    return encoded if len(encoded) <= limit else encode_error(None, error)  # the id alone may be too long


class BatchAnswer:
    """Collects the answers to one batch and sends them as one array when all are there (A3).

    Only where that array would be longer than a line may be, it is sent as several.
    """

    __slots__ = ("_answers", "_expected", "_max_line", "_send", "after", "limit", "sent")

    def __init__(self, expected: int, max_line: int, send: Send) -> None:
        self.limit: int = max_line - 2
        """How long one answer may be: the brackets around it count too."""
        self.sent: bool = False
        self.after: list[Callable[[], None]] = []
        """What is called when all answers are sent."""
        self._expected = expected
        self._max_line = max_line
        self._send = send
        self._answers: list[bytes] = []

    def add(self, encoded: bytes) -> None:
        """Take one answer."""
        self._answers.append(encoded)
        if len(self._answers) == self._expected:
            self._send_all()
            self.sent, self._send, self._answers = True, _send_nowhere, []
            call_all(self.after)
            self.after = []

    def _send_all(self) -> None:
        array: list[bytes] = []
        size = 1  # a bracket; each answer has a comma or a bracket behind it
        for encoded in self._answers:
            if array and size + len(encoded) + 1 > self._max_line:
                self._send(encode_batch(array))
                array, size = [], 1
            array.append(encoded)
            size += len(encoded) + 1
        self._send(encode_batch(array))


@final
class IncomingRequest:
    """A request of theirs while its handler runs. However that ends, it is answered exactly once."""

    __slots__ = (
        "_after", "_batch", "_limit", "_patience", "_send", "_shielded", "_succeeded", "answered", "begun", "cancelled",
        "ended", "id", "method", "on_cancel", "others", "task", "waiter",
    )  # fmt: skip

    def __init__(self, id_: Id, max_line: int, send: Send, batch: BatchAnswer | None, method: str = "") -> None:
        self.id: Id = id_
        self.method: str = method
        self.task: Task[None] | None = None
        self.waiter: Future[None] | None = None
        """Is set when the request is answered, which may be long before its handler ends."""
        self.on_cancel: Callable[[], None] | None = None
        """Is called when it is cancelled; only where it has no task."""
        self.others: IncomingRequests | None = None
        """Those it is one of, where it has no task and has not been answered."""
        self.answered: bool = False
        self.begun: bool = False
        self.cancelled: bool = False
        self.ended: bool = False
        """Whether it is cancelled because the connection ends, and not by the other side."""
        self._limit = max_line if batch is None else batch.limit
        self._send = send
        self._batch = batch
        self._after: list[Callable[[], None]] | None = None
        self._succeeded = False
        self._shielded = False
        self._patience: TimerHandle | None = None

    def succeed(self, result: object, *, now: bool = False) -> None:
        """Answer with a result."""
        try:
            encoded = encode_result(self.id, result)
        except Exception as e:  # noqa: BLE001
            self.answer(
                encode_error(self.id, error_for(e, f"Encoding the result of {self.method}")), failed=True, now=now
            )
        else:
            self.answer(encoded, now=now)

    def fail(self, error: BaseException, *, now: bool = False) -> None:
        """Answer with an error."""
        if self.ended and isinstance(error, asyncio.CancelledError):
            self.give_up()
        else:
            self.answer(encode_error(self.id, error_for(error, f"The request {self.method}")), failed=True, now=now)

    def answer(self, encoded: bytes, *, failed: bool = False, now: bool = False) -> None:
        """Send the answer, unless there was one."""
        if self.answered:
            return
        if len(encoded) > self._limit:
            failed, encoded = True, fitting(encoded, self.id, self._limit)
        self.answered, self._succeeded = True, not failed
        after = None if failed else self._after
        if self._batch is not None:
            self._batch.after += after or ()
            self._batch.add(encoded)
        else:
            # Where nobody else is at work there is nobody it could share a system call with.
            self._send(encoded, now=now or (self.others is not None and self.others.is_alone))
            if after is not None:
                call_all(after)
        # Tasks that the handler leaves running hold us; we must not hold the whole connection for them.
        self._after, self._send = None, _send_nowhere
        if self._patience is not None:
            self._patience.cancel()
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)
        if self.others is not None:
            others, self.others, self.on_cancel = self.others, None, None
            others.end(self)

    def give_up(self) -> None:
        """Answer for a handler that does not."""
        if not self.answered:
            self.answer(encode_error(self.id, ENDED if self.ended else CANCELLED), failed=True)

    def after_answer(self, callback: Callable[[], None]) -> None:
        """Call a function once the result is sent; see `Peer.after_answer`."""
        if not self.answered:
            self._after = [*(self._after or ()), callback]
        elif self._succeeded and self._batch is not None and not self._batch.sent:
            self._batch.after.append(callback)
        elif self._succeeded:
            callback()

    def cancel(self) -> None:
        """Cancel the handler; one that has not begun never does."""
        self.cancelled = True
        if self.on_cancel is not None:
            self.on_cancel()
        elif self.begun and self.task is not None:
            self.task.cancel()

    def cancel_requested(self, grace: float) -> None:
        """Cancel the handler for the other side, once. One that has not ended `grace` seconds later is answered for."""
        if not (self.answered or self.cancelled or self._shielded):
            self.cancel()
            if not (self.answered or self._shielded):
                self._patience = asyncio.get_running_loop().call_later(grace, self.give_up)

    def shield(self) -> None:
        """Leave the answer to the handler alone, whatever the other side cancels; see `Peer.shield_request`."""
        self._shielded = True
        if self._patience is not None:
            self._patience.cancel()


class IncomingRequests:
    """The requests of the other side that wait or are at work."""

    def __init__(self, max_line: int, at_most: int, send: Send) -> None:
        """`at_most` handlers run at once; more requests than that are refused."""
        self.waiting: dict[Id, bool] = {}
        """Those whose turn has not come; true once cancelled."""
        self._by_id: dict[Id, IncomingRequest] = {}
        self._at_work: set[IncomingRequest] = set()
        self._max_line = max_line
        self._at_most = at_most
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()

    @property
    def ends(self) -> set[Future[None]]:
        """What completes when a handler has ended, of all that run."""
        return {self._end_of(incoming) for incoming in self._at_work}

    def _end_of(self, incoming: IncomingRequest) -> Future[None]:
        if incoming.task is not None:
            return incoming.task
        incoming.waiter = incoming.waiter or self._loop.create_future()
        return incoming.waiter

    @property
    def is_alone(self) -> bool:
        """Whether there is only one."""
        return len(self._at_work) == 1

    def begin(self, request: Request, routes: Routes, batch: BatchAnswer | None = None) -> IncomingRequest | None:
        """Start the handler of a request; return `None` where it was refused instead."""
        incoming = IncomingRequest(request.id, self._max_line, self._send, batch, request.method)
        if self.waiting.pop(request.id, False):
            incoming.give_up()
            return None
        if len(self._at_work) >= self._at_most:
            busy = ErrorObject(InternalError.code, f"Too many requests at once; at most {self._at_most}")
            incoming.answer(encode_error(request.id, busy), failed=True)
            return None
        self._by_id[request.id] = incoming
        self._at_work.add(incoming)
        context = self._context.copy()
        route = routes.requests.get(request.method)
        if route is not None and route.at_once is not None and context.run(self._taken, incoming, request, route):
            return incoming
        context.run(handled.set, incoming)
        serving = self._serve(incoming, request, routes)
        incoming.task = self._loop.create_task(serving, name=request.method, context=context)
        return incoming

    def _taken(self, incoming: IncomingRequest, request: Request, route: RequestRoute) -> bool:
        """Let the handler take a request that needs no task; return whether it did."""
        assert route.at_once is not None
        handled.set(incoming)
        incoming.others = self
        try:
            if route.at_once(read_params(route.decode, request.params), incoming):
                return True
        except Exception as e:  # noqa: BLE001
            incoming.fail(e)
            return True
        incoming.others = None
        return False

    async def _serve(self, incoming: IncomingRequest, request: Request, routes: Routes) -> None:
        incoming.begun = True
        try:
            result = await _call_handler(incoming, request, routes)
        except KeyboardInterrupt:
            incoming.give_up()
            self.end(incoming)
            raise
        except BaseException as e:  # noqa: BLE001  (a handler that exits or raises a cancellation is answered too)
            incoming.fail(e, now=self.is_alone)
        else:
            incoming.succeed(result, now=self.is_alone)
        self.end(incoming)

    def end(self, incoming: IncomingRequest) -> None:
        """Forget a request whose handler has ended."""
        self._at_work.discard(incoming)
        incoming.task = None
        if self._by_id.get(incoming.id) is incoming:
            del self._by_id[incoming.id]

    def cancel(self, id_: Id, grace: float) -> None:
        """Cancel a request for the other side (A9)."""
        if (incoming := self._by_id.get(id_)) is not None:
            incoming.cancel_requested(grace)
        elif id_ in self.waiting:
            self.waiting[id_] = True

    def cancel_all(self) -> None:
        """Cancel all handlers: the connection ends."""
        for incoming in list(self._at_work):
            incoming.ended = not incoming.cancelled
            incoming.cancel()

    def give_up_all(self) -> None:
        """Answer for all handlers that have not."""
        for incoming in list(self._at_work):
            incoming.give_up()


def _call_handler(incoming: IncomingRequest, request: Request, routes: Routes) -> Awaitable[object]:
    if incoming.cancelled:
        raise asyncio.CancelledError
    route = routes.requests.get(request.method)
    if route is not None:
        return route.handle(read_params(route.decode, request.params))
    if routes.fallback is not None:
        return routes.fallback(request)
    raise MethodNotFound(f"Unknown method: {request.method[:200]}")


def _send_nowhere(encoded: bytes, *, now: bool = False) -> None:
    """Drop a message: the answer it would be was sent before."""


def call_all(callbacks: list[Callable[[], None]]) -> None:
    """Call functions; one that raises does not keep the others from being called."""
    for callback in callbacks:
        try:
            callback()
        except Exception:
            log.exception("What was to follow an answer failed")
