"""The session index of JetBrains AIR: methods by which a client lists, renames, archives and watches sessions.

Adapters answer them from the agent's own files. In front of a wrapped agent Holdfast answers them, as the sessions are
ours; only what the agent alone has, and nobody has loaded yet, is changed there (G9).

A client that subscribes to a directory is sent the rows of its sessions that change, whichever process changes them.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import HoldfastError, InvalidParams, SessionNotFound
from holdfast.model import ArchiveFilter, checked_cwd, new_id
from holdfast.model.events import is_object
from holdfast.surface import air, shapes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from holdfast.model import SessionInfo, Update
    from holdfast.peer import Routes
    from holdfast.server.connection import ClientConnection

log: logging.Logger = logging.getLogger(__name__)

LIMIT, MAX_LIMIT = 50, 100
"""How many rows a page has, and at most."""

MAX_ASKED = 1_000
"""The rows of so many sessions are told at once."""

MAX_SUBSCRIPTIONS = 128

WATCHED = 200
"""So many sessions of a directory are watched, those with the newest activity."""

LOOK_SECONDS = 1.0
"""So often what is watched is read."""

_FILTERS: dict[str, ArchiveFilter] = {"unarchived": "exclude", "archived": "only", "all": "include"}


class SessionIndex:
    """The session index of one connection."""

    def __init__(
        self,
        connection: ClientConnection,
        *,
        id_of: Callable[[str], str],
        is_open: Callable[[str], bool],
        archive: Callable[[shapes.OfSession], Awaitable[Update]],
        unarchive: Callable[[shapes.OfSession], Awaitable[Update]],
        is_declared: bool,
    ) -> None:
        """`id_of` returns our id of a session, whatever the client calls it; `is_open` tells if the client has it."""
        self._connection = connection
        self._id_of = id_of
        self._is_open = is_open
        self._archive_ours = archive
        self._unarchive_ours = unarchive
        self._is_declared = is_declared
        self._subscriptions: dict[str, _Subscription] = {}
        self._changed = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    def add_to(self, routes: Routes, *, is_wrapped: bool) -> None:
        """Add the methods: for clients that declare the index, and in front of agents that have one themselves."""
        if not (self._is_declared or is_wrapped):
            return
        routes.request("_session/rename", self._rename, shapes.SetTitle)
        routes.request("_session/archive", self._archive, shapes.OfSession)
        routes.request("_session/unarchive", self._unarchive, shapes.OfSession)
        routes.request("_session/batch_get", self._batch_get, shapes.OfSessions)
        routes.request("_session/list/subscribe", self._subscribe, shapes.ListSubscription)
        routes.request("_session/list/unsubscribe", self._unsubscribe, shapes.OfSubscription)
        if self._is_declared:
            routes.request("session/list", self._list, shapes.ListSessions)

    def close(self) -> None:
        """Watch no more: the client is gone."""
        self._subscriptions.clear()
        if self._watching is not None:
            self._watching.cancel()

    # Changing

    async def _rename(self, params: shapes.SetTitle) -> Update:
        title = " ".join(params.title.split())
        if not title:
            raise InvalidParams("title must not be empty")
        engine = await self._connection.host.engine()
        session_id = self._id_of(params.session_id)
        renaming = engine.rename(session_id, title, scope=self._connection.scope)
        return await self._change("_session/rename", params.session_id, renaming, title=title)

    async def _archive(self, params: shapes.OfSession) -> Update:
        return await self._put_away(params, self._archive_ours(params), archived=True)

    async def _unarchive(self, params: shapes.OfSession) -> Update:
        return await self._put_away(params, self._unarchive_ours(params), archived=False)

    async def _put_away(self, params: shapes.OfSession, change: Awaitable[object], *, archived: bool) -> Update:
        """Archive a session or take it out, and tell a client that has it open that this is so."""
        was_open = self._is_open(params.session_id)
        method = "_session/archive" if archived else "_session/unarchive"
        answer = await self._change(method, params.session_id, change)
        if self._is_declared and (was_open or self._is_open(params.session_id)):
            update = {"sessionUpdate": "session_info_update", "_meta": air.meta(archived=archived)}
            self._connection.notify("session/update", {"sessionId": params.session_id, "update": update})
        return answer

    async def _change(self, method: str, session_id: str, change: Awaitable[object], **more: object) -> Update:
        """Change a session of ours, or one that only the agent has."""
        connection = self._connection
        try:
            await change
        except SessionNotFound:
            engine = await connection.host.engine()
            own_id = await engine.own_id(self._id_of(session_id), connection.scope, connection)
            if own_id is None:
                raise
            await connection.host.port.request(method, {"sessionId": own_id, **more}, connection)
        self._changed.set()
        return {}

    # Listing

    async def _list(self, params: shapes.ListSessions) -> Update:
        """List sessions as `session/list` does, with the limit, the filter and the rows of the index."""
        wanted = _wanted(params)
        engine = await self._connection.host.engine()
        page = await engine.list(
            self._connection.scope,
            cwd=None if params.cwd is None else checked_cwd(params.cwd),
            cursor=params.cursor,
            archived=wanted.archived,
            limit=wanted.limit,
            asking=self._connection,
        )
        listed: Update = {"sessions": self._rows(page.sessions)}
        return listed if page.cursor is None else {**listed, "nextCursor": page.cursor}

    async def _batch_get(self, params: shapes.OfSessions) -> Update:
        """Return the rows of sessions that the client names, archived ones too; unknown ones are left out."""
        names = params.session_ids
        if len(set(names)) < len(names) or not all(name.strip() for name in names):
            raise InvalidParams("sessionIds must be distinct, and none of them blank")
        if len(names) > MAX_ASKED:
            raise InvalidParams(f"At most {MAX_ASKED} sessions may be asked for at once")
        engine = await self._connection.host.engine()
        ids = {self._id_of(name): name for name in names}
        infos = await engine.look_up_all(list(ids), self._connection.scope, self._connection)
        return {"sessions": [{**row, "sessionId": ids[row["sessionId"]]} for row in self._rows(infos)]}

    def _rows(self, infos: Sequence[SessionInfo]) -> list[Update]:
        engine = self._connection.host.opened
        states = {} if engine is None else dict(engine.activities())
        return [_row(info, states.get(info.id)) for info in infos]

    # Watching

    async def _subscribe(self, params: shapes.ListSubscription) -> Update:
        cwd = checked_cwd(params.cwd)
        if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            why = {"reason": "too_many_subscriptions", "max": MAX_SUBSCRIPTIONS}
            raise InvalidParams(f"A connection has at most {MAX_SUBSCRIPTIONS} subscriptions; end some", why)
        subscription = _Subscription(cwd)
        subscription.seen = await self._look(cwd)
        subscription_id = new_id("list")
        self._subscriptions[subscription_id] = subscription
        if self._watching is None or self._watching.done():
            self._watching = asyncio.get_running_loop().create_task(self._watch(), name="watch lists of sessions")
        return {"subscriptionId": subscription_id}

    async def _unsubscribe(self, params: shapes.OfSubscription) -> Update:
        self._subscriptions.pop(params.subscription_id, None)
        return {}

    async def _watch(self) -> None:
        while self._subscriptions:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            try:
                for subscription_id, subscription in list(self._subscriptions.items()):
                    await self._tell(subscription_id, subscription)
            except HoldfastError as e:
                log.warning("The lists of sessions that a client watches cannot be read now: %s", e)

    async def _tell(self, subscription_id: str, subscription: _Subscription) -> None:
        """Send a client the rows that have changed since it was told."""
        before, now = subscription.seen, await self._look(subscription.cwd)
        changed = [row for session_id, row in now.items() if _known(before.get(session_id)) != _known(row)]
        gone = [session_id for session_id in before.keys() - now.keys() if await self._is_gone(session_id)]
        subscription.seen = now
        if (changed or gone) and subscription_id in self._subscriptions:
            told = {"subscriptionId": subscription_id, "sessions": changed, "removed": sorted(gone)}
            self._connection.notify("_session/list/changes", told)

    async def _look(self, cwd: str) -> dict[str, Update]:
        engine = await self._connection.host.engine()
        page = await engine.list(self._connection.scope, cwd=cwd, archived="include", limit=WATCHED)
        return {row["sessionId"]: row for row in self._rows(page.sessions)}

    async def _is_gone(self, session_id: str) -> bool:
        """Return whether a session was deleted; others have only been overtaken by newer ones."""
        engine = await self._connection.host.engine()
        try:
            await engine.look_up(session_id, self._connection.scope)
        except SessionNotFound:
            return True
        return False


class _Subscription:
    """A directory whose sessions a client watches."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.seen: dict[str, Update] = {}
        """The rows that the client knows, or could have listed when it subscribed."""


