"""The owner's side of a link: a client of another process, served as if it were one of ours."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.relay.messages import (
    Answered,
    Asked,
    Attach,
    Attached,
    Dropped,
    Ended,
    Events,
    NotHere,
    NotKept,
    OfPart,
    OfTurn,
    Open,
    Opened,
    Operation,
    Prompt,
    SetOption,
    Status,
    ToClient,
)
from holdfast.errors import (
    ConnectionLost,
    MethodNotFound,
    PositionLost,
    RemoteError,
    SessionMoved,
    SessionNotFound,
)
from holdfast.model import Permission, Scope
from holdfast.tracing import note_trace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from holdfast.engine.attachment import Attachment
    from holdfast.engine.cluster import Link, Neighbours
    from holdfast.engine.engine import Engine
    from holdfast.engine.ports import OpenAttachment
    from holdfast.engine.registry import Registry
    from holdfast.engine.relay.messages import Setup
    from holdfast.engine.session import LiveSession
    from holdfast.engine.turn import LiveTurn
    from holdfast.model import Answer, ClientInfo, Event, Question, SystemPrompt

log: logging.Logger = logging.getLogger(__name__)

BATCH_BYTES = 4 << 20
"""So much is sent in one message, unless a single event is longer."""

REMEMBERED_ENDS = 256
"""Of so many turns the end is remembered, for followers whose link was cut."""

SETTLED = 1.0
"""A session that nobody watches is given up if it has been idle for so many seconds."""


class RelayService:
    """Serves the followers of the sessions that this process owns."""

    def __init__(self, engine: Engine, registry: Registry, neighbours: Neighbours) -> None:
        self.engine = engine
        self.registry = registry
        self.neighbours = neighbours
        self.clients: dict[str, RelayedClient] = {}
        self.turns: dict[str, LiveTurn] = {}
        """Those that clients of other processes have prompted, by message, until their end is noted."""
        self.ends: dict[str, Ended] = {}

    def accept(self, link: Link) -> OwnerLink:
        """Serve a link that another process has opened."""
        return OwnerLink(self, link)

    def note_end(self, message_id: str, end: Ended) -> None:
        """Remember how a turn has ended, for a while."""
        self.turns.pop(message_id, None)
        self.ends[message_id] = end
        while len(self.ends) > REMEMBERED_ENDS:
            del self.ends[next(iter(self.ends))]

    def status(self) -> list[Status]:
        """Return what the sessions of this process do."""
        return [
            Status(
                session.id, session.activity, [name_of(attachment.client.info) for attachment in session.attachments]
            )
            for session in self.registry.live.values()
        ]


class OwnerLink:
    """One link, from the side of the owner."""

    def __init__(self, service: RelayService, link: Link) -> None:
        self._service = service
        self._engine = service.engine
        self._registry = service.registry
        self._link = link
        self._session: LiveSession | None = None
        self._client: RelayedClient | None = None
        self._requests: dict[str, tuple[type[Any], Callable[[Any], Awaitable[object]]]] = {
            "open": (Open, self._open),
            "attach": (Attach, self._attach),
            "prompt": (Prompt, self._prompt),
            "end_of": (OfTurn, self._end_of),
            "steer": (Prompt, self._steer),
            "option": (SetOption, self._set_option),
            "part": (OfPart, self._cancel_part),
            "do": (Operation, self._do),
            "status": (type(None), self._status),
        }
        self._notifications: dict[str, Callable[[msgspec.Raw], None]] = {
            "follow": self._follow,
            "detach": self._detach,
            "cancel": self._cancel,
        }

    # What a link is for (`LinkUser`)

    async def requested(self, method: str, params: msgspec.Raw) -> object:
        """Answer a request of the follower."""
        if method not in self._requests:
            raise MethodNotFound(f"{method[:100]} is not known here")
        kind, answer = self._requests[method]
        return await answer(msgspec.json.decode(params, type=kind))

    async def notified(self, method: str, params: msgspec.Raw) -> None:
        """Take a notification of the follower."""
        if method in self._notifications:
            self._notifications[method](params)

    def lost(self) -> None:
        """Let the client watch no more; its turns go on, and it may come back."""
        if self._client is not None:
            self._client.unlink(self._link)
            if self._session is not None and not self._session.turns_of(self._client):
                self._service.clients.pop(self._client.setup.id, None)

    # Opening

    async def _open(self, params: Open) -> Opened:
        scope = Scope(params.principal, params.agent)
        async with self._registry.lock(params.session):
            session = self._own(params.session, scope)
            if params.epoch is not None and params.epoch != session.journal.claim.epoch:
                raise NotHere("This process is not the owner of the session any more, or not yet")
            if not params.is_guest and not session.in_use and session.idle_seconds > SETTLED:
                await self._registry.retire(session)
                return Opened(yielded=True)
            if self._client is None:
                self._client = self._service.clients.get(params.client.id) or RelayedClient(params.client)
                self._service.clients[params.client.id] = self._client
            client = self._client
            client.set_up(self._link, params.client, self._service.neighbours)
            if not params.is_guest:
                await self._registry.welcome(session, client)
            self._session = session
        return Opened(
            self._owner_name(session), session.cwd, session.title, session.options_update(), session.commands_update(),
            session.latest, session.current_state(),
        )  # fmt: skip

    def _own(self, session_id: str, scope: Scope) -> LiveSession:
        try:
            return self._engine.get(session_id, scope)
        except SessionNotFound:
            raise NotHere("This session is not open here any more") from None

    def _owner_name(self, session: LiveSession) -> str:
        if name := self._service.neighbours.name:
            return name
        names = [name_of(other.client.info) for other in session.attachments if not other.client.is_remote]
        return next(iter(names), "")

    def _opened(self) -> tuple[LiveSession, RelayedClient]:
        if self._session is None or self._client is None or not self._session.is_live:
            raise NotHere("This session is not open here any more")
        return self._session, self._client

    # Watching

    async def _attach(self, params: Attach) -> Attached:
        session, client = self._opened()
        try:
            attachment = await session.attach(client, params.since)
        except PositionLost as e:
            raise NotKept(e.message, str(params.since)) from None
        except SessionMoved as e:
            raise NotHere(e.message) from None
        if params.since is None:
            self._send_unsealed(attachment)
        client.attachment, before = attachment, client.attachment
        if before is not None:
            session.detach(before)
        return Attached(attachment.position, attachment.lines, session.current_state(), session.notices(client))

    def _send_unsealed(self, attachment: Attachment) -> None:
        if attachment.refusal is not None:
            attachment.session.detach(attachment)
            raise attachment.refusal
        part: list[bytes] = []
        for line in attachment.unsealed:
            part.append(line)
            if sum(map(len, part)) > BATCH_BYTES:
                self._link.notify("unsealed", part)
                part = []
        if part:
            self._link.notify("unsealed", part)

    def _follow(self, _: msgspec.Raw) -> None:
        if self._client is not None and self._client.attachment is not None:
            self._client.attachment.follow()

    def _detach(self, _: msgspec.Raw) -> None:
        if self._client is not None:
            self._client.detach()

    # Turns

    async def _prompt(self, params: Prompt) -> Ended:
        session, client = self._opened()
        note_trace(params.meta)
        turn = session.prompt(params.content, client, params.meta, message_id=params.message_id)
        self._service.turns[params.message_id] = turn
        turn.accepted.add_done_callback(lambda accepted: self._accepted(accepted, params.message_id))
        return await self._ended(turn)

    def _accepted(self, accepted: asyncio.Future[str], message_id: str) -> None:
        if not accepted.cancelled() and accepted.exception() is None:
            self._link.notify("accepted", OfTurn(message_id))

    async def _ended(self, turn: LiveTurn) -> Ended:
        turn.ended.add_done_callback(lambda _: self._service.note_end(turn.message_id, _end_of(turn)))
        await turn.wait_for_end()
        return _end_of(turn)

    async def _steer(self, params: Prompt) -> object:
        session, _ = self._opened()
        return await session.steer(params.content, params.meta, params.message_id)

    async def _end_of(self, params: OfTurn) -> Ended | None:
        _, client = self._opened()
        turn = self._service.turns.get(params.message_id)
        if turn is not None and turn.client is client:  # its end may come in this very tick
            return await self._ended(turn)
        return self._service.ends.get(params.message_id)

    def _cancel(self, params: msgspec.Raw) -> None:
        of_turn = msgspec.json.decode(params, type=OfTurn | None)
        if self._session is None or self._client is None:
            return
        if of_turn is None:
            self._session.cancel(self._client)
            return
        for turn in self._session.turns_of(self._client):
            if turn.message_id == of_turn.message_id:
                self._session.cancel_turn(turn)

    async def _cancel_part(self, part: OfPart) -> bool:
        session, _ = self._opened()
        return await session.cancel_part(part.id)

    # The rest

    async def _set_option(self, params: SetOption) -> object:
        session, _ = self._opened()
        await session.set_option(params.option, params.value)
        return session.options_update()

    async def _do(self, params: Operation) -> None:
        scope = Scope(params.principal, params.agent)
        self._own(params.session, scope)
        engine = self._engine
        match params.name:
            case "rename":
                await engine.rename(params.session, params.title, scope=scope)
            case "archive" | "unarchive":
                archived = params.name == "archive"
                await engine.archive(params.session, archived=archived, scope=scope, client=self._client)
            case "delete":
                await engine.delete(params.session, scope=scope, client=self._client)
            case "leave":
                await engine.leave(params.session, self._client, scope=scope)
            case "fork":
                cwd, *additional = params.roots
                await engine.fork_for_neighbour(
                    params.session, cwd, additional, fork_id=params.fork_id, scope=scope, up_to=params.up_to
                )

    async def _status(self, _: None) -> list[Status]:
        return self._service.status()


class RelayedClient:
    """A client that is connected to another process: a `SessionClient`."""

    is_remote = True

    def __init__(self, setup: Setup) -> None:
        self.setup: Setup = setup
        self.attachment: Attachment | None = None
        self.mcp_servers: Sequence[Any] = ()
        self._link: Link | None = None

    def set_up(self, link: Link, setup: Setup, neighbours: Neighbours) -> None:
        """Take a client as it is now, behind this link; where it was behind another, that one counts no more."""
        self.setup = setup
        self.mcp_servers = neighbours.unpack_servers(setup.servers)
        if self._link is not None and self._link is not link:
            self.detach()
        self._link = link

    def unlink(self, link: Link) -> None:
        """Let go of a link that is lost, unless another has come in its place."""
        if self._link is link:
            self._link = None
            self.detach()

    def detach(self) -> None:
        """Watch no more."""
        attachment, self.attachment = self.attachment, None
        if attachment is not None:
            attachment.session.detach(attachment)

    @property
    def info(self) -> ClientInfo:
        """What the client said about itself."""
        return self.setup.info

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories it opened the session with."""
        return self.setup.roots

    @property
    def session_id(self) -> str:
        """What it calls the session."""
        return self.setup.session_id

    @property
    def principal(self) -> str:
        """On whose behalf it speaks."""
        return self.setup.principal

    @property
    def meta(self) -> dict[str, Any] | None:
        """The `_meta` of the request by which it opened the session."""
        return self.setup.meta

    @property
    def system_prompt(self) -> SystemPrompt | None:
        """The instructions it gives to the agent's model, if any."""
        return self.setup.system_prompt

    @property
    def services(self) -> frozenset[str]:
        """What it does for the agent."""
        return self.setup.services

    @property
    def elicitation(self) -> frozenset[str]:
        """How it can show its user a question."""
        return self.setup.elicitation

    @property
    def backlog(self) -> int:
        """How many bytes its process has not read."""
        return 0 if self._link is None else self._link.unsent

    async def drain(self) -> None:
        """Wait until its process has read most of them."""
        if self._link is not None:
            await self._link.drain()

    def show(self, events: Sequence[Event]) -> None:
        """Send what happened, in messages that are not too long."""
        if self._link is None:
            return
        before = None if self.attachment is None else self.attachment.showing
        start = size = 0
        for at, event in enumerate(events):
            size += len(event.body)
            if size > BATCH_BYTES and at > start:
                self._send(events[start:at], None if before is None else before.after(start))
                start, size = at, len(event.body)
        self._send(events[start:], None if before is None else before.after(start))

    def _send(self, events: Sequence[Event], before: Any) -> None:
        assert self._link is not None
        self._link.notify("events", Events.of(list(events), before))

    def embed_terminal(self, terminal_id: str, own_id: str) -> None:
        """Let it show a terminal of its own where a tool call shows `terminal_id`."""
        if self._link is not None:
            self._link.notify("terminal", (terminal_id, own_id))

    def can_answer(self, question: Question) -> bool:
        """Whether it can put this question to its user."""
        if isinstance(question, Permission):
            return self.setup.permission
        return question.mode in self.setup.elicitation

    async def ask(self, question: Question) -> Answer:
        """Put a question to its user."""
        is_permission = isinstance(question, Permission)
        asked = Asked(permission=question) if is_permission else Asked(elicitation=question)
        try:
            raw = await self._linked().request("ask", asked)
        except RemoteError as e:
            log.info("A question got no answer: %s", e)
            return None
        except ConnectionLost:
            # That is no answer: the question waits for another client (F5). Detaching this one cancels us.
            return await asyncio.get_running_loop().create_future()
        answered = msgspec.json.decode(raw, type=Answered)
        return answered.option if is_permission else answered.elicitation

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send it a request and return its result."""
        return msgspec.json.decode(await self._linked().request("client", ToClient(method, dict(params))))

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send it a notification."""
        if self._link is not None:
            self._link.notify("tell", ToClient(method, dict(params)))

    def dropped(self, reason: str) -> None:
        """Tell it that it does not watch any more."""
        attachment, self.attachment = self.attachment, None
        if self._link is not None:
            moved = attachment is not None and attachment.session.is_lost
            self._link.notify("dropped", Dropped(reason, moved))

    def moved(self, attachment: OpenAttachment) -> None:
        """Do nothing: the owner's sessions do not move while they are owned."""

    def _linked(self) -> Link:
        if self._link is None:
            raise ConnectionLost(f"{name_of(self.info)} is not connected any more")
        return self._link


def name_of(info: ClientInfo) -> str:
    """Return what people call a client."""
    return info.name or "another client"


def _end_of(turn: LiveTurn) -> Ended:
    end, refusal = turn.ended.result(), turn.refusal
    said = None if refusal is None else (refusal.code, refusal.message, refusal.data)
    return Ended(end.reason, end.error, said, end.more)
