"""The agent behind us in a chain: a conductor carries what we send it, and what it sends us (G10).

Towards `AgentProcess` this is a transport like that of a process. Every request and notification is put into a
`wrap/successor` of its own on the connection to the conductor; the answer to it is the successor's. The conductor
starts and ends the successor; that is not ours.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import AgentRefused, ConnectionLost, RemoteError
from holdfast.jsonrpc import (
    ErrorObject,
    Notification,
    Request,
    Response,
    decode,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
)

if TYPE_CHECKING:
    from holdfast.engine import ConnectedClient
    from holdfast.transport import Receiver

SUCCESSOR = "proxy/successor"
CANCEL = "$/cancel_request"


class SuccessorTransport:
    """Carries messages to the agent behind us, and from it, through a conductor."""

    name = "the agent behind this proxy"
    stdout = stderr = ""
    is_ending = False
    unsent = 0

    def __init__(self, conductor: ConnectedClient, max_line: int) -> None:
        self.max_line = max_line
        self._conductor = conductor
        self._receiver: Receiver | None = None
        self._asking: dict[object, asyncio.Task[None]] = {}
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._ids = itertools.count()
        self._loop = asyncio.get_running_loop()

    def open(self, receiver: Receiver) -> None:
        """Begin to hand over what comes."""
        self._receiver = receiver

    # What we send

    def send(self, line: bytes) -> None:
        """Send a message to the successor; what answers a request of its own goes back as that answer."""
        frame = decode(line)
        if isinstance(frame, Request):
            task = self._loop.create_task(self._ask(frame), name=f"{frame.method} to the successor")
            self._asking[frame.id] = task
            task.add_done_callback(lambda _: self._asking.pop(frame.id, None))
        elif isinstance(frame, Notification):
            self._tell(frame)
        elif isinstance(frame, Response) and isinstance(frame.id, int):
            self._answer(frame)

    def send_now(self, line: bytes) -> None:
        """Send a message."""
        self.send(line)

    def send_block(self, *pieces: bytes) -> None:
        """Send messages."""
        for line in b"".join(pieces).splitlines():
            self.send(line)

    async def _ask(self, request: Request) -> None:
        try:
            result = await self._conductor.request(SUCCESSOR, _envelope(request))
        except RemoteError as e:
            data = msgspec.UNSET if e.data is None else msgspec.Raw(msgspec.json.encode(e.data))
            self._hear(encode_error(request.id, ErrorObject(e.code, e.message, data)))
        except ConnectionLost as e:
            if self._receiver is not None:
                self._receiver.input_ended(e)
        else:
            self._hear(encode_result(request.id, result))

    def _tell(self, notification: Notification) -> None:
        if notification.method != CANCEL:
            self._conductor.notify(SUCCESSOR, _envelope(notification))
            return
        asked = msgspec.json.decode(notification.params or b"{}").get("requestId")
        if (task := self._asking.get(asked)) is not None:
            task.cancel()  # which cancels the request that carries it, hop by hop

    def _answer(self, response: Response) -> None:
        future = self._asked.pop(response.id, None) if isinstance(response.id, int) else None
        if future is None or future.done():
            return
        outcome = response.outcome
        if isinstance(outcome, ErrorObject):
            data = None if outcome.data is msgspec.UNSET else msgspec.json.decode(outcome.data)
            future.set_exception(AgentRefused(outcome.code, outcome.message, data))
        else:
            future.set_result(msgspec.json.decode(outcome))

    # What the successor sends

    async def deliver_request(self, method: str, params: Any) -> object:
        """Take a request of the successor and return our answer."""
        request_id = next(self._ids)
        future = self._asked[request_id] = self._loop.create_future()
        self._hear(encode_request(request_id, method, msgspec.UNSET if params is None else params))
        try:
            return await future
        finally:
            if self._asked.pop(request_id, None) is not None:
                self._hear(encode_notification(CANCEL, {"requestId": request_id}))

    def deliver_notification(self, method: str, params: Any) -> None:
        """Take a notification of the successor."""
        self._hear(encode_notification(method, msgspec.UNSET if params is None else params))

    def _hear(self, line: bytes) -> None:
        if self._receiver is not None:
            self._receiver.lines_received([line])

    # The rest of what a transport does; the connection to the conductor does it for us

    def keep_output(self, line: bytes) -> None:
        """Keep nothing: what the successor prints is the conductor's."""

    def flush(self) -> None:
        """Wait for nothing."""

    def pause(self) -> None:
        """Read on: a conductor has no other way to slow the successor down."""

    def resume(self) -> None:
        """Read on."""

    async def drain(self, below: int) -> None:
        """Wait for nothing."""

    async def close(self, flush_for: float) -> None:  # noqa: ARG002
        """Give up what is not answered."""
        self._receiver = None
        for task in list(self._asking.values()):
            task.cancel()


def _envelope(message: Request | Notification) -> dict[str, Any]:
    wrapped: dict[str, Any] = {"method": message.method}
    return wrapped if message.params is None else {**wrapped, "params": message.params}
