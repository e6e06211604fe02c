"""`Session` as the author of an agent sees it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from holdfast.agent.equipment import toolbox_of
from holdfast.errors import UsageError
from holdfast.format import fold, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast.agent.agent import Agent
    from holdfast.engine import Engine, LiveSession
    from holdfast.mcp import Toolbox
    from holdfast.model import Entry, History
    from holdfast.workspace import Files


class Session:
    """The conversation a turn belongs to. It outlives processes; so does what is put into `state`."""

    __slots__ = ("_agent", "_engine", "_live")

    def __init__(self, agent: Agent, engine: Engine, live: LiveSession) -> None:
        self._agent = agent
        self._engine = engine
        self._live = live

    @property
    def id(self) -> str:
        """Its id, the same for ever."""
        return self._live.id

    @property
    def cwd(self) -> str:
        """Its working directory."""
        return self._live.cwd

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories it may work in, the working directory first."""
        return self._live.roots

    @property
    def title(self) -> str | None:
        """Its title."""
        return self._live.title

    @property
    def interrupted(self) -> bool:
        """Whether the turn before this one was broken off because the process died."""
        return self._live.state.interrupted

    @property
    def state(self) -> dict[str, Any]:
        """A dict of JSON values to remember things in; stored when the turn ends, and by `save`."""
        return self._live.state.memory

    async def save(self) -> None:
        """Store `state` now."""
        await self._engine.save(self._live)

    async def rename(self, title: str | None) -> None:
        """Give it a title; None takes it away."""
        await self._engine.rename(self._live, title, by="agent")

    @property
    def mode(self) -> str:
        """The mode that is set: the value of the option of category ``mode``."""
        return self._in_category("mode")

    @property
    def model(self) -> str:
        """The model that is set: the value of the option of category ``model``."""
        return self._in_category("model")

    @property
    def options(self) -> Options:
        """The values of all options, by id."""
        return Options(self._agent, self._live)

    async def set(self, option: str, value: str | bool) -> None:  # noqa: FBT001
        """Set an option; the client is told."""
        await self._engine.adjust_option(self._live, option, value)

    @property
    def mcp(self) -> Toolbox:
        """The MCP servers its client gave it: their tools, resources and prompts, and how they are doing."""
        return toolbox_of(self._live)

    async def history(self, running: Iterable[Entry] = ()) -> History:
        """Read all that is stored of the conversation; behind it comes what a running turn has said."""
        stored = self._engine.store.read(self._live.id, self._live.lines)
        blocks = [block async for some in stored for block in some]
        blocks += (it.body for it in lines_of(running))
        # Beside the event loop: others need not wait while a long conversation is put together.
        return await asyncio.to_thread(lambda: fold(line for block in blocks for line in block.split(b"\n")))

    def files(self) -> Files:
        """Get the files in its roots."""
        from holdfast.workspace import Files, Workspace  # noqa: PLC0415  (not everybody needs them)

        return Files(Workspace.resolve(self._live.cwd, self._live.additional))

    def _in_category(self, category: str) -> str:
        for option in self._agent.options:
            if option.category == category:
                return str(self._live.value(option))
        raise UsageError(f"the agent declares no {category}s; call agent.{category}s({{…}}, default=…)")


class Options:
    """The values of a session's options, read like a dict."""

    __slots__ = ("_agent", "_live")

    def __init__(self, agent: Agent, live: LiveSession) -> None:
        self._agent = agent
        self._live = live

    def __getitem__(self, option_id: str) -> str | bool:
        for option in self._agent.options:
            if option.id == option_id:
                return self._live.value(option)
        raise KeyError(option_id)

    def __iter__(self) -> Iterator[str]:
        return iter(option.id for option in self._agent.options)

    def __len__(self) -> int:
        return len(self._agent.options)

    def as_dict(self) -> Mapping[str, str | bool]:
        """Get all of them."""
        return {it: self[it] for it in self}
