"""Terminals of a client that a wrapped agent uses: what they print is kept, to be read when they are gone (G7)."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from holdfast.errors import RequestError
from holdfast.model import event_from
from holdfast.model.events import is_object
from holdfast_app.wrap.forwarding import forwarded

if TYPE_CHECKING:
    from holdfast.engine import SessionClient
    from holdfast.model import Update
    from holdfast_app.wrap.launch import HostedSession
    from holdfast_app.wrap.session import ProxySession


class ClientTerminals:
    """The terminals that one agent process has with its clients."""

    def __init__(self) -> None:
        self._shown: dict[str, Update] = {}  # by terminal, what was said of it last

    async def forward(
        self, session: ProxySession, client: SessionClient | HostedSession, method: str, params: Update
    ) -> Any:
        """Send a request about a terminal to the client, and say in the session what is known of it then."""
        ours = {**params, "sessionId": client.session_id}
        if method == "terminal/release":
            await self._read(session, client, ours)
        answer = await forwarded(client, method, ours)
        if method == "terminal/create":
            self._created(session, client, params, answer)
        elif method == "terminal/output":
            self._show(session, str(params.get("terminalId")), answer)
        elif method in ("terminal/wait_for_exit", "terminal/kill"):
            await self._read(session, client, ours)
        if method == "terminal/release":
            self._shown.pop(str(params.get("terminalId")), None)
        return answer

    def _created(
        self, session: ProxySession, client: SessionClient | HostedSession, params: Update, answer: object
    ) -> None:
        terminal = answer.get("terminalId") if is_object(answer) else None
        if not isinstance(terminal, str):
            return
        client.embed_terminal(terminal, terminal)
        command = " ".join([str(params.get("command", "")), *map(str, params.get("args") or ())])
        update: Update = {"sessionUpdate": "terminal_update", "terminalId": terminal, "command": command}
        if isinstance(params.get("cwd"), str):
            update["cwd"] = params["cwd"]
        self._shown[terminal] = {}
        session.take(event_from(update))

    async def _read(self, session: ProxySession, client: SessionClient | HostedSession, params: Update) -> None:
        """Ask the client what a terminal has printed."""
        terminal = str(params.get("terminalId"))
        if "exitStatus" in self._shown.get(terminal, {}):
            return  # it prints nothing more
        asked = {"sessionId": client.session_id, "terminalId": terminal}
        try:
            self._show(session, terminal, await forwarded(client, "terminal/output", asked))
        except RequestError:
            return  # the client has forgotten it

    def _show(self, session: ProxySession, terminal: str, printed: object) -> None:
        if not is_object(printed) or not isinstance(printed.get("output"), str):
            return
        output = printed["output"].encode(errors="replace")
        said: Update = {"output": {"data": b64encode(output).decode()}}
        status: object = printed.get("exitStatus")
        if is_object(status):
            said["exitStatus"] = {name: value for name, value in status.items() if value is not None}
        if self._shown.get(terminal) != said:
            self._shown[terminal] = said
            session.take(event_from({"sessionUpdate": "terminal_update", "terminalId": terminal, **said}))