class _Wanted(msgspec.Struct, frozen=True):
    """What a client wants to see of a list."""

    limit: int
    archived: ArchiveFilter


def _wanted(params: shapes.ListSessions) -> _Wanted:
    listed: object = air.extension(params.meta).get("list")
    wanted: Update = listed if is_object(listed) else {}
    limit: Any = wanted.get("limit")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise InvalidParams("_meta.jetbrains.air.list.limit must be an integer of at least 1")
    named = wanted.get("archived") or "unarchived"
    if params.archived is not None:  # the draft of the protocol has a member of its own for it
        named = {"exclude": "unarchived", "only": "archived", "include": "all"}.get(params.archived, params.archived)
    if not isinstance(named, str) or named not in _FILTERS:
        raise InvalidParams(f"archived must be one of {', '.join(_FILTERS)}")
    return _Wanted(min(limit or LIMIT, MAX_LIMIT), _FILTERS[named])


def _row(info: SessionInfo, state: str | None) -> Update:
    """Return what the index says of a session; what is not known is left out."""
    row = session_info(info)
    of_air = air.meta(archived=info.archived, **({} if state is None else {"state": state}))
    return {**row, "_meta": {**row["_meta"], **of_air}}


def _known(row: Update | None) -> Update | None:
    """Return a row without its time, whose change alone is none."""
    return row if row is None else {name: value for name, value in row.items() if name != "updatedAt"}


def session_info(info: SessionInfo) -> Update:
    """Return what a list says of a session; the same in both versions."""
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
