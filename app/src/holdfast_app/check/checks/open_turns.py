"""A turn that is still running, to be cancelled, closed or killed.

An agent that talks for long has one. A quick agent has one while its question is open: the user has not answered yet.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast_app.check.outcomes import NotTested

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast_app.check.session import Session, Turn
    from holdfast_app.check.trial import Trial
    from holdfast_app.check.wire import Json, Response

PERMISSION = "session/request_permission"
TOO_QUICK = (
    "its turns are over before anything can happen in the middle of one: give --prompt-long something that takes "
    "seconds, or --prompt-ask (with --option, if a mode is needed) something that asks for permission"
)


class OpenTurn:
    """A turn that had not ended when it was last looked at. Questions in it stay open until `answer_as_cancelled`."""

    def __init__(self, session: Session, text: str) -> None:
        self.text = text
        """What the user has said."""
        self._session = session
        self._left_open = asyncio.Event()
        self._answerer = session.wire.answerers.get(PERMISSION)
        session.wire.answerers[PERMISSION] = self._ask
        self._start, self._asked = len(session.wire.frames), len(session.wire.asked)
        self._prompt: asyncio.Future[Response] = session.begin(text)

    @property
    def is_over(self) -> bool:
        """Whether it has ended: version 1 says so by the answer, version 2 by a state."""
        return is_over(self._session, self._prompt, self._start)

    @property
    def has_question(self) -> bool:
        """Whether the agent has asked for permission in it."""
        return any(method == PERMISSION for method, _ in self._session.wire.asked[self._asked :])

    @property
    def is_answered(self) -> bool:
        """Whether its prompt was answered."""
        return self._prompt.done()

    async def runs(self, pieces: int, settled: float) -> bool:
        """Wait until the agent has said so many pieces, or asks; return whether the turn goes on `settled` s later.

        Raises `NotTested` where the agent says nothing at all, or goes away.
        """
        wire = self._session.wire

        def seen() -> bool:
            return self._session.pieces(self._start) >= pieces or self.has_question or self.is_over

        heard = await wire.until(lambda: seen() or wire.ended, wire.deadline)
        if wire.ended or not heard:
            raise NotTested("the agent said nothing that could be interrupted; see --prompt-long")
        if not self.has_question:
            await wire.until(lambda: self.is_over, settled)
        return not self.is_over

    def answer_as_cancelled(self) -> None:
        """Answer the questions that are open, as a client does whose user has cancelled."""
        self._left_open.set()
        if self._answerer is None:
            self._session.wire.answerers.pop(PERMISSION, None)
        else:
            self._session.wire.answerers[PERMISSION] = self._answerer

    async def end(self) -> Turn:
        """Wait for its end."""
        return await self._session.end_of(self._prompt, self._start)

    async def _ask(self, _params: dict[str, Json]) -> Json:
        await self._left_open.wait()
        return {"outcome": {"outcome": "cancelled"}}


def is_over(session: Session, prompt: asyncio.Future[Response], start: int) -> bool:
    """Whether a turn has ended: version 1 says so by the answer, version 2 by a state."""
    told = any("stopReason" in update.body for update in session.updates(start))
    return told or (prompt.done() and session.ends_with_answer)


def ways(trial: Trial) -> Sequence[str]:
    """Return the prompts to try, the best first."""
    return tuple(dict.fromkeys((trial.prompts.long, trial.prompts.ask)))


async def open_turn(trial: Trial, session: Session) -> OpenTurn:
    """Begin a turn that goes on; raise `NotTested` where the agent is too quick."""
    for text in ways(trial):
        turn = OpenTurn(session, text)
        if await turn.runs(1, trial.quiet):
            return turn
        turn.answer_as_cancelled()
    raise NotTested(TOO_QUICK)


async def cancelled_turn(trial: Trial, session: Session) -> Turn:
    """Cancel a turn that goes on, and return how it ended."""
    turn = await open_turn(trial, session)
    session.cancel()
    turn.answer_as_cancelled()
    return await turn.end()
