"""What a wrapped agent asks: it goes to the client whose turn it is, or to the users of all clients (G7).

Permission and elicitation are questions of the session, put to every client that can answer (F5). Files, terminals and
whatever the protocol does not define go to one client as they are, and its answer back.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import msgspec

from holdfast.errors import InternalError, InvalidParams, MethodNotFound
from holdfast.model import FINAL_STATUSES, ElicitationAnswer, event_from
from holdfast.peer import Routes
from holdfast_app.wrap.forwarding import forwarded
from holdfast_app.wrap.terminals import ClientTerminals

if TYPE_CHECKING:
    from holdfast.jsonrpc import Notification, Request
    from holdfast.model import Answer, Permission, Question, Update
    from holdfast_app.wrap.process import AgentProcess
    from holdfast_app.wrap.session import ProxySession

log: logging.Logger = logging.getLogger(__name__)

_SERVICES = {
    "fs/read_text_file": "read",
    "fs/write_text_file": "write",
    "terminal/create": "terminal",
    "terminal/output": "terminal",
    "terminal/wait_for_exit": "terminal",
    "terminal/kill": "terminal",
    "terminal/release": "terminal",
}
"""By method, the service that a client must have offered."""


class AgentRequests:
    """Takes the requests and notifications of one agent process."""

    def __init__(self, process: AgentProcess) -> None:
        self._process = process
        self._terminals = ClientTerminals()

    def routes(self) -> Routes:
        """Return the methods that an agent may call; all others go to the client too."""
        routes = Routes(self._other_request)
        routes.notification_fallback = self._other_notification
        routes.request("session/request_permission", self._permission, dict[str, Any])
        routes.request("elicitation/create", self._elicitation, dict[str, Any])
        return routes

    # Questions

    async def _permission(self, params: Update) -> Update:
        asks = self._process.dialect.asks
        session = self._session(params)
        if session is None:
            raise InvalidParams("There is no such session here")
        question = asks.read_permission(params)
        answer = await _ask(session, _about_known_call(session, question))
        chosen = question.chosen(answer)
        if chosen is not None and chosen.kind.startswith("reject"):
            _close_rejected(session, question)
        return asks.permission_answer(chosen)

    async def _elicitation(self, params: Update) -> Any:
        session = self._session(params)
        if session is None:
            return await self._forward("elicitation/create", params, None)
        asks = self._process.dialect.asks
        answer = await _ask(session, asks.read_elicitation(params))
        return asks.elicitation_answer(answer if isinstance(answer, ElicitationAnswer) else ElicitationAnswer("cancel"))

    # Everything else

    async def _other_request(self, request: Request) -> object:
        params = _decoded(request.params)
        session = self._session(params)
        service = _SERVICES.get(request.method)
        if service is None:
            return await self._forward(request.method, params, session)
        client = None if session is None else session.served() or session.client_at_work()
        if session is None or client is None:
            raise InternalError("The client whose turn it is has gone")
        if service not in client.services:
            raise MethodNotFound(f"The client does not offer {request.method}")
        if service == "terminal":
            return await self._terminals.forward(session, client, request.method, params)
        return await forwarded(client, request.method, {**params, "sessionId": client.session_id})

    async def _other_notification(self, notification: Notification) -> None:
        params = _decoded(notification.params)
        session = self._session(params)
        if session is None:
            for client in self._process.port.clients_of(self._process):
                client.notify(notification.method, params)
            return
        for attachment in session.live.attachments:
            client = attachment.client
            client.notify(notification.method, {**params, "sessionId": client.session_id})

    async def _forward(self, method: str, params: Any, session: ProxySession | None) -> object:
        if session is None:
            client = next(iter(self._process.port.clients_of(self._process)), None)
        elif (client := session.client_at_work()) is not None:
            params = {**params, "sessionId": client.session_id}
        if client is None:
            raise InternalError("The client has gone")
        return await forwarded(client, method, params)

    def _session(self, params: Any) -> ProxySession | None:
        session_id = cast("Update", params).get("sessionId") if isinstance(params, dict) else None
        remote = self._process.sessions.get(session_id) if isinstance(session_id, str) else None
        if remote is None:
            return None
        remote.heard = True
        return remote.owner


async def _ask(session: ProxySession, question: Question) -> Answer:
    turn = session.live.turn
    if turn is not None and turn.running:
        return await turn.ask(question)
    return await session.live.asks.ask(question)


def _close_rejected(session: ProxySession, question: Permission) -> None:
    """Tell that a call has failed that the user rejected: some agents never speak of it again."""
    opened, call_id = session.live.journal.open, str(question.call.get("toolCallId", ""))
    known = None if opened is None else opened.history.get("tool_call_update", call_id)
    if session.remote is not None and known is not None and known.members.get("status") not in FINAL_STATUSES:
        session.remote.tell(
            [event_from({"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "failed"})]
        )


def _about_known_call(session: ProxySession, question: Permission) -> Permission:
    """Say in the session what a question tells of its tool call, and return it with the call's own title (C8)."""
    remote = session.remote
    call = {name: value for name, value in question.call.items() if value is not None}
    if remote is not None and call:
        remote.tell(remote.lifting.lift_permission(call))
    opened = session.live.journal.open
    known = None if opened is None else opened.history.get("tool_call_update", str(call.get("toolCallId", "")))
    title = question.title
    if known is not None and known.members.get("title"):
        own = str(known.members["title"])
        call["title"] = own
        title = title or own
    return msgspec.structs.replace(question, call=call, title=title or "May the agent do this?")


def _decoded(params: msgspec.Raw | None) -> Any:
    return {} if params is None else msgspec.json.decode(params)
