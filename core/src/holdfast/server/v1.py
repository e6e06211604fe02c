"""Protocol version 1 on a connection: what it says otherwise than other versions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from holdfast.errors import InternalError, InvalidParams, RequestCancelled, RequestError
from holdfast.server.dialect import Dialect
from holdfast.server.positions import position_named
from holdfast.surface import shapes
from holdfast.surface.v1 import initialize, options
from holdfast.surface.v1.asks import Questions
from holdfast.surface.v1.client import Client
from holdfast.surface.v1.lower import Lowering
from holdfast.surface.v1.shapes import SetMode, SetModel

if TYPE_CHECKING:
    from collections.abc import Collection

    from holdfast.engine import OpenSession, OpenTurn
    from holdfast.model import TurnEnd, Update
    from holdfast.peer import IncomingRequest, Routes
    from holdfast.server.connection import ClientConnection

STOP_REASONS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})
"""All reasons that version 1 has words for; a turn that ended for another one has simply ended."""


class Version1(Dialect):
    """One version 1 client."""

    version = initialize.VERSION
    mcp_kinds: ClassVar[Collection[str]] = initialize.MCP_KINDS
    mcp_typed = False
    acknowledges_prompts = False

    def __init__(self, connection: ClientConnection) -> None:
        super().__init__(connection)
        self._client = Client(connection.info.capabilities)
        self._question_forms = Questions(connection.info.capabilities)

    def initialized(self) -> Update:
        """Answer `initialize`."""
        return initialize.result(self.connection.description)

    def routes(self) -> Routes:
        """Return the methods of version 1 (D4 has those for modes and models)."""
        routes = super().routes()
        routes.request("session/resume", self._resume, shapes.RestoreSession)
        routes.request("authenticate", self._log_in, shapes.Login)
        routes.request("logout", self._log_out, shapes.Params)
        routes.request("session/set_mode", self._set_mode, SetMode)
        routes.request("session/set_model", self._set_model, SetModel)
        routes.request("session/prompt", self._prompt, shapes.Prompt, at_once=self._prompt_at_once)
        return routes

    def _lowering(self, session_id: str, session: OpenSession | None = None) -> Lowering:
        mode = options.current_mode(session.options_update()) if session is not None else None
        return Lowering(session_id, self._client, mode, passes_unknown=self.connection.description.forwards)

    def _questions(self) -> Questions:
        return self._question_forms

    def _services(self) -> frozenset[str]:
        return self._client.services

    def _configuration(self, session: OpenSession) -> Update:
        return options.configuration(session.options_update(), self._client)

    async def _load(self, params: shapes.RestoreSession) -> Update:
        session = await self._restore(params, replay=True)
        return self._with_position(self._configuration(session), self._where(session))

    async def _resume(self, params: shapes.RestoreSession) -> Update:
        session = await self._restore(params, replay=False, since=position_named(params.meta))
        return self._with_position(self._configuration(session), self._where(session))

    def _tell_state(self, session: OpenSession) -> None:
        """Do nothing: the answer to a prompt is what tells the end of its turn."""

    async def _status(self, params: shapes.OfSession) -> Update:
        status, _ = await self._live(params.session_id)
        return {"status": status}

    async def _set_mode(self, params: SetMode) -> Update:
        await self._set_category(params.session_id, "mode", params.mode_id)
        return {}

    async def _set_model(self, params: SetModel) -> Update:
        await self._set_category(params.session_id, "model", params.model_id)
        return {}

    async def _set_category(self, session_id: str, category: str, value: str) -> None:
        session = await self._session(session_id)
        option_id = options.option_in(session.options_update(), category)
        if option_id is None:
            raise InvalidParams(f"This agent has no {category}s")
        await session.set_option(option_id, value)

    async def _set_option(self, params: shapes.SetConfigOption) -> Update:
        session = await self._session(params.session_id)
        await session.set_option(params.config_id, params.value)
        return {"configOptions": options.lower_options(session.options_update(), self._client)}

    async def _prompt(self, params: shapes.Prompt) -> Update:
        """Answer a prompt when its turn has ended (C2)."""
        try:
            turn = await self._begin(params)
        except RequestCancelled:
            return {"stopReason": "cancelled"}
        try:
            end = await turn.wait_for_end()
        except asyncio.CancelledError:
            if self._peer.has_ended and self._goes_on(turn):
                raise  # the client has left; its turn goes on
            self._peer.shield_request()
            turn.session.cancel_turn(turn)
            end = await turn.wait_for_end()
        return _answer_of(turn, end)

    def _prompt_at_once(self, params: shapes.Prompt, request: IncomingRequest) -> bool:
        """Do the same without a task, in a session that is open: most have nothing to wait for but their end."""
        turn = self._begin_now(params)
        if turn is None:
            return False

        def ended(end: TurnEnd) -> None:
            try:
                request.succeed(_answer_of(turn, end))
            except RequestError as e:
                request.fail(e)

        def cancel() -> None:
            if self._peer.has_ended and self._goes_on(turn):
                request.give_up()  # the client has left; its turn goes on
            else:
                request.shield()
                turn.session.cancel_turn(turn)

        request.on_cancel = cancel
        turn.when_ended(ended)
        return True


def _answer_of(turn: OpenTurn, end: TurnEnd) -> Update:
    """Return what a client is told of the end of a turn; raise the error that ended it."""
    if end.reason in ("error", "interrupted"):
        raise turn.refusal or InternalError(end.error or "The turn failed")
    return {**end.more, "stopReason": end.reason if end.reason in STOP_REASONS else "end_turn"}
