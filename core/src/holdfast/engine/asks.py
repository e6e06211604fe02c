"""The open questions of a session: which clients they are put to, whose answer counts, when there will be none (F5)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from holdfast.model import ElicitationAnswer, Permission, form_fits

if TYPE_CHECKING:
    from holdfast.engine.attachment import Attachment
    from holdfast.engine.session import LiveSession
    from holdfast.model import Answer, Question

log: logging.Logger = logging.getLogger(__name__)


class Asks:
    """The questions of one session that wait for an answer; any number may wait side by side."""

    __slots__ = ("_open", "_patience", "_session", "_timer")

    def __init__(self, session: LiveSession, patience: float) -> None:
        self._session = session
        self._patience = patience
        self._open: list[_Ask] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def can_be_answered(self, question: Question) -> bool:
        """Whether a client that is attached can answer; without any client one may still come."""
        attached = self._session.attachments
        return not attached or any(attachment.client.can_answer(question) for attachment in attached)

    async def ask(self, question: Question) -> Answer:
        """Put a question to every client that can answer it; return the first valid answer, or None."""
        ask = _Ask(question)
        self._open.append(ask)
        try:
            for attachment in self._session.attachments:
                if attachment.follows:
                    self._put(ask, attachment)
            self.clients_changed()
            return await ask.answer
        finally:
            self._open.remove(ask)
            for task in ask.put.values():
                task.cancel()

    def ask_newcomer(self, attachment: Attachment) -> None:
        """Put the open questions to a client that has now seen all that was before."""
        for ask in self._open:
            self._put(ask, attachment)

    def forget(self, attachment: Attachment) -> None:
        """Expect no answer from a client that has left."""
        for ask in self._open:
            if (task := ask.put.pop(attachment, None)) is not None:
                task.cancel()
            ask.without_answer.discard(attachment)

    def give_up(self) -> None:
        """Expect no answer from any client: whoever waits gets None."""
        for ask in self._open:
            ask.settle(None)

    def clients_changed(self) -> None:
        """Give up the questions that nobody here can answer; without any client, wait for one, but not for ever."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._session.attachments:
            for ask in self._open:
                self._give_up_if_hopeless(ask)
        elif self._open:
            self._timer = asyncio.get_running_loop().call_later(self._patience, self.give_up)

    def _put(self, ask: _Ask, attachment: Attachment) -> None:
        async def put() -> None:
            answer = None
            try:
                answer = await attachment.client.ask(ask.question)
            except Exception as e:  # noqa: BLE001  (whatever went wrong over there, it is no answer)
                log.info("A question got no answer: %r", e)
            finally:
                self._take(ask, attachment, answer)

        if not attachment.client.can_answer(ask.question):
            ask.without_answer.add(attachment)
        elif attachment not in ask.put:
            ask.put[attachment] = asyncio.get_running_loop().create_task(put(), name="ask")

    def _take(self, ask: _Ask, attachment: Attachment, answer: Answer) -> None:
        """Take an answer. A client whose answer is none is not asked again, but others may still answer."""
        if _is_valid(ask.question, answer):
            ask.settle(answer)
        else:
            ask.without_answer.add(attachment)
            self._give_up_if_hopeless(ask)

    def _give_up_if_hopeless(self, ask: _Ask) -> None:
        attached = self._session.attachments
        if attached and ask.without_answer.issuperset(attached):
            ask.settle(None)


class _Ask:
    """A question, the clients it was put to, and those that had no answer to it."""

    __slots__ = ("answer", "put", "question", "without_answer")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.put: dict[Attachment, asyncio.Task[None]] = {}
        self.without_answer: set[Attachment] = set()

    def settle(self, answer: Answer) -> None:
        """Take the first answer; later ones come too late."""
        if not self.answer.done():
            self.answer.set_result(answer)


def _is_valid(question: Question, answer: Answer) -> bool:
    if isinstance(question, Permission):
        return question.chosen(answer) is not None
    if not isinstance(answer, ElicitationAnswer):
        return False
    is_filled_form = question.mode == "form" and answer.action == "accept"
    return not is_filled_form or form_fits(question.params.get("requestedSchema"), answer.content)
