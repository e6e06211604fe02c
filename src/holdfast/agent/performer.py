"""Between the engine and an author's agent: an `AgentPort` made of an `Agent`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from holdfast.agent.client import ClientServices
from holdfast.agent.equipment import equip, unequip
from holdfast.agent.session import Session
from holdfast.agent.turn import Turn
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.agent.agent import Agent, Handler
    from holdfast.engine import Engine, LiveSession
    from holdfast.engine import Turn as EngineTurn
    from holdfast.mcp import Server
    from holdfast.model import Option, OptionValue, StopReason, Update


class Performer:
    """Lets an author's agent perform turns."""

    begins_entries = True  # every id in a turn is made in it

    def __init__(self, agent: Agent, servers: tuple[Server, ...] = ()) -> None:
        self._agent = agent
        self._servers = servers
        self._engine: Engine | None = None

    @property
    def options(self) -> tuple[Option, ...]:
        """What can be set."""
        return self._agent.options

    def join(self, engine: Engine) -> None:
        """Say which engine it works for."""
        self._engine = engine

    async def opened(self, session: LiveSession) -> None:
        """Begin to connect the session's MCP servers, and call the author's hooks."""
        await equip(session, self._servers)
        try:
            for hook in self._agent.open_hooks:
                await hook(self._session(session))
        except BaseException:
            await unequip(session)
            raise

    async def equipped(self, session: LiveSession) -> None:
        """Connect and disconnect MCP servers, as the client wants it now."""
        await equip(session, self._servers)

    async def closed(self, session: LiveSession) -> None:
        """Call the author's hooks, and end the connections to MCP servers (E5)."""
        try:
            for hook in self._agent.close_hooks:
                await hook(self._session(session))
        finally:
            await unequip(session)

    async def option_set(self, session: LiveSession, option: str, value: OptionValue) -> None:
        """Call the author's hooks."""
        for hook in self._agent.option_hooks:
            await hook(self._session(session), option, value)

    async def perform(self, turn: EngineTurn) -> StopReason | None:
        """Let the author's handler answer."""
        handler, text = self._handler_for(_text(turn.prompt))
        theirs = Turn(self._session(turn.session), turn, text, ClientServices.of(turn))
        answer = handler(theirs)
        if isinstance(answer, AsyncIterator):
            async for piece in answer:
                await theirs.say(piece)
        else:
            await answer
        return theirs.stop_reason

    def _handler_for(self, text: str) -> tuple[Handler, str]:
        name, *rest = text.split(maxsplit=1) or ("",)
        if text.startswith("/") and (command := self._agent.commands.get(name[1:])) is not None:
            return command.handle, rest[0].strip() if rest else ""
        if self._agent.handler is None:
            raise UsageError("the agent has only commands, and this is none of them")
        return self._agent.handler, text

    def _session(self, live: LiveSession) -> Session:
        assert self._engine is not None
        return Session(self._agent, self._engine, live)


def commands_update(agent: Agent) -> Update:
    """Tell the slash commands."""
    commands: list[Update] = []
    for it in agent.commands.values():
        about: Update = {"type": "command", "name": it.name, "description": it.description}
        if it.hint is not None:
            about["input"] = {"type": "text", "hint": it.hint}
        commands.append(about)
    return {"sessionUpdate": "available_commands_update", "availableCommands": commands}


def _text(prompt: Sequence[Update]) -> str:
    return "\n".join(it["text"] for it in prompt if it.get("type") == "text")
