"""What we ask of the other side: requests of ours that wait for their answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from holdfast.errors import InvalidAnswer, MessageTooLarge, RemoteError
from holdfast.jsonrpc import ErrorObject, Id, Invalid, encode_notification, encode_request
from holdfast.peer.incoming import IncomingRequest, handled

if TYPE_CHECKING:
    from asyncio import Future

    from holdfast.errors import ConnectionLost
    from holdfast.jsonrpc import Notification, Response
    from holdfast.peer.incoming import Send

CANCEL = "$/cancel_request"

AWAKE_SECONDS = 80e-6
"""How long an answer is waited for without sleep, where it is the only one. A core that slept takes as long to wake."""


class CancelParams(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of `$/cancel_request`."""

    request_id: Id


class OutgoingRequest(NamedTuple):
    """A request of ours that waits for its answer."""

    future: Future[Raw]
    asked_by: IncomingRequest | Notification | None
    """What the code that asks was called for."""


class SentRequest:
    """A request of ours that was sent, or could not be; `answer` says what came of it."""

    __slots__ = ("_future", "_id", "_method", "_outgoing")

    def __init__(self, outgoing: OutgoingRequests, id_: Id | None, future: Future[Raw], method: str) -> None:
        self._outgoing = outgoing
        self._id = id_
        self._future = future
        self._method = method

    async def answer(self, result: type[Any] = Raw) -> Any:
        """Wait for the answer; return or raise what `Peer.request` would."""
        return await self._outgoing.answer(self._id, self._future, self._method, result)


class OutgoingRequests:
    """The requests of ours that wait."""

    def __init__(self, max_line: int, send: Send) -> None:
        self.lost: ConnectionLost | None = None
        """Why no answer can come any more; no request is sent from then on."""
        self._waiting: dict[Id, OutgoingRequest] = {}
        self._next_id = 0
        self._max_line = max_line
        self._send = send
        self._loop = asyncio.get_running_loop()

    async def request(self, method: str, params: object, result: type[Any]) -> Any:
        """Send a request and wait for its answer; see `Peer.request`."""
        return await self.answer(*self._begin(method, params), method, result)

    def send(self, method: str, params: object) -> SentRequest:
        """Send a request now, and leave the waiting for later; see `Peer.send_request`."""
        try:
            id_, future = self._begin(method, params)
        except Exception as e:  # noqa: BLE001
            id_, future = None, self._loop.create_future()
            future.set_exception(e)
        future.add_done_callback(_retrieve)  # its sender may end before it waits
        return SentRequest(self, id_, future, method)

    def _begin(self, method: str, params: object) -> tuple[Id, Future[Raw]]:
        if self.lost is not None:
            raise self.lost
        id_ = self._next_id
        encoded = encode_request(id_, method, params)
        if len(encoded) > self._max_line:
            raise MessageTooLarge(len(encoded), self._max_line)
        self._next_id += 1
        future: Future[Raw] = self._loop.create_future()
        self._waiting[id_] = OutgoingRequest(future, handled.get())
        alone = len(self._waiting) == 1
        self._send(encoded, now=alone)  # where it is alone there is nothing it could share a system call with
        if alone:
            self._stay_awake(future, self._loop.time() + AWAKE_SECONDS)
        return id_, future

    async def answer(self, id_: Id | None, future: Future[Raw], method: str, result: type[Any]) -> Any:
        """Wait for the answer to a request that was sent; cancel the request if the wait is cancelled."""
        try:
            raw = await future
        except asyncio.CancelledError:
            if self.lost is None and id_ is not None:
                self._send(encode_notification(CANCEL, CancelParams(id_)))
            raise
        finally:
            if id_ is not None:
                self._waiting.pop(id_, None)
        if result is Raw:
            return raw
        try:
            return msgspec.json.decode(raw, type=result)
        except msgspec.DecodeError as e:
            raise InvalidAnswer(f"The answer to {method} does not fit: {e}") from None

    def _stay_awake(self, answer: Future[Raw], until: float) -> None:
        """Keep the loop from sleeping for a moment: to wake it up takes longer than most answers do."""
        if not answer.done() and self._loop.time() < until:
            self._loop.call_soon(self._stay_awake, answer, until)

    def asker(self, id_: Id | None) -> IncomingRequest | Notification | None:
        """Return whose handler waits for an answer; nothing once that handler's own request is answered."""
        waiting = None if id_ is None else self._waiting.get(id_)
        asker = None if waiting is None else waiting.asked_by
        return None if isinstance(asker, IncomingRequest) and asker.answered else asker

    def release(self, answer: Response | Invalid) -> None:
        """Give an answer to whoever waits for it. One to nothing we asked, or too late, is ignored (A5)."""
        waiting = None if answer.id is None else self._waiting.pop(answer.id, None)
        if waiting is None or waiting.future.done():
            return
        if type(answer) is Invalid:
            waiting.future.set_exception(InvalidAnswer(f"The answer cannot be read: {answer.error.message}"))
            return
        outcome = answer.outcome
        if type(outcome) is ErrorObject:
            waiting.future.set_exception(RemoteError(outcome.code, outcome.message, _read_data(outcome)))
        else:
            waiting.future.set_result(outcome)

    def abandon(self, lost: ConnectionLost) -> None:
        """Fail all that wait: no answer will come."""
        for waiting in self._waiting.values():
            if not waiting.future.done():
                waiting.future.set_exception(lost)


def _retrieve(future: Future[Raw]) -> None:
    if not future.cancelled():
        future.exception()


def _read_data(error: ErrorObject) -> object:
    """Return what came with an error; nothing if that holds a number nobody can read."""
    try:
        return None if error.data is UNSET else msgspec.json.decode(error.data)
    except msgspec.DecodeError:
        return None
