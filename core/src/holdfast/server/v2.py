"""Protocol version 2 on a connection: what it says otherwise than other versions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from holdfast.errors import InvalidParams
from holdfast.model.events import is_object
from holdfast.server.dialect import Dialect
from holdfast.server.positions import REPLAY_FROM, parse_position
from holdfast.surface import shapes
from holdfast.surface.description import REPLAY_COMPLETE
from holdfast.surface.v2 import initialize
from holdfast.surface.v2.asks import Questions
from holdfast.surface.v2.lower import Lowering
from holdfast.surface.v2.options import lower_commands, lower_options
from holdfast.surface.v2.shapes import CancelTerminal, CancelToolCall, ResumeSession

if TYPE_CHECKING:
    from collections.abc import Collection

    from holdfast.engine import OpenSession
    from holdfast.model import Position, Update
    from holdfast.peer import Routes
    from holdfast.server.attached_client import AttachedClient
    from holdfast.server.connection import ClientConnection
    from holdfast.server.positions import SeenUpTo


class Version2(Dialect):
    """One version 2 client."""

    version = initialize.VERSION
    mcp_kinds: ClassVar[Collection[str]] = initialize.MCP_KINDS
    mcp_typed = True
    acknowledges_prompts = True

    def __init__(self, connection: ClientConnection) -> None:
        super().__init__(connection)
        capabilities = connection.info.capabilities
        self._question_forms = Questions(capabilities)
        session: object = capabilities.get("session")
        self._wants_replay_complete = is_object(session) and session.get(initialize.REPLAY_COMPLETE) is not None

    def initialized(self) -> Update:
        """Answer `initialize`."""
        return initialize.result(self.connection.description)

    def routes(self) -> Routes:
        """Return the methods of version 2, those of its early draft among them (B9)."""
        routes = super().routes()
        routes.request("auth/login", self._log_in, shapes.Login)
        routes.request("session/resume", self._resume, ResumeSession)
        routes.request("auth/logout", self._log_out, shapes.Params)
        routes.request("tool_call/cancel", self._cancel_tool_call, CancelToolCall)
        routes.request("terminal/cancel", self._cancel_terminal, CancelTerminal)
        return routes

    def _lowering(self, session_id: str, session: OpenSession | None = None) -> Lowering:  # noqa: ARG002
        return Lowering(session_id)

    def _end_replay(self, client: AttachedClient) -> None:
        super()._end_replay(client)
        if self._wants_replay_complete:
            client.show_aside({"sessionUpdate": REPLAY_COMPLETE})

    def _questions(self) -> Questions:
        return self._question_forms

    def _configuration(self, session: OpenSession) -> Update:
        answer: Update = {}
        options, commands = session.options_update(), session.commands_update()
        if options["configOptions"]:
            answer["configOptions"] = lower_options(options)
        if commands["availableCommands"]:
            answer["availableCommands"] = lower_commands(commands)
        return answer

    async def _load(self, params: shapes.RestoreSession) -> None:
        """Replay everything and answer null, as the early draft has it (B9)."""
        session = await self._restore(params, replay=True)
        self._show(session, session.current_state())

    async def _resume(self, params: ResumeSession) -> Update:
        """Bring a session back; a snapshot of its state comes after any replay and before the answer (B8)."""
        asked = params.replay_from or {}
        kind = asked.get("type") if params.replay_from is not None else None
        if params.replay_from is not None and kind not in ("start", REPLAY_FROM):
            raise InvalidParams(f'replayFrom must be {{"type": "start"}} or {{"type": "{REPLAY_FROM}", "position": …}}')
        since = parse_position(asked.get("position")) if kind == REPLAY_FROM else None
        session = await self._restore(params, replay=kind == "start", since=since)
        self._show(session, session.current_state())
        return self._with_position(self._configuration(session), self._where(session))

    def _turn_of(self, seen: SeenUpTo) -> Position:
        """Return from where on events are needed: version 2 says each event as it is, whatever came before."""
        return seen.position if seen.lines else seen.position.after(-1)

    def _tell_state(self, session: OpenSession) -> None:
        self._show(session, session.current_state())

    async def _status(self, params: shapes.OfSession) -> Update:
        status, session = await self._live(params.session_id)
        if session is None:
            return {"status": status}
        told = session.current_state()  # the session's own: it is not ours to change
        return {"status": status, "state": {name: value for name, value in told.items() if name != "sessionUpdate"}}

    async def _set_option(self, params: shapes.SetConfigOption) -> Update:
        session = await self._session(params.session_id)
        await session.set_option(params.config_id, params.value)
        return {"configOptions": lower_options(session.options_update())}

    async def _prompt(self, params: shapes.Prompt) -> Update:
        """Acknowledge a prompt once it is part of the conversation (C3). One that is, is never answered by an error."""
        turn = await self._begin(params)
        try:
            return {"messageId": await asyncio.shield(turn.accepted)}
        except asyncio.CancelledError:
            if self._peer.has_ended and self._goes_on(turn):
                raise  # the client has left; its turn goes on
            if turn.session.cancel_turn(turn):
                raise
            self._peer.shield_request()  # it may be inserted by now, however long that takes
            return {"messageId": await turn.accepted}

    async def _cancel_tool_call(self, params: CancelToolCall) -> Update:
        """Cancel one tool call; its last update tells when it has stopped (C5)."""
        return await self._cancel_one(params.session_id, params.tool_call_id)

    async def _cancel_terminal(self, params: CancelTerminal) -> Update:
        """Stop the command in one terminal."""
        return await self._cancel_one(params.session_id, params.terminal_id)

    async def _cancel_one(self, session_id: str, id_: str) -> Update:
        if not await (await self._session(session_id)).cancel_part(id_):
            raise InvalidParams(f"Nothing called {id_[:100]} can be cancelled by itself; cancel the session's turn")
        return {}
