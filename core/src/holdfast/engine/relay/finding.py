"""Where a session is: claimed by this process, or followed in another; and found again when its owner is gone."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from holdfast.engine.ports import interrupted
from holdfast.engine.relay.follower import FollowedSession, notice
from holdfast.engine.relay.messages import Operation
from holdfast.engine.session import LiveSession
from holdfast.errors import (
    HoldfastError,
    NeighbourLost,
    PositionLost,
    SessionBusy,
    SessionElsewhere,
    SessionMoved,
    SessionNotFound,
)
from holdfast.model import event_from

if TYPE_CHECKING:
    from holdfast.engine.attachment import Attachment
    from holdfast.engine.cluster import Neighbours
    from holdfast.engine.ports import OpenAttachment, SessionClient
    from holdfast.engine.registry import Registry
    from holdfast.engine.relay.followed import FollowedAttachment
    from holdfast.model import Position, Scope, Update

log: logging.Logger = logging.getLogger(__name__)

Found: TypeAlias = "LiveSession | FollowedSession"

PATIENCE = 20.0
"""So many seconds a session is looked for whose owner is gone, before its client is told to load it again."""

ATTEMPTS = 5
"""So often an owner is asked that has just lost the session, or is about to have it."""

PAUSE = 0.05


class SessionFinder:
    """Opens sessions for clients of this process, wherever the owner of each is."""

    def __init__(self, registry: Registry, neighbours: Neighbours) -> None:
        self._registry = registry
        self._neighbours = neighbours
        self._followed: dict[tuple[str, SessionClient], FollowedSession] = {}
        self._searches: dict[tuple[str, SessionClient], asyncio.Task[None]] = {}  # one for a client at a time

    def followed(self, session_id: str, client: SessionClient | None) -> FollowedSession | None:
        """Return the session that a client follows, if it does."""
        return None if client is None else self._followed.get((session_id, client))

    def search(self, session_id: str, client: SessionClient) -> asyncio.Task[None] | None:
        """Return the search for a session under way for a client, if there is one."""
        search = self._searches.get((session_id, client))
        return None if search is None or search.done() else search

    async def open(self, session_id: str, scope: Scope, client: SessionClient) -> Found:
        """Claim a session, or follow it where another process has it. The caller holds its lock.

        An owner that does not answer loses it, unless its turn runs: that is `SessionBusy`.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                session = await self._registry.open(session_id, scope, client, take_over=False)
            except SessionElsewhere as elsewhere:
                try:
                    followed = await self._follow(session_id, scope, client, elsewhere)
                except NeighbourLost as lost:
                    if attempt == ATTEMPTS or lost.hangs or elsewhere.address is None:
                        return await self._take_over(session_id, scope, client, elsewhere, lost)
                    await asyncio.sleep(PAUSE * attempt)
                else:
                    if followed is not None:
                        return followed
            else:
                self._followed.pop((session_id, client), None)
                return session
        raise SessionBusy("This session is passed on from process to process; try again")

    async def _follow(
        self, session_id: str, scope: Scope, client: SessionClient, elsewhere: SessionElsewhere
    ) -> FollowedSession | None:
        if elsewhere.address is None:
            raise NeighbourLost(f"{elsewhere.owner} cannot be reached")
        followed = self.followed(session_id, client)
        if followed is None:
            followed = FollowedSession(
                session_id, scope, client,
                neighbours=self._neighbours, on_lost=self._lost, on_left=self._left, start=self._registry.start,
            )  # fmt: skip
        followed.owner = elsewhere.owner
        if not await followed.open(elsewhere.address, elsewhere.epoch):
            return None
        self._followed[session_id, client] = followed
        return followed

    async def _take_over(
        self, session_id: str, scope: Scope, client: SessionClient, elsewhere: SessionElsewhere, lost: NeighbourLost
    ) -> LiveSession:
        log.warning("%s does not answer for session %s: %s", elsewhere.owner, session_id, lost)
        try:
            session = await self._registry.open(session_id, scope, client)
        except SessionBusy:
            raise SessionBusy(
                f"A turn of this session is running in {elsewhere.owner}, which does not answer"
                f"{_because(lost)}. Wait, or end it there"
            ) from None
        self._followed.pop((session_id, client), None)
        return session

    async def do(self, elsewhere: SessionElsewhere, operation: Operation, client: SessionClient | None) -> None:
        """Have something done by the owner of a session; raise `NeighbourLost` where that one cannot be reached."""
        followed = self.followed(operation.session, client)
        if followed is not None and followed.is_live:
            await followed.do(operation)
            return
        if elsewhere.address is None:
            raise NeighbourLost(f"{elsewhere.owner} cannot be reached")
        await self._neighbours.do(elsewhere.address, operation)

    async def leave(self, session_id: str, client: SessionClient | None) -> None:
        """Close a session for a client that follows it: its prompts are cancelled, and it follows no more (B13)."""
        followed = self.followed(session_id, client)
        if followed is not None and client is not None:
            with suppress(NeighbourLost):
                await followed.do(Operation("leave", session_id, followed.scope.principal, followed.scope.agent))
            self._followed.pop((session_id, client), None)
            followed.hang_up()

    def _left(self, followed: FollowedSession) -> None:
        """Forget a session whose client has left without closing it."""
        if self._followed.get((followed.id, followed.client)) is followed:
            del self._followed[followed.id, followed.client]

    def hang_up(self) -> None:
        """Follow nothing any more: this process ends."""
        for followed in list(self._followed.values()):
            followed.hang_up()
        self._followed.clear()

    # An owner that is gone

    def follow_on(self, session: LiveSession, reason: str) -> None:
        """Let the clients of a session that was taken over be served by its new owner (P4)."""
        scope, activity = session.scope, "idle" if session.turn is None else "running"
        for attachment in session.attachments:
            if not attachment.client.is_remote:
                session.detach(attachment)
                # A client that is just being attached again has two; what it was shown by the first counts.
                if self.search(session.id, attachment.client) is None:
                    self._begin(_Search(session.id, scope, attachment, activity, None), reason)

    def _lost(self, followed: FollowedSession, who: str) -> None:
        """Find a session whose owner has left, or whose link was cut, for the client that followed it."""
        reason = f"{who} has left"
        if self.search(followed.id, followed.client) is not None:
            return  # that was cut again which is just being opened, and the search notices
        attachment = next(iter(reversed(followed.attachments)), None)
        followed.attachments = ()
        if attachment is None or self._followed.get((followed.id, followed.client)) is not followed:
            followed.interrupt_turns(interrupted(reason))
            return
        self._begin(_Search(followed.id, followed.scope, attachment, followed.activity, followed), reason)

    def _begin(self, search: _Search, reason: str) -> None:
        """Begin a search; of a client that was still shown its past nobody knows what it has: it has to load again."""
        if not search.was_following:
            self._not_found(search, reason, f"{reason}; load the session again to go on watching")
            return
        key = search.session_id, search.client
        task = self._searches[key] = self._registry.start(self._search(search, reason))
        task.add_done_callback(lambda task: self._searches.pop(key) if self._searches.get(key) is task else None)

    async def _search(self, search: _Search, reason: str) -> None:
        give_up_at = asyncio.get_running_loop().time() + PATIENCE
        pause = PAUSE
        while True:
            try:
                found, attachment = await self._reattach(search)
            except (NeighbourLost, SessionBusy, SessionMoved) as e:
                if asyncio.get_running_loop().time() > give_up_at or self._registry.is_stopping:
                    self._not_found(search, reason, f"{reason}; {e}")
                    return
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)
            except PositionLost:
                self._not_found(search, reason, f"{reason}; load the session again to go on watching")
                return
            except SessionNotFound:
                self._not_found(search, reason, "This session was deleted")
                return
            except HoldfastError as e:
                self._not_found(search, reason, f"{reason}; the session cannot be opened here: {e}")
                return
            except Exception:  # an agent's, as it opens the session: whoever waits for the turn is told all the same
                log.exception("A session whose owner has left cannot be opened here")
                self._not_found(search, reason, f"{reason}; the session cannot be opened here: the agent failed")
                return
            else:
                self._go_on(search, found, attachment, reason)
                return

    async def _reattach(self, search: _Search) -> tuple[Found, OpenAttachment]:
        async with self._registry.lock(search.session_id):
            found = await self.open(search.session_id, search.scope, search.client)
            if isinstance(found, LiveSession):
                await found.agent.attached(search.client)
            attachment = await found.attach(search.client, search.since)
            if isinstance(found, FollowedSession) and not found.is_live:
                found.attachments = ()  # its client has not left, and is attached again
                raise NeighbourLost(f"{found.owner_name} has hung up again")
            return found, attachment

    def _go_on(self, search: _Search, found: Found, attachment: OpenAttachment, reason: str) -> None:
        """Show the client what it missed, and tell it how things are now."""
        followed, client = search.followed, search.client
        has_moved = isinstance(found, LiveSession) or found.address != search.address
        client.moved(attachment)
        if attachment not in found.attachments:  # it has left while the session was looked for
            self._followed.pop((search.session_id, client), None)
            return
        if has_moved:
            where = "here" if isinstance(found, LiveSession) else f"in {found.owner_name}"
            client.show([notice("warning", f"{reason}; the session goes on {where}")])
        if followed is not None and isinstance(found, LiveSession):
            for turn in followed.turns.values():
                if attachment.holds(turn.message_id):
                    turn.is_accepted()
        attachment.follow()
        if search.activity != "idle" and found.activity == "idle":
            client.show([event_from(_idle(search.says(reason) if has_moved else None))])
        elif search.activity == "idle" and found.activity != "idle":
            client.show([event_from(found.current_state())])  # that it runs was said once, and is not stored
        if followed is not None and isinstance(found, LiveSession):
            followed.interrupt_turns(interrupted(reason))
        elif isinstance(found, FollowedSession):
            found.ask_for_turns(interrupted(reason))

    def _not_found(self, search: _Search, reason: str, says: str) -> None:
        """Let a client watch no more; one that knows of a running turn would wait for its end for ever."""
        if (followed := self._followed.pop((search.session_id, search.client), None)) is not None:
            followed.hang_up()  # it may be opened, and its client not attached
        if search.followed is not None:
            search.followed.interrupt_turns(interrupted(reason))
        if search.activity != "idle":
            search.client.show([event_from(_idle(search.says(reason)))])
        search.client.dropped(says)


