"""Protocol version 2 on a connection: its methods, each bound to what the engine does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.agent.performer import commands_update
from holdfast.errors import InvalidParams
from holdfast.peer import Routes
from holdfast.server.sessions import Sessions, equipment
from holdfast.server.watch import Watch
from holdfast.surface.v2 import initialize, shapes
from holdfast.surface.v2.asks import Asks
from holdfast.surface.v2.lower import Lowering, lower_commands, lower_options

if TYPE_CHECKING:
    from holdfast.agent.equipment import Equipment
    from holdfast.engine import LiveSession
    from holdfast.model import Update
    from holdfast.peer import Peer
    from holdfast.server.host import Host


class Version2:
    """One version 2 client."""

    version = initialize.VERSION

    def __init__(self, host: Host, peer: Peer, capabilities: Update) -> None:
        self._host = host
        self._peer = peer
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
        """Give the methods of version 2, those of its early draft and the unstable ones among them (B9, B15, B16)."""
        routes = Routes()
        routes.request("auth/login", self._login, shapes.Login)
        routes.request("auth/logout", self._logout, shapes.Params)
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
        routes.request("session/set_config_option", self._set_option, shapes.SetConfigOption)
        routes.request("session/prompt", self._prompt, shapes.Prompt)
        routes.request("tool_call/cancel", self._refuse_cancel, shapes.Params)
        routes.request("terminal/cancel", self._refuse_cancel, shapes.Params)
        routes.urgent_notification("session/cancel", self._cancel, shapes.OfSession)
        return routes

    def _watch(self, session_id: str) -> Watch:
        return Watch(self._peer, session_id, Lowering(session_id), self._asks, frozenset())

    def _configuration(self, session: LiveSession) -> Update:
        answer: Update = {}
        if self._host.agent.options:
            answer["configOptions"] = lower_options(self._sessions.options(session))
        if self._host.agent.commands:
            answer["availableCommands"] = lower_commands(commands_update(self._host.agent))
        return answer

    async def _login(self, it: shapes.Login) -> Update:
        await self._host.log_in(it.method_id)
        return {}

    async def _logout(self, _: shapes.Params) -> Update:
        await self._host.log_out()
        return {}

    def _equipment(self, it: shapes.Roots) -> Equipment:
        return equipment(it.mcp_servers, initialize.MCP_KINDS, typed=True, modes=self._asks.modes)

    async def _new(self, it: shapes.NewSession) -> Update:
        session = await self._sessions.new(it.cwd, it.additional_directories, self._equipment(it))
        return {"sessionId": session.id, **self._configuration(session)}

    async def _load(self, it: shapes.LoadSession) -> None:
        """Replay everything and answer null, as the early draft has it (B9)."""
        session = await self._sessions.restore(
            it.session_id, it.cwd, it.additional_directories, self._equipment(it), replay=True
        )
        self._sessions.show(session, state_update(session))

    async def _resume(self, it: shapes.ResumeSession) -> Update:
        """Bring a session back; a snapshot of its state comes after any replay and before the answer (B8)."""
        if it.replay_from is not None and it.replay_from.get("type") != "start":
            raise InvalidParams('replayFrom must be {"type": "start"}')
        replay = it.replay_from is not None
        session = await self._sessions.restore(
            it.session_id, it.cwd, it.additional_directories, self._equipment(it), replay=replay
        )
        self._sessions.show(session, state_update(session))
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
        status, session = await self._sessions.status(it.session_id)
        if session is None:
            return {"status": status}
        state = state_update(session)
        del state["sessionUpdate"]
        return {"status": status, "state": state}

    async def _set_title(self, it: shapes.SetTitle) -> Update:
        await self._sessions.set_title(it.session_id, it.title)
        return {"title": it.title}

    async def _set_option(self, it: shapes.SetConfigOption) -> Update:
        session = await self._sessions.set_option(it.session_id, it.config_id, it.value)
        return {"configOptions": lower_options(self._sessions.options(session))}

    async def _prompt(self, it: shapes.Prompt) -> Update:
        """Acknowledge a prompt once it is part of the conversation (C3)."""
        turn = await self._sessions.prompt(it.session_id, it.prompt, it.meta)
        try:
            return {"messageId": await asyncio.shield(turn.accepted)}
        except asyncio.CancelledError:
            self._sessions.cancel_turn(turn)
            raise

    async def _refuse_cancel(self, _: shapes.Params) -> None:
        raise InvalidParams("It cannot be cancelled by itself, and does not say it can; cancel the session's turn")

    def _cancel(self, it: shapes.OfSession) -> None:
        self._sessions.cancel(it.session_id)


def state_update(session: LiveSession) -> Update:
    """Tell what a session is doing."""
    turn = session.turn
    if turn is None or not turn.running:
        return {"sessionUpdate": "state_update", "state": "idle"}
    return {"sessionUpdate": "state_update", "state": "requires_action" if turn.asking else "running"}
