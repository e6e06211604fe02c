"""One session of an author's agent while it is in memory: what it offers, and which of the author's functions works."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from holdfast.agent.mcp_servers import McpServers
from holdfast.agent.session import Session
from holdfast.agent.turn import Turn
from holdfast.errors import UsageError
from holdfast.workspace.roots import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.agent.agent import Agent, Command, Handler
    from holdfast.engine import LiveSession, LiveTurn, SessionClient
    from holdfast.mcp import Server
    from holdfast.model import Option, OptionValue, StopReason, Update

log: logging.Logger = logging.getLogger(__name__)


class AuthorSession:
    """One session of an author's agent while it is in memory."""

    def __init__(self, agent: Agent, session: LiveSession, servers: tuple[Server, ...]) -> None:
        self.agent: Agent = agent
        self.live = session
        self.servers: McpServers = McpServers(session, servers)
        self.scratch: dict[str, Any] = {}
        """What the author's code keeps with the session while it is in memory."""
        self.own_options: dict[str, Option | None] = {}
        """The options of this session alone; None where one of the agent's is not offered in it."""
        self.own_commands: dict[str, Command | None] = {}
        self.announces = False
        """Whether clients are told of changes: not before the session is open, its answer tells them all."""
        self._working: dict[SessionClient | None, int] = {}
        self._workspaces: dict[SessionClient | None, Workspace] = {}
        self._held: dict[SessionClient | None, ExitStack] = {}

    def seen_by(self, client: SessionClient | None) -> Session:
        """Return the session as the author's code sees it when it works for a client."""
        return Session(self, client)

    # What it offers

    @property
    def options(self) -> tuple[Option, ...]:
        """The agent's options, and those of this session."""
        if not self.own_options:
            return tuple(self.agent.options)
        offered = {option.id: option for option in self.agent.options} | self.own_options
        return tuple(option for option in offered.values() if option is not None)

    @property
    def commands(self) -> Sequence[Update]:
        """The agent's commands, and those of this session."""
        return [command.described() for command in self.all_commands().values()]

    def all_commands(self) -> dict[str, Command]:
        """Return the commands by name."""
        offered = self.agent.commands | self.own_commands
        return {name: command for name, command in offered.items() if command is not None}

    # What happens to it

    async def attached(self, client: SessionClient) -> None:
        """Resolve a client's roots and connect its servers; where others are here, its first prompt does that (E3)."""
        self.resolve_roots(client)
        alone = all(attachment.client is client for attachment in self.live.attachments)
        if client not in self._working and (alone or self.servers.has(client)):
            await self.servers.connect(client)

    async def detached(self, client: SessionClient) -> None:
        """Forget a client that left, and disconnect its servers; while a turn of it runs, that has to wait."""
        if client not in self._working:
            self._workspaces.pop(client, None)
            await self.servers.disconnect(client)

    def resolve_roots(self, client: SessionClient | None) -> None:
        """Find out which directories a client's roots are now: those, and no others, are its roots from now on (P9)."""
        if client not in self._working:
            cwd, *additional = self.live.roots if client is None else client.roots
            self._workspaces[client] = Workspace.resolve(cwd, additional)

    def workspace(self, client: SessionClient | None) -> Workspace:
        """Return the directories a client has opened the session with; they are kept open while a turn of it runs."""
        if client not in self._workspaces:
            self.resolve_roots(client)
        workspace = self._workspaces[client]
        if client in self._working and client not in self._held:
            self._held[client] = holding = ExitStack()
            holding.enter_context(workspace.hold())
        return workspace

    def notices(self, client: SessionClient) -> list[Update]:
        """Return notices of the client's servers that have failed."""
        return self.servers.failures(client)

    async def option_set(self, option: str, value: OptionValue) -> None:
        """Call the author's hooks."""
        turn = self.live.turn
        session = self.seen_by(None if turn is None else turn.client)
        for hook in self.agent.option_hooks:
            await hook(session, option, value)

    async def admit(self, turn: LiveTurn) -> None:
        """Refuse nothing: the author's code sees every prompt."""

    async def perform(self, turn: LiveTurn) -> StopReason | None:
        """Call the author's handler and return why the turn ended."""
        client = turn.client
        self._working[client] = self._working.get(client, 0) + 1
        try:
            if self.servers.is_used or (client is not None and client.mcp_servers):
                await self.servers.connect(client)
            return await self._answer(turn)
        finally:
            self._working[client] -= 1
            if not self._working[client]:
                del self._working[client]
                if (held := self._held.pop(client, None)) is not None:
                    held.close()
                if client is not None and all(other.client is not client for other in self.live.attachments):
                    self.live.start(self.servers.disconnect(client))

    async def _answer(self, turn: LiveTurn) -> StopReason | None:
        handler, text = self._handler_for(turn.text)
        theirs = Turn(self.seen_by(turn.client), turn, text)
        answer = handler(theirs)
        if isinstance(answer, AsyncIterator):
            async for piece in answer:
                await theirs.say(piece)
        elif (result := await answer) is not None:
            raise UsageError(_unseen(result, handler))
        is_whole = turn.running and not turn.stopping and theirs.stop_reason is None
        if is_whole and handler is self.agent.handler and len(turn.history) == 1:  # the prompt, and nothing else
            log.warning("%s has said nothing; say it with `await turn.say(…)`", _described(handler))
        return theirs.stop_reason

    def _handler_for(self, text: str) -> tuple[Handler, str]:
        name, *rest = text.split(maxsplit=1) or ("",)
        if text.startswith("/") and (command := self.all_commands().get(name[1:])) is not None:
            return command.handle, rest[0].strip() if rest else ""
        if self.agent.handler is None:
            raise UsageError("the agent has only commands, and this is none of them")
        return self.agent.handler, text

    async def close(self) -> None:
        """Call the author's hooks, and end the connections to MCP servers (E5)."""
        try:
            for hook in self.agent.close_hooks:
                await hook(self.seen_by(None))
        finally:
            await self.servers.close()


def _unseen(result: object, handler: Handler) -> str:
    """Return what is wrong with a handler that returns something: nobody would be shown it."""
    what = "a string" if isinstance(result, str) else type(result).__name__
    return (
        f"{_described(handler)} returned {what}, and nobody is shown it; "
        "say it with `await turn.say(…)`, and return nothing"
    )


def _described(handler: Handler) -> str:
    """Return which function of the author's it is, and where it is written."""
    code = getattr(handler, "__code__", None)
    where = "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
    return f"the handler {getattr(handler, '__name__', handler)}{where}"
