"""What an agent sends to a client: updates of sessions, asks, other requests, and lines that cannot be read."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import InvalidParams
from holdfast.peer import Routes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.client.dialect import Dialect
    from holdfast.client.open_session import OpenSession
    from holdfast.client.services import Services
    from holdfast.jsonrpc import Notification, Request
    from holdfast.model import Elicitation, Entry, Permission, Update

log: logging.Logger = logging.getLogger(__name__)

MAX_EARLY_BYTES = 64 << 20
"""So many bytes of updates are kept for sessions that no answer has named yet."""

MAX_ADDRESSES = 100
"""So many addresses that an agent asked to visit are remembered until it says that they are done with."""

_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"((?:[^"\\]|\\.){1,512})"')


class UpdateParams(msgspec.Struct, rename="camel", gc=False):
    """The parameters of `session/update`."""

    session_id: str
    update: msgspec.Raw


class CompleteElicitation(msgspec.Struct, rename="camel"):
    """The parameters of `elicitation/complete`."""

    elicitation_id: str


class Incoming:
    """Takes what one agent sends; `sessions` are those that are open, by id."""

    def __init__(self, dialect: Dialect, services: Services) -> None:
        self.sessions: dict[str, OpenSession] = {}
        self._dialect = dialect
        self._services = services
        self._opening = 0  # requests whose answer will name a session
        self._early: dict[str, list[bytes]] = {}  # updates of sessions that have no name yet
        self._early_bytes = 0
        self._addresses: dict[str, Elicitation] = {}  # by id, those the user was asked to visit

    def routes(self) -> Routes:
        """Return the methods an agent may call."""
        services = self._services
        routes = Routes(None if services.on_request is None else self._other_request)
        if services.on_notification is not None:
            routes.notification_fallback = self._other_notification
        routes.notification("session/update", self._update, UpdateParams)
        routes.request("session/request_permission", self._permission, dict[str, Any])
        routes.request("elicitation/create", self._elicitation, dict[str, Any])
        routes.notification("elicitation/complete", self._complete, CompleteElicitation)
        if self._dialect.agent.version == 1:
            from holdfast.client import file_terminal_routes  # noqa: PLC0415  (version 2 has none)

            file_terminal_routes.add_file_routes(routes, services, self._session)
            file_terminal_routes.add_terminal_routes(routes, services, self._session)
        return routes

    # Updates

    def expect_session(self) -> None:
        """Keep updates of unknown sessions until `session_named`: the answer that names theirs is on its way (P5)."""
        self._opening += 1

    def session_expected_no_more(self) -> None:
        """Forget what was kept, unless another answer is on its way."""
        self._opening -= 1
        if not self._opening:
            self._early.clear()
            self._early_bytes = 0

    def session_named(self, session: OpenSession) -> None:
        """Apply what came about a session before the answer that named it."""
        for raw in self._early.pop(session.id, ()):
            _apply(session, raw)

    async def _update(self, params: UpdateParams) -> None:
        session = self.sessions.get(params.session_id)
        raw = bytes(params.update)
        if session is not None:
            _apply(session, raw)
        elif self._opening and self._early_bytes + len(raw) <= MAX_EARLY_BYTES:
            self._early.setdefault(params.session_id, []).append(raw)
            self._early_bytes += len(raw)
        else:
            log.debug("An update of a session that is not open is left out: %s", params.session_id)

    def unreadable(self, line: bytes, reason: str) -> None:
        """Tell the session that a message was about that it is missing; where it names none, all sessions.

        Of a `line` that was too long there is only the beginning. `reason` says why it could not be read.
        """
        log.warning("A message of the agent could not be read (%s): %r", reason, line[:200])
        may_be_the_end = b'"state_update"' in line
        for session in self._concerned(line):
            session.message_lost(reason, may_be_the_end=may_be_the_end)

    def _concerned(self, line: bytes) -> Iterable[OpenSession]:
        if (found := _SESSION_ID.search(line)) is not None:
            named = self.sessions.get(found[1].decode(errors="replace"))
            return () if named is None else (named,)
        return tuple(self.sessions.values())

    # Requests

    def _session(self, session_id: object) -> OpenSession:
        session = self.sessions.get(session_id) if isinstance(session_id, str) else None
        if session is None:
            raise InvalidParams("There is no such session here")
        return session

    async def _permission(self, params: Update) -> Update:
        asks = self._dialect.asks
        session = self._session(params.get("sessionId"))
        question = asks.read_permission(params)
        if question.call:
            session.apply(session.lifting.lift_permission(question.call))
        known = session.history.get("tool_call_update", str(question.call.get("toolCallId", "")))
        question = question if known is None else _merged(question, known)
        return asks.permission_answer(await self._services.answer_permission(session, question))

    async def _elicitation(self, params: Update) -> Update:
        asks = self._dialect.asks
        session = self.sessions.get(params.get("sessionId", ""))
        question = asks.read_elicitation(params)
        if question.mode == "url":
            self._addresses[str(params.get("elicitationId"))] = question
            if len(self._addresses) > MAX_ADDRESSES:
                del self._addresses[next(iter(self._addresses))]
        return asks.elicitation_answer(await self._services.answer_elicitation(session, question))

    async def _complete(self, params: CompleteElicitation) -> None:
        """Tell the caller that an address is done with (C9); one that was never asked for is ignored."""
        question = self._addresses.pop(params.elicitation_id, None)
        if question is not None and self._services.on_complete is not None:
            await self._services.on_complete(question)

    async def _other_request(self, request: Request) -> object:
        assert self._services.on_request is not None
        return await self._services.on_request(request.method, _decoded(request.params))

    async def _other_notification(self, notification: Notification) -> None:
        assert self._services.on_notification is not None
        await self._services.on_notification(notification.method, _decoded(notification.params))


def _apply(session: OpenSession, raw: bytes) -> None:
    try:
        session.apply(session.lifting.lift(raw))
    except InvalidParams as e:
        log.warning("An update of session %s is not what it says it is, and is left out: %s", session.id, e)


def _merged(question: Permission, known: Entry) -> Permission:
    """Add to a permission request what is known of its tool call: some agents send nothing but the call's id.

    The call's own title stays its title; the question has the title it came with, or else the call's.
    """
    said = {name: value for name, value in question.call.items() if value is not None}
    call = {"toolCallId": known.key, **known.members, **({"content": content} if (content := known.content()) else {})}
    title = str(known.members.get("title") or said.get("title") or "")
    call |= said
    if title:
        call["title"] = title
    return msgspec.structs.replace(question, call=call, title=question.title or title)


def _decoded(params: msgspec.Raw | None) -> Any:
    return {} if params is None else msgspec.json.decode(params)
