"""The life of one request on either side of the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias, final

from holdfast.jsonrpc import encode_batch, encode_error
from holdfast.peer.faults import CANCELLED

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, Task, TimerHandle
    from collections.abc import Callable

    from msgspec import Raw

    from holdfast.jsonrpc import Message, Request

Send: TypeAlias = "Callable[[bytes], None]"


class Pending(NamedTuple):
    """A request of ours that waits for its answer.

    An answer is released in its place among the notifications (A10), unless the handler that `asked` is one that the
    dispatcher is waiting for, and so for itself: such an answer is released at once.
    """

    future: Future[Raw]
    asked: Message | None


class Call:
    """A request of theirs that is being answered. However it goes, it is answered exactly once."""

    __slots__ = ("_answer", "_answered", "_patience", "request", "task", "waiter")

    def __init__(self, request: Request, answer: Send) -> None:
        self.request = request
        self.task: Task[None] | None = None
        self.waiter: Future[None] | None = None
        """Is told when the request is answered, which may be long before its handler ends."""
        self._answer = answer
        self._answered = False
        self._patience: TimerHandle | None = None

    def answer(self, encoded: bytes) -> None:
        """Send the answer, unless there was one."""
        if not self._answered:
            self._answered = True
            self._answer(encoded)
            if self._patience is not None:
                self._patience.cancel()  # it would hold us, and what was asked, until it runs out
            if self.waiter is not None and not self.waiter.done():
                self.waiter.set_result(None)

    def cancel(self, loop: AbstractEventLoop, grace: float) -> None:
        """Cancel the work. If it does not end within `grace` seconds it is answered for."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            self._patience = self._patience or loop.call_later(grace, self.give_up)

    def give_up(self) -> None:
        """Answer for a handler that does not."""
        self.answer(encode_error(self.request.id, CANCELLED))


@final
class Entry(NamedTuple):
    """One message of a batch, and where its answer goes."""

    message: Message
    answer: Send


class BatchAnswer:
    """Collects the answers to one batch and sends them as one array when all are there."""

    __slots__ = ("_answers", "_expected", "_send")

    def __init__(self, expected: int, send: Send) -> None:
        self._expected = expected
        self._send = send
        self._answers: list[bytes] = []

    def add(self, encoded: bytes) -> None:
        """Take one answer."""
        self._answers.append(encoded)
        if len(self._answers) == self._expected:
            self._send(encode_batch(self._answers))
