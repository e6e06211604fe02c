"""What a connection does with sessions, in words that both protocol versions share."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast, get_args

from holdfast.agent.equipment import Equipment, troubles
from holdfast.agent.performer import commands_update
from holdfast.errors import InvalidParams, SessionNotFound
from holdfast.model import ArchiveFilter, checked_prompt, event_from
from holdfast.server.watch import Watch, as_past
from holdfast.tracing import note_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from holdfast.engine import Engine, LiveSession, Turn
    from holdfast.model import SessionInfo, Update
    from holdfast.peer import Peer
    from holdfast.server.host import Host

FORK_AT = "holdfast/upTo"


class Sessions:
    """The sessions one connection has open."""

    def __init__(self, host: Host, peer: Peer, watch: Callable[[str], Watch]) -> None:
        self.host = host
        self._peer = peer
        self._watch = watch
        self._watches: dict[str, Watch] = {}

    # Opening

    async def new(self, cwd: str, additional: Sequence[str] | None, equipment: Equipment) -> LiveSession:
        """Create a session; it is watched once this request is answered (P5)."""
        self.host.check_login()
        session = await (await self.host.engine()).create(cwd, additional or (), equipment=equipment)
        self._after_answer(self._follow_new, session)
        return session

    async def restore(
        self, session_id: str, cwd: str, additional: Sequence[str] | None, equipment: Equipment, *, replay: bool
    ) -> LiveSession:
        """Bring a session back, with or without its past; it is followed once this request is answered."""
        self.host.check_login()
        engine = await self.host.engine()
        session = await engine.restore(session_id, cwd, additional or (), equipment=equipment)
        before = self._watches.get(session_id)
        watch = self._attach(session)
        _leave(before)  # not earlier: a question it was asked is now put to the new one, not given up
        if replay:
            assert watch.attachment is not None
            async for blocks in watch.attachment.past(engine.store):
                await watch.replay(blocks)
            await watch.replay([as_past(self._present(session))])
        else:
            self._after_answer(self._announce, session)
        self._after_answer(self._follow, session)
        return session

    async def fork(
        self,
        session_id: str,
        cwd: str,
        additional: Sequence[str] | None,
        equipment: Equipment,
        meta: dict[str, Any] | None,
    ) -> LiveSession:
        """Fork a session; the fork is watched once this request is answered."""
        self.host.check_login()
        up_to = (meta or {}).get(FORK_AT)
        if up_to is not None and not isinstance(up_to, str):
            raise InvalidParams(f"_meta[{FORK_AT!r}] must be the id of a message")
        engine = await self.host.engine()
        session = await engine.fork(session_id, cwd, additional or (), up_to=up_to, equipment=equipment)
        self._after_answer(self._follow_new, session)
        return session

    def options(self, session: LiveSession) -> Update:
        """Tell the options of a session."""
        return session.options_update(self.host.agent.options)

    # Talking

    async def prompt(self, session_id: str, blocks: Sequence[Update], meta: dict[str, Any] | None) -> Turn:
        """Put a prompt in line, in a session this connection has open or had open."""
        note_trace(meta)
        self.host.check_login()
        checked_prompt(blocks, self.host.agent.accepts)
        session = await self.opened(session_id)
        turn = (await self.host.engine()).prompt(session, blocks)
        self._watches[session_id].lowering.quiet(turn.message_id)
        return turn

    def cancel_turn(self, turn: Turn) -> None:
        """Cancel the turn of a prompt whose request was cancelled."""
        if self.host.opened is not None:
            self.host.opened.cancel_turn(turn)

    def cancel(self, session_id: str) -> None:
        """Cancel what a session does; nothing if it does nothing, or is not open here."""
        if session_id in self._watches and self.host.opened is not None:
            with suppress(SessionNotFound):
                self.host.opened.cancel(self.host.opened.get(session_id))

    async def opened(self, session_id: str) -> LiveSession:
        """Get a session this connection has open; one that was closed elsewhere meanwhile is revived (B18)."""
        engine = await self.host.engine()
        watch = self._watches.get(session_id)
        if watch is None:
            await engine.store.get(session_id)  # says so if there is none
            raise InvalidParams(f"Session {session_id} is not open here; load or resume it first")
        try:
            session = engine.get(session_id)
        except SessionNotFound:
            record = await engine.store.get(session_id)
            session = await engine.restore(
                session_id, record.info.cwd, record.info.additional, equipment=watch.equipment
            )
        if watch.attachment not in session.attachments:  # it watches one that is gone, or none
            watch.attachment = session.attach(watch)
            watch.attachment.follow()
        return session

    # Finding, changing, ending

    async def list(self, cwd: str | None, cursor: str | None, archived: str | None) -> Update:
        """List sessions (B4)."""
        if archived is not None and archived not in get_args(ArchiveFilter):
            raise InvalidParams(f"archived must be one of {', '.join(get_args(ArchiveFilter))}")
        engine = await self.host.engine()
        kept = cast("ArchiveFilter", archived or "exclude")
        page = await engine.list(cwd=cwd, cursor=cursor, archived=kept)
        listed: Update = {"sessions": [session_info(it) for it in page.sessions]}
        return listed if page.cursor is None else {**listed, "nextCursor": page.cursor}

    async def set_option(self, session_id: str, option_id: str, value: str | bool) -> LiveSession:  # noqa: FBT001
        """Set an option for the user."""
        session = await self.opened(session_id)
        await (await self.host.engine()).set_option(session, option_id, value)
        return session

    async def set_title(self, session_id: str, title: str) -> None:
        """Give a session a title, whether it is open or not."""
        await (await self.host.engine()).retitle(session_id, title or None)

    async def archive(self, session_id: str, *, archived: bool) -> None:
        """Put a session away, or take it out again."""
        await (await self.host.engine()).archive(session_id, archived=archived)

    async def status(self, session_id: str) -> tuple[str, LiveSession | None]:
        """Say whether a session is open in this process, or only saved."""
        engine: Engine = await self.host.engine()
        await engine.store.get(session_id)
        try:
            return "open", engine.get(session_id)
        except SessionNotFound:
            return "saved", None

    async def close(self, session_id: str) -> None:
        """Close a session (B13): its turn ends first, and is seen to; then nothing more is sent."""
        await (await self.host.engine()).close(session_id)
        self.forget(session_id)

    async def delete(self, session_id: str) -> None:
        """Delete a session (B14)."""
        await (await self.host.engine()).delete(session_id)
        self.forget(session_id)

    def show(self, session: LiveSession, update: Update) -> None:
        """Send one update of a session."""
        self._peer.send_block(self._watches[session.id].lowering.live([event_from(update)]))

    def forget(self, session_id: str) -> None:
        """Watch a session no more."""
        _leave(self._watches.pop(session_id, None))

    def leave(self) -> None:
        """Watch nothing any more."""
        for session_id in list(self._watches):
            self.forget(session_id)

    # Inside

    def _attach(self, session: LiveSession) -> Watch:
        watch = self._watches[session.id] = self._watch(session.id)
        watch.attachment = session.attach(watch)
        watch.equipment = session.equipment
        if missed := troubles(session):
            watch.attachment.deliver([event_from(it) for it in missed])
        return watch

    def _after_answer(self, step: Callable[[LiveSession], None], session: LiveSession) -> None:
        """Do something when the request at hand has been answered."""
        self._peer.after_answer(partial(step, session))

    def _follow_new(self, session: LiveSession) -> None:
        self._attach(session)
        self._announce(session)
        self._follow(session)

    def _announce(self, session: LiveSession) -> None:
        watch = self._watches.get(session.id)
        if watch is not None and self.host.agent.commands:
            self._peer.send_block(*watch.lowering.past(as_past([commands_update(self.host.agent)])))

    def _follow(self, session: LiveSession) -> None:
        watch = self._watches.get(session.id)
        if watch is not None and watch.attachment is not None:
            watch.attachment.follow()

    def _present(self, session: LiveSession) -> list[Update]:
        """Tell what there is besides the conversation, in the order of B11."""
        updates: list[Update] = [commands_update(self.host.agent)]
        if self.host.agent.options:
            updates.append(self.options(session))
        if session.title is not None:
            updates.append({"sessionUpdate": "session_info_update", "title": session.title})
        updates += session.state.latest.values()
        return updates


def equipment(
    wire: Sequence[dict[str, Any]] | None, kinds: Collection[str], *, typed: bool, modes: frozenset[str]
) -> Equipment:
    """Read what a client gives to a session (E1)."""
    if not wire:
        return Equipment(modes=modes)
    from holdfast.mcp.servers import read_servers  # noqa: PLC0415  (not everybody names any)

    return Equipment(read_servers(wire, kinds, typed=typed), modes)


def _leave(watch: Watch | None) -> None:
    if watch is not None and watch.attachment is not None:
        watch.attachment.session.detach(watch.attachment)
        watch.attachment = None


def session_info(info: SessionInfo) -> Update:
    """Say what a list says of a session; the same in both versions."""
    at = datetime.fromtimestamp(info.updated_at / 1_000_000, UTC)
    return {
        "sessionId": info.id,
        "cwd": info.cwd,
        "title": info.title,
        "updatedAt": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "additionalDirectories": list(info.additional),
        "archived": info.archived,
        "_meta": {"messageCount": info.messages},
    }
