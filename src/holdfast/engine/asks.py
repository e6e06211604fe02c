"""The open questions of a turn: to whom they are put, whose answer counts, and when there will be none (C8)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from holdfast.model import ElicitationAnswer, Permission

if TYPE_CHECKING:
    from holdfast.engine.session import Attachment, LiveSession
    from holdfast.model import Answer, Question

log = logging.getLogger(__name__)


class Asks:
    """The questions that wait for an answer; any number may wait side by side."""

    def __init__(self, session: LiveSession) -> None:
        self._session = session
        self._open: list[_Ask] = []

    def __len__(self) -> int:
        return len(self._open)

    async def put(self, question: Question) -> Answer:
        """Put a question to everybody who watches; give the first answer, or None where nobody has one."""
        ask = _Ask(question)
        self._open.append(ask)
        try:
            for attachment in self._session.attachments:
                if attachment.follows:
                    self._put(ask, attachment)
            self._give_up_if_hopeless(ask)
            return await ask.answer
        finally:
            self._open.remove(ask)
            for task in ask.put.values():
                task.cancel()

    def put_to_newcomer(self, attachment: Attachment) -> None:
        """Put what is open to somebody who has only now seen all that was before."""
        for ask in self._open:
            self._put(ask, attachment)

    def forget(self, attachment: Attachment) -> None:
        """Expect no answer from somebody who has left."""
        for ask in self._open:
            if (task := ask.put.pop(attachment, None)) is not None:
                task.cancel()
            self._give_up_if_hopeless(ask)

    def give_up(self) -> None:
        """Expect no answer from anybody."""
        for ask in self._open:
            ask.settle(None)

    def _put(self, ask: _Ask, attachment: Attachment) -> None:
        async def put() -> None:
            answer = None
            try:
                answer = await attachment.watcher.ask(ask.question)
            except Exception as e:  # noqa: BLE001  (whatever went wrong over there, it is no answer)
                log.info("A question got no answer: %r", e)
            finally:
                self._hear(ask, attachment, answer)

        ask.put[attachment] = asyncio.get_running_loop().create_task(put(), name="ask")

    def _hear(self, ask: _Ask, attachment: Attachment, answer: Answer) -> None:
        """Take an answer. Whoever gives none that fits is not asked again, but others may still answer."""
        if _fits(ask.question, answer):
            ask.settle(answer)
        else:
            ask.silent.add(attachment)
            self._give_up_if_hopeless(ask)

    def _give_up_if_hopeless(self, ask: _Ask) -> None:
        if ask.silent.issuperset(self._session.attachments):
            ask.settle(None)


class _Ask:
    """A question, to whom it was put, and who had no answer to it."""

    __slots__ = ("answer", "put", "question", "silent")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.put: dict[Attachment, asyncio.Task[None]] = {}
        self.silent: set[Attachment] = set()

    def settle(self, answer: Answer) -> None:
        """Take the first answer; later ones come too late."""
        if not self.answer.done():
            self.answer.set_result(answer)


def _fits(question: Question, answer: Answer) -> bool:
    return (
        question.chosen(answer) is not None
        if isinstance(question, Permission)
        else isinstance(answer, ElicitationAnswer)
    )
