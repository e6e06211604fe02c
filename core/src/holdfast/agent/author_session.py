"""One session of an author's agent while it is in memory: what it offers, and which of the author's functions works."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from holdfast.agent.mcp_servers import McpServers
from holdfast.agent.session import Session
from holdfast.agent.turn import Turn
from holdfast.errors import UsageError
from holdfast.workspace.roots import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.agent.agent import Agent, Command, Handler
    from holdfast.engine import LiveSession, LiveTurn, SessionClient
    from holdfast.mcp import Server
    from holdfast.model import Option, OptionValue, StopReason, Update

log: logging.Logger = logging.getLogger(__name__)


NOTHING: Mapping[str, Any] = MappingProxyType({})
"""What most sessions have of their own; it is never changed, but replaced."""


class ClientWork:
    """What a client has in a session: its directories, how many of its turns run, and what holds them open then."""

    __slots__ = ("client", "held", "turns", "workspace")

    def __init__(self, client: SessionClient | None) -> None:
        self.client: SessionClient | None = client
        self.workspace: Workspace | None = None
        self.turns: int = 0
        self.held: ExitStack | None = None


class AuthorSession:
    """One session of an author's agent while it is in memory. Small, because a server may hold many that do nothing."""

    __slots__ = ("_clients", "_scratch", "agent", "announces", "live", "own_commands", "own_options", "servers")

    def __init__(self, agent: Agent, session: LiveSession, servers: tuple[Server, ...]) -> None:
        self.agent: Agent = agent
        self.live: LiveSession = session
        self.servers: McpServers = McpServers(session, servers)
        self.own_options: Mapping[str, Option | None] = NOTHING
        """The options of this session alone; None where one of the agent's is not offered in it."""
        self.own_commands: Mapping[str, Command | None] = NOTHING
        self.announces: bool = False
        """Whether clients are told of changes: not before the session is open, its answer tells them all."""
        self._clients: tuple[ClientWork, ...] = ()
        self._scratch: dict[str, Any] | None = None

    def seen_by(self, client: SessionClient | None) -> Session:
        """Return the session as the author's code sees it when it works for a client."""
        return Session(self, client)

    @property
    def scratch(self) -> dict[str, Any]:
        """What the author's code keeps with the session while it is in memory."""
        if self._scratch is None:
            self._scratch = {}
        return self._scratch

    # What it offers

    def offer_option(self, id_: str, option: Option | None) -> None:
        """Offer an option in this session alone, or, with None, one of the agent's no longer; tell clients."""
        self.own_options = {**self.own_options, id_: option}
        if self.announces:
            self.live.options_changed()

    def offer_command(self, name: str, command: Command | None) -> None:
        """Offer a command in this session alone, or, with None, one of the agent's no longer; tell clients."""
        self.own_commands = {**self.own_commands, name: command}
        if self.announces:
            self.live.commands_changed()

    @property
    def options(self) -> tuple[Option, ...]:
        """The agent's options, and those of this session."""
        if not self.own_options:
            return tuple(self.agent.options)
        offered = {**{option.id: option for option in self.agent.options}, **self.own_options}
        return tuple(option for option in offered.values() if option is not None)

    @property
    def commands(self) -> Sequence[Update]:
        """The agent's commands, and those of this session."""
        return [command.described() for command in self.all_commands().values()]

    def all_commands(self) -> dict[str, Command]:
        """Return the commands by name."""
        offered = {**self.agent.commands, **self.own_commands}
        return {name: command for name, command in offered.items() if command is not None}

    # What happens to it

    async def attached(self, client: SessionClient) -> None:
        """Resolve a client's roots and connect its servers; where others are here, its first prompt does that (E3)."""
        self.resolve_roots(client)
        alone = all(attachment.client is client for attachment in self.live.attachments)
        if not self._work_of(client).turns and (alone or self.servers.has(client)):
            await self.servers.connect(client)

    async def detached(self, client: SessionClient) -> None:
        """Forget a client that left, and disconnect its servers; while a turn of it runs, that has to wait."""
        if not self._work_of(client).turns:
            self._forget(client)
            await self.servers.disconnect(client)

    def _forget(self, client: SessionClient) -> None:
        self._clients = tuple(work for work in self._clients if work.client is not client)

    def _work_of(self, client: SessionClient | None) -> ClientWork:
        for work in self._clients:
            if work.client is client:
                return work
        work = ClientWork(client)
        self._clients = (*self._clients, work)
        return work

    def resolve_roots(self, client: SessionClient | None) -> Workspace:
        """Find out which directories a client's roots are now: those, and no others, are its roots from now on (P9).

        Those with which one of its turns works stay what they are.
        """
        work = self._work_of(client)
        if work.workspace is None or not work.turns:
            cwd, *additional = self.live.roots if client is None else client.roots
            work.workspace = Workspace.resolve(cwd, additional)
        return work.workspace

    def workspace(self, client: SessionClient | None) -> Workspace:
        """Return the directories a client has opened the session with; they are kept open while a turn of it runs."""
        work = self._work_of(client)
        workspace = work.workspace or self.resolve_roots(client)
        if work.turns and work.held is None:
            work.held = ExitStack()
            work.held.enter_context(workspace.hold())
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
        work = self._work_of(client)
        work.turns += 1
        try:
            if self.servers.is_used or (client is not None and client.mcp_servers):
                await self.servers.connect(client)
            return await self._answer(turn)
        finally:
            work.turns -= 1
            if not work.turns:
                if work.held is not None:
                    work.held.close()
                    work.held = None
                if client is not None and all(other.client is not client for other in self.live.attachments):
                    self._forget(client)
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
