"""A connection's eye on a session: an engine's `Watcher` that speaks through a peer."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.errors import ConnectionLost, RemoteError
from holdfast.format import stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from msgspec import Raw

    from holdfast.engine import Attachment
    from holdfast.model import Answer, Event, Question, Update
    from holdfast.peer import Peer

log = logging.getLogger(__name__)


class Lowering(Protocol):
    """What a surface makes of events."""

    def live(self, events: Sequence[Event]) -> bytes:
        """Say what happened, as whole lines."""
        ...

    def past(self, block: bytes) -> tuple[bytes, ...]:
        """Say what is stored, as whole lines, in pieces."""
        ...

    def quiet(self, message_id: str) -> None:
        """Do not repeat this message to whoever has just said it."""
        ...


class Asks(Protocol):
    """What a surface makes of questions."""

    def request(self, session_id: str, question: Question) -> tuple[str, Update] | None:
        """Say which request asks a question, if any can."""
        ...

    def answer(self, question: Question, result: Raw) -> Answer:
        """Read an answer."""
        ...


class Watch:
    """One session, as one connection shows it."""

    def __init__(self, peer: Peer, session_id: str, lowering: Lowering, asks: Asks, services: frozenset[str]) -> None:
        self.lowering = lowering
        self.attachment: Attachment | None = None
        self.equipment: object = None
        """What its client gives to the session, for when it has to be brought back (B18)."""
        self.offered = services
        self._peer = peer
        self._session_id = session_id
        self._asks = asks

    @property
    def backlog(self) -> int:
        """How much the client has not read."""
        return self._peer.unsent

    async def drain(self) -> None:
        """Wait until the client has read most of it."""
        await self._peer.drain()

    def show(self, events: Sequence[Event]) -> None:
        """Send what happened."""
        if block := self.lowering.live(events):
            self._peer.send_block(block)

    async def replay(self, blocks: Sequence[bytes]) -> None:
        """Send what is stored, no faster than the client reads it."""
        for block in blocks:
            if pieces := self.lowering.past(block):
                self._peer.send_block(*pieces)
                await self._peer.drain()

    async def ask(self, question: Question) -> Answer:
        """Ask the client."""
        request = self._asks.request(self._session_id, question)
        if request is None:
            return None
        try:
            return self._asks.answer(question, await self._peer.request(*request))
        except (RemoteError, ConnectionLost) as e:
            log.info("A question got no answer: %s", e)
            return None

    @property
    def services(self) -> Watch:
        """What the client does for the agent (C11)."""
        return self

    async def call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the client to do something."""
        return await self._peer.request(method, {"sessionId": self._session_id, **params}, result=dict[str, Any])

    def dropped(self, reason: str) -> None:
        """Note that it is over, and tell the user."""
        self.attachment = None
        log.warning("Session %s is no longer shown: %s", self._session_id, reason)
        notice = {"sessionUpdate": "notice", "severity": "warning", "title": reason}
        asyncio.get_running_loop().call_soon(self._tell, notice)

    def _tell(self, update: Update) -> None:
        from holdfast.model import event_from  # noqa: PLC0415

        self.show([event_from(update)])


def as_past(updates: Sequence[Update]) -> bytes:
    """Make a block of stored lines, to be said as if they were the past."""
    return b"\n".join(map(stored, updates))
