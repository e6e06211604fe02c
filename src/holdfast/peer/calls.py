"""The life of one request on either side of the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.jsonrpc import encode_batch, encode_error
from holdfast.peer.faults import CANCELLED

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, Task
    from collections.abc import Callable

    from msgspec import Raw

    from holdfast.jsonrpc import Request


class Pending(NamedTuple):
    """A request of ours that waits for its answer.

    An answer is released in its place among the notifications (A10), unless the one who waits for it was called by
    the dispatcher, which would then wait for itself: such an answer is released `at_once`.
    """

    future: Future[Raw]
    at_once: bool


class Call:
    """A request of theirs that is being answered. However it goes, it is answered exactly once."""

    __slots__ = ("_answer", "answered", "request", "task")

    def __init__(self, request: Request, answer: Callable[[bytes], None]) -> None:
        self.request = request
        self.task: Task[None] | None = None
        self.answered = False
        self._answer = answer

    def answer(self, encoded: bytes) -> None:
        """Send the answer, unless there was one."""
        if not self.answered:
            self.answered = True
            self._answer(encoded)

    def cancel(self, loop: AbstractEventLoop, grace: float) -> None:
        """Cancel the work. If it does not end within `grace` seconds it is answered for."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            loop.call_later(grace, self._answer_for_it)

    def _answer_for_it(self) -> None:
        self.answer(encode_error(self.request.id, CANCELLED))


class BatchAnswer:
    """Collects the answers to one batch and sends them as one array when all are there."""

    __slots__ = ("_answers", "_expected", "_send")

    def __init__(self, expected: int, send: Callable[[bytes], None]) -> None:
        self._expected = expected
        self._send = send
        self._answers: list[bytes] = []

    def add(self, encoded: bytes) -> None:
        """Take one answer."""
        self._answers.append(encoded)
        if len(self._answers) == self._expected:
            self._send(encode_batch(self._answers))
