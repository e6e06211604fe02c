"""Protocol version 1 on a connection: its methods, each bound to what the engine does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.errors import InternalError, InvalidParams
from holdfast.peer import Routes
from holdfast.server.sessions import Sessions, equipment
from holdfast.server.watch import Watch
from holdfast.surface.v1 import initialize, options, shapes
from holdfast.surface.v1.asks import Asks
from holdfast.surface.v1.client import Client
from holdfast.surface.v1.lower import Lowering

if TYPE_CHECKING:
    from holdfast.agent.equipment import Equipment
    from holdfast.engine import LiveSession
    from holdfast.model import Update
    from holdfast.peer import Peer
    from holdfast.server.host import Host


class Version1:
    """One version 1 client."""

    version = initialize.VERSION

    def __init__(self, host: Host, peer: Peer, capabilities: Update) -> None:
        self._host = host
        self._peer = peer
        self._client = Client(capabilities)
        self._asks = Asks(capabilities)
        self._sessions = Sessions(host, peer, self._watch)

    def introduction(self) -> Update:
        """Answer `initialize`."""
        agent = self._host.agent
        auth = [(it.id, it.name, it.description) for it in agent.auth_methods]
        return initialize.result(
            name=agent.name, title=agent.title, version=agent.version, accepts=agent.accepts, auth=auth
        )

    def leave(self) -> None:
        """Stop watching."""
        self._sessions.leave()

    def routes(self) -> Routes:
        """Give the methods of version 1, the unstable ones among them (B15, B16, D4)."""
        routes = Routes()
        routes.request("authenticate", self._authenticate, shapes.Authenticate)
        routes.request("logout", self._logout, shapes.Params)
        routes.request("session/new", self._new, shapes.NewSession)
        routes.request("session/load", self._load, shapes.LoadSession)
        routes.request("session/resume", self._resume, shapes.ResumeSession)
        routes.request("session/fork", self._fork, shapes.ForkSession)
        routes.request("session/list", self._list, shapes.ListSessions)
        routes.request("session/close", self._close, shapes.OfSession)
        routes.request("session/delete", self._delete, shapes.OfSession)
        routes.request("session/archive", self._archive, shapes.OfSession)
        routes.request("session/unarchive", self._unarchive, shapes.OfSession)
        routes.request("session/status", self._status, shapes.OfSession)
        routes.request("session/set_title", self._set_title, shapes.SetTitle)
        routes.request("session/set_mode", self._set_mode, shapes.SetMode)
        routes.request("session/set_model", self._set_model, shapes.SetModel)
        routes.request("session/set_config_option", self._set_option, shapes.SetConfigOption)
        routes.request("session/prompt", self._prompt, shapes.Prompt)
        routes.urgent_notification("session/cancel", self._cancel, shapes.OfSession)
        return routes

    def _watch(self, session_id: str) -> Watch:
        lowering = Lowering(session_id, self._client)
        return Watch(self._peer, session_id, lowering, self._asks, self._client.services)

    def _configuration(self, session: LiveSession) -> Update:
        return options.configuration(self._sessions.options(session), self._client)

    async def _authenticate(self, it: shapes.Authenticate) -> Update:
        await self._host.log_in(it.method_id)
        return {}

    async def _logout(self, _: shapes.Params) -> Update:
        await self._host.log_out()
        return {}

    def _equipment(self, it: shapes.Roots) -> Equipment:
        return equipment(it.mcp_servers, initialize.MCP_KINDS, typed=False, modes=self._asks.modes)

    async def _new(self, it: shapes.NewSession) -> Update:
        session = await self._sessions.new(it.cwd, it.additional_directories, self._equipment(it))
        return {"sessionId": session.id, **self._configuration(session)}

    async def _load(self, it: shapes.LoadSession) -> Update:
        session = await self._sessions.restore(
            it.session_id, it.cwd, it.additional_directories, self._equipment(it), replay=True
        )
        return self._configuration(session)

    async def _resume(self, it: shapes.ResumeSession) -> Update:
        session = await self._sessions.restore(
            it.session_id, it.cwd, it.additional_directories, self._equipment(it), replay=False
        )
        return self._configuration(session)

    async def _fork(self, it: shapes.ForkSession) -> Update:
        session = await self._sessions.fork(
            it.session_id, it.cwd, it.additional_directories, self._equipment(it), it.meta
        )
        return {"sessionId": session.id, **self._configuration(session)}

    async def _list(self, it: shapes.ListSessions) -> Update:
        return await self._sessions.list(it.cwd, it.cursor, it.archived)

    async def _close(self, it: shapes.OfSession) -> Update:
        await self._sessions.close(it.session_id)
        return {}

    async def _delete(self, it: shapes.OfSession) -> Update:
        await self._sessions.delete(it.session_id)
        return {}

    async def _archive(self, it: shapes.OfSession) -> Update:
        await self._sessions.archive(it.session_id, archived=True)
        return {}

    async def _unarchive(self, it: shapes.OfSession) -> Update:
        await self._sessions.archive(it.session_id, archived=False)
        return {}

    async def _status(self, it: shapes.OfSession) -> Update:
        status, _ = await self._sessions.status(it.session_id)
        return {"status": status}

    async def _set_title(self, it: shapes.SetTitle) -> Update:
        await self._sessions.set_title(it.session_id, it.title)
        return {"title": it.title}

    async def _set_mode(self, it: shapes.SetMode) -> Update:
        await self._set_category(it.session_id, "mode", it.mode_id)
        return {}

    async def _set_model(self, it: shapes.SetModel) -> Update:
        await self._set_category(it.session_id, "model", it.model_id)
        return {}

    async def _set_category(self, session_id: str, category: str, value: str) -> None:
        option_id = options.option_in(self._sessions.options(await self._sessions.opened(session_id)), category)
        if option_id is None:
            raise InvalidParams(f"This agent has no {category}s")
        await self._sessions.set_option(session_id, option_id, value)

    async def _set_option(self, it: shapes.SetConfigOption) -> Update:
        session = await self._sessions.set_option(it.session_id, it.config_id, it.value)
        return {"configOptions": options.lower_options(self._sessions.options(session), self._client)}

    async def _prompt(self, it: shapes.Prompt) -> Update:
        """Answer a prompt when its turn has ended (C2)."""
        turn = await self._sessions.prompt(it.session_id, it.prompt, it.meta)
        try:
            end = await asyncio.shield(turn.ended)
        except asyncio.CancelledError:
            self._sessions.cancel_turn(turn)
            end = await turn.ended
        if end.reason == "error":
            raise InternalError(end.error or "The turn failed")
        return {"stopReason": end.reason}

    def _cancel(self, it: shapes.OfSession) -> None:
        self._sessions.cancel(it.session_id)
