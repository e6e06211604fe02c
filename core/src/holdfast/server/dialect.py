"""What every protocol version does with sessions; `v1` and `v2` add how each of them says it.

A dialect is bound to one connection. It opens sessions for its client and remembers them; each method of the protocol
is bound to what the engine does.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, cast, get_args

import msgspec

from holdfast.errors import InvalidParams, InvalidRequest, RequestError, SessionMoved, SessionNotFound
from holdfast.model import (
    ArchiveFilter,
    Position,
    checked_cwd,
    checked_prompt,
    checked_roots,
    checked_system_prompt,
    event_from,
    new_session_id,
)
from holdfast.peer import Routes
from holdfast.server.access import not_started
from holdfast.server.attached_client import AttachedClient, Setup, as_past
from holdfast.server.positions import AT, InMeta, SeenUpTo
from holdfast.server.prompts_under_way import PromptsUnderWay
from holdfast.server.session_index import SessionIndex, session_info
from holdfast.server.steering import METHOD as STEERING
from holdfast.server.steering import Steering
from holdfast.surface import air, shapes
from holdfast.surface.description import FORK_AT
from holdfast.tracing import note_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from holdfast.engine import OpenAttachment, OpenSession, OpenTurn
    from holdfast.jsonrpc import Notification, Request
    from holdfast.mcp import Server
    from holdfast.model import Update
    from holdfast.server.attached_client import Lowering, QuestionForms
    from holdfast.server.connection import ClientConnection


NOT_OPEN = "This session is not open here; load or resume it first"

ARCHIVED = "This session is archived; unarchive it, or load it, to go on with it"

log: logging.Logger = logging.getLogger(__name__)


class Dialect(ABC):
    """One protocol version on one connection."""

    version: ClassVar[int]
    mcp_kinds: ClassVar[Collection[str]]
    """The kinds of MCP servers the version knows…"""
    mcp_typed: ClassVar[bool]
    """…and whether each of them says its kind."""
    acknowledges_prompts: ClassVar[bool]
    """Whether a client is told that its prompt was accepted before its turn has ended."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._peer = connection.peer
        self._air = air.declared(connection.info.capabilities)
        self._clients: dict[str, AttachedClient] = {}
        self._archived: dict[str, AttachedClient] = {}  # what was open when this client archived it
        self._names: dict[str, str] = {}  # our ids of sessions that the client calls by the agent's own (G9)
        self._prompts = PromptsUnderWay(self._id)
        self._index = SessionIndex(
            connection,
            id_of=self._id,
            is_open=lambda name: self._id(name) in self._clients,
            archive=self._archive,
            unarchive=self._unarchive,
            is_declared=self.has_index,
        )

    # What a version adds

    @abstractmethod
    def initialized(self) -> Update:
        """Answer `initialize`."""

    @abstractmethod
    def _lowering(self, session_id: str, session: OpenSession | None = None) -> Lowering: ...

    @abstractmethod
    def _questions(self) -> QuestionForms: ...

    def _services(self) -> frozenset[str]:
        return frozenset()

    @abstractmethod
    def _configuration(self, session: OpenSession) -> Update: ...

    @abstractmethod
    async def _load(self, params: shapes.RestoreSession) -> object: ...

    @abstractmethod
    async def _status(self, params: shapes.OfSession) -> Update: ...

    @abstractmethod
    async def _set_option(self, params: shapes.SetConfigOption) -> Update: ...

    @abstractmethod
    async def _prompt(self, params: shapes.Prompt) -> Update: ...

    # Methods

    def routes(self) -> Routes:
        """Return the methods that all versions have, the unstable ones among them (B15, B16)."""
        routes = Routes(fallback=self._other_request)
        routes.notification_fallback = self._other_notification
        routes.request("auth/status", self._auth_status, shapes.Params)
        routes.request("session/new", self._new, shapes.NewSession)
        routes.request("session/load", self._load, shapes.RestoreSession)
        routes.request("session/fork", self._fork, shapes.RestoreSession)
        routes.request("session/list", self._list, shapes.ListSessions)
        routes.request("session/close", self._close, shapes.OfSession)
        routes.request("session/delete", self._delete, shapes.OfSession)
        routes.request("session/archive", self._archive, shapes.OfSession)
        routes.request("session/unarchive", self._unarchive, shapes.OfSession)
        routes.request("session/status", self._status, shapes.OfSession)
        routes.request("session/set_title", self._set_title, shapes.SetTitle)
        routes.request("session/set_config_option", self._set_option, shapes.SetConfigOption)
        routes.request("session/prompt", self._prompt, shapes.Prompt)
        if self.connection.description.forwards:
            steering = Steering(self.connection, self._session, lambda session: self._clients[session.id])
            routes.request(STEERING, steering.steer, shapes.Prompt)
        self._index.add_to(routes, is_wrapped=self.connection.description.forwards)
        routes.urgent_notification(
            "session/cancel", self._cancel_now, shapes.OfSession, in_place=self._cancel_what_came_before
        )
        return routes

    async def _log_in(self, params: shapes.Login) -> Update:
        await self.connection.log_in(params.method_id)
        return {}

    async def _log_out(self, _: shapes.Params) -> Update:
        await self.connection.log_out()
        return {}

    async def _auth_status(self, _: shapes.Params) -> Update:
        """Say whether the user is logged in; never refused for want of a login (C12)."""
        return {"state": await self.connection.auth_state()}

    async def _new(self, params: shapes.NewSession) -> Update:
        """Create a session; it is watched once this request is answered (P5)."""
        await self.connection.check_login()
        session_id, setup = new_session_id(), self._setup(params)
        client = self._new_client(session_id, setup)
        engine = await self.connection.host.engine()
        session = await engine.create(
            setup.cwd, setup.additional, session_id=session_id, scope=self.connection.scope, client=client
        )
        return self._opened_new(session, client, 0, session.journal.position)

    async def _fork(self, params: shapes.RestoreSession) -> Update:
        """Fork a session; the fork is watched once this request is answered."""
        await self.connection.check_login()
        up_to = (params.meta or {}).get(FORK_AT)
        if up_to is not None and not isinstance(up_to, str):
            raise InvalidParams(f"_meta[{FORK_AT!r}] must be the id of a message")
        fork_id, setup = new_session_id(), self._setup(params)
        client = self._new_client(fork_id, setup)
        engine = await self.connection.host.engine()
        session = await engine.fork(
            self._id(params.session_id), setup.cwd, setup.additional,
            fork_id=fork_id, scope=self.connection.scope, up_to=up_to, client=client,
        )  # fmt: skip
        return self._opened_new(session, client, session.journal.lines, session.journal.position)

    def _opened_new(self, session: OpenSession, client: AttachedClient, known_lines: int, at: Position) -> Update:
        self._clients[session.id] = client
        client.session = session
        self._after_answer(lambda: self._start_watching(session, client, known_lines))
        return self._with_position({"sessionId": session.id, **self._configuration(session)}, at)

    async def _restore(
        self, params: shapes.RestoreSession, *, replay: bool, since: Position | None = None
    ) -> OpenSession:
        """Bring a session back, with its past, without it, or from an event on; it is followed once answered."""
        await self.connection.check_login()
        session_id, setup = self._id(params.session_id), self._setup(params)
        engine = await self.connection.host.engine()
        client = self._clients.get(session_id) or self._new_client(params.session_id, setup)
        async with client.attaching:
            before, client.setup = client.setup, setup
            try:
                session = await engine.open(session_id, client, scope=self.connection.scope)
            except BaseException:
                client.setup = before
                raise
            if session.id != params.session_id:
                self._names[params.session_id] = session.id
            attachment = await self._attach(session, client, None if since is None else SeenUpTo(since, 0))
        if since is not None:
            attachment.show_held()
        elif replay:
            self._stand(client.session_id, None)
            if not self.connection.host.port.begins_entries:
                client.lowering.begin_replay()
            async for blocks in attachment.past(engine.store):
                await client.replay(blocks)
            self._end_replay(client)
            await client.replay([as_past(self._present(session))])
            if (attachment := client.attachment) is None:
                raise SessionMoved("The session was let go while its past was shown; load it again")
            self._stand(client.session_id, attachment.position)
        else:
            self._stand(client.session_id, attachment.position)
            self._after_answer(lambda: self._announce(session, client))
        self._after_answer(lambda: self._follow(client))
        return session

    def _end_replay(self, client: AttachedClient) -> None:
        """Tell a client that wants to know that it has seen the whole past."""
        if air.LOAD_REPLAY_END in self._air:
            client.show_aside(air.replay_end())

    async def resume_at(self, session_id: str, seen: SeenUpTo) -> None:
        """Show a session again from where the client's stream was cut; see `ClientConnection.resume_at`."""
        client = self._clients.get(self._id(session_id))
        if client is None:
            raise SessionNotFound(session_id)
        engine = await self.connection.host.engine()
        cwd, *additional = client.roots
        session = await engine.restore(
            self._id(session_id), cwd, additional, scope=self.connection.scope, client=client
        )
        telling = self.connection.positions
        assert telling is not None
        async with client.attaching:
            await engine.settled(session.id, client)
            client.muted = True  # what it would be shown now is among what it is shown again
            telling.rewind(session_id, seen)
            try:
                await self._attach(session, client, seen)
            finally:
                client.muted = False
                if client.attachment is not None:
                    self._follow(client)
                telling.rewound(session_id)
        self._tell_state(session)

    def reopen(self, session_id: str, cwd: str, additional: Sequence[str]) -> None:
        """Note that the client had a session open before this process began; it is attached when it is needed."""
        setup = self._setup(shapes.NewSession(cwd=cwd, additional_directories=list(additional)))
        self._clients[session_id] = self._new_client(session_id, setup)

    @abstractmethod
    def _tell_state(self, session: OpenSession) -> None:
        """Tell a client that was cut off what its session is doing, where its version has words for that."""

    def _stand(self, session_id: str, position: Position | None) -> None:
        if self.connection.positions is not None:
            self.connection.positions.stand(session_id, position)

    def _with_position(self, answer: Update, position: Position | None) -> Update:
        """Return an answer that opens a session, with the position of it for a client that wants to know."""
        if position is not None and isinstance(self.connection.positions, InMeta):
            return {**answer, "_meta": {AT: str(position)}}
        return answer

    def _where(self, session: OpenSession) -> Position | None:
        """Return where the client stands in a session that it has open."""
        attachment = self._clients[session.id].attachment
        return None if attachment is None else attachment.position

    async def _list(self, params: shapes.ListSessions) -> Update:
        """List sessions (B4)."""
        archived = params.archived or "exclude"
        if archived not in get_args(ArchiveFilter):
            raise InvalidParams(f"archived must be one of {', '.join(get_args(ArchiveFilter))}")
        cwd = None if params.cwd is None else checked_cwd(params.cwd)
        engine = await self.connection.host.engine()
        page = await engine.list(
            self.connection.scope,
            cwd=cwd,
            cursor=params.cursor,
            archived=cast("ArchiveFilter", archived),
            asking=self.connection,
        )
        listed: Update = {"sessions": [session_info(info) for info in page.sessions]}
        return listed if page.cursor is None else {**listed, "nextCursor": page.cursor}

    async def _close(self, params: shapes.OfSession) -> Update:
        """Close a session (B13): its turn ends first, and is seen to; then nothing more is sent."""
        session_id = self._id(params.session_id)
        client = self._clients.get(session_id)
        self._prompts.cancel(session_id)
        engine = await self.connection.host.engine()
        await engine.leave(session_id, client, scope=self.connection.scope)
        self._forget(session_id)
        return {}

    async def _delete(self, params: shapes.OfSession) -> Update:
        engine = await self.connection.host.engine()
        session_id = self._id(params.session_id)
        client = self._clients.get(session_id)
        await engine.delete(session_id, scope=self.connection.scope, client=client, asking=self.connection)
        self._forget(session_id)
        return {}

    async def _archive(self, params: shapes.OfSession) -> Update:
        engine = await self.connection.host.engine()
        session_id = self._id(params.session_id)
        client = self._clients.get(session_id)
        await engine.archive(session_id, archived=True, scope=self.connection.scope, client=client)
        self._forget(session_id)
        if client is not None:
            self._archived[session_id] = client
        return {}

    async def _unarchive(self, params: shapes.OfSession) -> Update:
        """Take a session out of the archive; one that this client had open is open again."""
        engine = await self.connection.host.engine()
        session_id = self._id(params.session_id)
        await engine.archive(session_id, archived=False, scope=self.connection.scope)
        if session_id in self._archived:
            try:
                client = self._reopened(session_id)
                async with client.attaching:
                    await self._attach(await engine.open(session_id, client, scope=self.connection.scope), client)
                self._after_answer(lambda: self._follow(client))
            except RequestError as e:  # it is unarchived all the same; the next prompt opens it, or says why not
                log.warning("Session %s is unarchived and cannot be opened again yet: %s", session_id, e)
        return {}

    def _reopened(self, session_id: str) -> AttachedClient:
        """Take up a session that this client had open when it archived it."""
        before = self._archived[session_id]
        client = self._clients[session_id] = self._new_client(before.session_id, before.setup)
        del self._archived[session_id]
        return client

    async def _set_title(self, params: shapes.SetTitle) -> Update:
        engine = await self.connection.host.engine()
        await engine.rename(self._id(params.session_id), params.title or None, scope=self.connection.scope)
        return {"title": params.title}

    def _cancel_now(self, params: shapes.OfSession) -> None:
        """Stop what runs in a session that is open here, whoever has prompted it, and the prompts of this client."""
        session_id = self._id(params.session_id)
        client = self._clients.get(session_id)
        if client is not None and client.session is not None:
            client.session.cancel(client)
        self._prompts.cancel(session_id)

    def _cancel_what_came_before(self, params: shapes.OfSession) -> None:
        """Cancel the prompts that arrived before and were not read yet when the cancellation came (C6)."""
        self._prompts.cancel(self._id(params.session_id))

    async def _other_request(self, request: Request) -> object:
        """Let the agent answer what the protocol does not define."""
        params = None if request.params is None else msgspec.json.decode(request.params)
        return await self.connection.host.port.request(request.method, params, self.connection)

    async def _other_notification(self, notification: Notification) -> None:
        """Let the agent know of what the protocol does not define."""
        if not notification.method.startswith("$/"):
            params = None if notification.params is None else msgspec.json.decode(notification.params)
            await self.connection.host.port.notify(notification.method, params, self.connection)

    # Talking

    async def _begin(self, params: shapes.Prompt) -> OpenTurn:
        """Put a prompt in line, in a session this connection has open or had open."""
        with self._prompts.arriving(params.session_id):
            if self.connection.login_needed:
                await self.connection.check_login()
            checked_prompt(params.prompt, self.connection.description.accepts)
            session = await self._session(params.session_id)
        return self._put_in_line(session, params)

    def _begin_now(self, params: shapes.Prompt) -> OpenTurn | None:
        """Do the same where nothing has to be waited for; return None otherwise."""
        client = self._clients.get(self._names.get(params.session_id, params.session_id))
        if client is None or self.connection.login_needed or (session := client.open_session) is None:
            return None
        checked_prompt(params.prompt, self.connection.description.accepts)
        return self._put_in_line(session, params)

    def _put_in_line(self, session: OpenSession, params: shapes.Prompt) -> OpenTurn:
        if params.meta:
            note_trace(params.meta)
        client = self._clients[session.id]
        repeats = self.connection.host.repeats
        key = repeats.key(self.connection.principal, session.id, params.meta) if params.meta else None
        if key is not None and (turn := repeats.get(key)) is not None:
            client.lowering.quiet(turn.message_id)
            self._prompts.in_line(turn)
            return turn  # a client that was cut off asks for it again, and it is not to be done again
        turn = session.prompt(params.prompt, client, params.meta, acknowledged=self.acknowledges_prompts)
        client.lowering.quiet(turn.message_id)
        self._prompts.in_line(turn)
        if key is not None:
            repeats.put(key, turn)
        return turn

    def _goes_on(self, turn: OpenTurn) -> bool:
        """Return whether a turn goes on without its client: the host goes on, or others have the session."""
        return not self.connection.is_only or turn.session.is_shared

    async def _session(self, session_id: str) -> OpenSession:
        """Return a session this connection has open; one that left memory meanwhile is revived (B18)."""
        session_id = self._id(session_id)
        client = self._clients.get(session_id)
        if client is not None and (session := client.open_session) is not None:
            return session
        engine = await self.connection.host.engine()
        if client is None:
            info = await engine.look_up(session_id, self.connection.scope)  # raises where there is none
            if (client := self._clients.get(session_id)) is None:
                if session_id not in self._archived:
                    raise InvalidParams(NOT_OPEN)
                if info.archived:
                    raise InvalidParams(ARCHIVED)
                client = self._reopened(session_id)  # another client has unarchived it
        async with client.attaching:
            if (session := client.open_session) is None:
                session = client.session = await engine.open(session_id, client, scope=self.connection.scope)
                if client.attachment not in session.attachments:  # otherwise it was found again meanwhile
                    client.attachment = await session.attach(client)
                    client.attachment.follow()
            if self._clients.get(session_id) is not client:  # it has closed the session meanwhile
                client.detach()
                raise InvalidParams(NOT_OPEN)
            return session

    async def _live(self, session_id: str) -> tuple[str, OpenSession | None]:
        """Return whether a session is open here or only saved, and the open one."""
        session_id = self._id(session_id)
        engine = await self.connection.host.engine()
        await engine.look_up(session_id, self.connection.scope)
        client = self._clients.get(session_id)
        if client is not None and client.attachment is not None and client.attachment.session.is_live:
            return "open", client.attachment.session
        try:
            return "open", engine.get(session_id, self.connection.scope)
        except SessionNotFound:
            return "saved", None

    def _id(self, name: str) -> str:
        """Return our id of a session, whatever the client calls it."""
        return self._names.get(name, name)

    # Watching

    @property
    def has_index(self) -> bool:
        """Whether the client uses the session index of JetBrains AIR."""
        return air.SESSION_INDEX in self._air

    def leave(self) -> None:
        """Stop watching: the client is gone."""
        self._index.close()
        for session_id in list(self._clients):
            self._forget(session_id)

    def _forget(self, session_id: str) -> None:
        self._archived.pop(session_id, None)
        if (client := self._clients.pop(session_id, None)) is not None:
            client.detach()

    def _show(self, session: OpenSession, update: Update) -> None:
        """Send one update of a session."""
        self._clients[session.id].show_aside(update)

    async def _attach(
        self, session: OpenSession, client: AttachedClient, seen: SeenUpTo | None = None
    ) -> OpenAttachment:
        before, client.attachment, client.session = client.attachment, None, session
        try:
            attachment = await session.attach(client, None if seen is None else self._turn_of(seen))
        except BaseException:
            client.attachment = client.attachment or before  # it may have been found elsewhere meanwhile
            raise
        client.attachment, client.seen = attachment, seen
        client.lowering = self._lowering(client.session_id, session)  # what was said before is said again
        if before is not None:
            before.session.detach(before)  # not earlier: a question it was asked is now put to the new one
        self._clients[session.id] = client
        self._archived.pop(session.id, None)
        if notices := [*session.notices(client), *client.setup.notices]:
            attachment.deliver([event_from(notice) for notice in notices], None)
        return attachment

    def _turn_of(self, seen: SeenUpTo) -> Position:
        """Return where the turn of an event begins: a surface must see a turn from there, to say what follows."""
        return Position(seen.position.epoch, seen.position.turn, 0)

    def _start_watching(self, session: OpenSession, client: AttachedClient, known_lines: int) -> None:
        session.start(self._watch_new(session, client, known_lines))

    async def _watch_new(self, session: OpenSession, client: AttachedClient, known_lines: int) -> None:
        """Show a session that is new to the client, with all that was said while it was opened."""
        store = (await self.connection.host.engine()).store
        async with client.attaching:
            if self._clients.get(session.id) is not client:
                return
            try:
                attachment = await self._attach(session, client)
            except SessionMoved as e:  # it has left this process already
                client.dropped(e.message)
                return
            self._announce(session, client)
            if session.title is not None:  # a fork has one of its own from the beginning
                client.show_as_past([{"sessionUpdate": "session_info_update", "title": session.title}])
            async for blocks in attachment.past(store, known_lines):
                await client.replay(blocks)
            self._follow(client)

    def _announce(self, session: OpenSession, client: AttachedClient) -> None:
        if self._clients.get(session.id) is client and session.commands_update()["availableCommands"]:
            client.show_as_past([session.commands_update()])

    def _follow(self, client: AttachedClient) -> None:
        if client.attachment is not None:
            client.attachment.follow()

    def _present(self, session: OpenSession) -> list[Update]:
        """Return what there is besides the conversation, in the order of B11."""
        commands, options = session.commands_update(), session.options_update()
        updates: list[Update] = [commands]
        if options["configOptions"]:
            updates.append(options)
        if session.title is not None:
            updates.append({"sessionUpdate": "session_info_update", "title": session.title})
        has_commands = bool(commands["availableCommands"])
        told = {update["sessionUpdate"] for update in updates if has_commands or "title" in update}
        if "size" not in session.latest.get("usage_update", {}):
            told.add("usage_update")  # it was imported: an agent's files do not always tell how much its context holds
        updates += (update for kind, update in session.latest.items() if kind not in told)
        return updates

    def _after_answer(self, step: Callable[[], None]) -> None:
        """Do something when the request at hand has been answered, alone or in a batch (P5)."""
        self._peer.after_answer(step)

    def _new_client(self, session_id: str, setup: Setup) -> AttachedClient:
        most = self.connection.max_sessions
        if most is not None and len(self._clients) >= most:
            raise InvalidRequest(f"A connection has at most {most} sessions open; close some that are not used")
        lowering, questions, services = self._lowering(session_id), self._questions(), self._services()
        return AttachedClient(
            self.connection, session_id, setup, lowering=lowering, questions=questions, services=services
        )

    def _setup(self, params: shapes.NewSession) -> Setup:
        cwd, additional = checked_roots(params.cwd, params.additional_directories or ())
        if additional and not self.connection.description.additional_directories:
            raise InvalidParams("This agent works in one directory: it takes no additionalDirectories")
        self.connection.access.check(cwd, additional)
        system_prompt = checked_system_prompt(params.system_prompt, self.connection.description.accepts)
        named, refused = self.connection.access.startable(params.mcp_servers or ())
        notices = (not_started(refused),) if refused else ()
        return Setup(cwd, additional, self._servers(named), system_prompt, params.meta, notices)

    def _servers(self, named: Sequence[Update]) -> tuple[Server | Update, ...]:
        """Parse the MCP servers that a client names (E1). An agent that hands them on gets them as they are (G2)."""
        if not named:
            return ()
        from holdfast.mcp.servers import check_kinds, read_servers  # noqa: PLC0415  (not everybody names any)

        description = self.connection.description
        advertised = description.mcp_kinds.intersection(self.mcp_kinds)
        if description.forwards:
            check_kinds(named, advertised)
            return tuple(named)
        if not description.mcp_kinds:
            raise InvalidParams(
                "This agent takes no MCP servers. For an agent on Holdfast: pip install 'holdfast-core[mcp]'"
            )
        return read_servers(named, advertised, typed=self.mcp_typed)