class _Search:
    """A session that is looked for, for one client, and where the client was."""

    __slots__ = ("activity", "address", "client", "followed", "scope", "session_id", "since", "was_following")

    def __init__(
        self,
        session_id: str,
        scope: Scope,
        attachment: Attachment | FollowedAttachment,
        activity: str,
        followed: FollowedSession | None,
    ) -> None:
        self.session_id = session_id
        self.scope = scope
        self.client: SessionClient = attachment.client
        self.since: Position = attachment.position
        self.was_following: bool = attachment.follows
        self.activity = activity
        self.followed = followed
        self.address: str | None = None if followed is None else followed.address
        """Where its owner was, if that was elsewhere. The next one may be gone, and found again, before it is told."""

    def says(self, reason: str) -> str:
        """Return what a client is told that has seen the turn run."""
        return interrupted(reason, ran_there=self.followed is not None)


def _because(lost: NeighbourLost) -> str:
    """Return why somebody was not reached, where that says more than that it was not."""
    says = str(lost)
    return "" if says.startswith("it does not answer") else f" ({says})"


def _idle(failure: str | None) -> Update:
    idle: Update = {"sessionUpdate": "state_update", "state": "idle"}
    if failure is None:
        return idle
    return {**idle, "stopReason": "error", "error": {"code": -32603, "message": failure}}
