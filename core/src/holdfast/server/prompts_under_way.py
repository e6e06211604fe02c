"""The prompts of one connection, each from the moment it is read to the end of its turn.

`session/cancel` cancels the prompts that arrived before it (C6). Some of them are in no session's line yet: the session
may have to be brought back first, or the login looked up.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.errors import RequestCancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from holdfast.engine import OpenTurn
    from holdfast.model import TurnEnd


class _Arrival:
    """A prompt that was read and is not in line yet."""

    __slots__ = ("cancelled", "session", "task")

    def __init__(self, session: str, task: asyncio.Task[Any]) -> None:
        self.session = session
        self.task = task
        self.cancelled = False


class PromptsUnderWay:
    """The prompts of a connection that were read and whose turns have not ended."""

    def __init__(self, id_of: Callable[[str], str]) -> None:
        """`id_of` returns our id of a session, whatever the client calls it."""
        self._id_of = id_of
        self._arriving: dict[_Arrival, None] = {}
        self._turns: dict[OpenTurn, str] = {}

    @contextmanager
    def arriving(self, session_id: str) -> Generator[None]:
        """Hold the prompt that the running task has read, until it is in line.

        Raise `RequestCancelled` where it is cancelled before.
        """
        task = asyncio.current_task()
        assert task is not None
        arrival = _Arrival(session_id, task)
        self._arriving[arrival] = None
        try:
            yield
        except asyncio.CancelledError:
            if not arrival.cancelled:
                raise
        finally:
            del self._arriving[arrival]
        if arrival.cancelled:
            task.uncancel()
            raise RequestCancelled("The prompt was cancelled before its turn came")

    def in_line(self, turn: OpenTurn) -> None:
        """Note the turn of a prompt, until it ends."""
        self._turns[turn] = turn.session.id

        def forget(_: TurnEnd) -> None:
            self._turns.pop(turn, None)

        turn.when_ended(forget)

    def cancel(self, session_id: str) -> None:
        """Cancel all that have arrived for a session. They may be cancelled before."""
        for arrival in self._arriving:
            if self._id_of(arrival.session) == session_id and not arrival.cancelled:
                arrival.cancelled = True
                arrival.task.cancel()
        for turn, of in reversed(list(self._turns.items())):
            if of == session_id:
                turn.session.cancel_turn(turn)
