"""`Session` as the author of an agent sees it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.agent.agent import MODELS, MODES, OPTION, Command, checked_function, checked_option, is_command_name
from holdfast.agent.decorators import called_as, unknown_name
from holdfast.agent.session_state import SessionDict
from holdfast.errors import UsageError
from holdfast.format import fold, lines_of
from holdfast.model import check_json, no_such_option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast.agent.agent import Handler, Values
    from holdfast.agent.author_session import AuthorSession
    from holdfast.agent.client import ClientServices
    from holdfast.engine import LiveTurn, SessionClient
    from holdfast.mcp import Toolbox
    from holdfast.model import Entry, History, SystemPrompt
    from holdfast.workspace import Files


class Session:
    """The conversation a turn belongs to. It outlives processes; so does what is put into `state`."""

    __module__ = "holdfast"  # where everybody imports it from

    __slots__ = ("_author", "_client", "_live")

    def __init__(self, author: AuthorSession, client: SessionClient | None) -> None:
        self._author = author
        self._client = client
        self._live = author.live

    if not TYPE_CHECKING:  # type checkers say it too

        def __getattr__(self, name: str) -> object:
            from holdfast.agent.turn import Turn  # noqa: PLC0415  (a mistake)

            raise unknown_name("session", self, name, {"turn.{}": Turn})

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
        """The directories the client that prompts has opened it with, the working directory first."""
        return self._live.roots if self._client is None else self._client.roots

    @property
    def system_prompt(self) -> SystemPrompt | None:
        """The instructions that the client that prompts gives to the model, if the agent accepts any.

        Its `mode` is ``append`` or ``override``, its `text` what to tell the model.
        """
        return None if self._client is None else self._client.system_prompt

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the request by which the client that prompts has opened it; `turn.meta` has a prompt's.

        What a client sent with `initialize` is in `turn.client.info.meta`. None of it is stored.
        """
        return (None if self._client is None else self._client.meta) or {}

    @property
    def title(self) -> str | None:
        """Its title."""
        return self._live.title

    @property
    def interrupted(self) -> bool:
        """Whether the turn before this one was broken off because the process died."""
        return self._live.state.interrupted

    # What it remembers

    @property
    def state(self) -> dict[str, Any]:
        """A dict of JSON values for small settings; stored when the turn ends, and by `save`.

        To put something else in raises `UsageError`: a tuple, a set or a date would come back as something else.
        """
        memory = self._live.memory
        if isinstance(memory, SessionDict):
            return memory
        checked = SessionDict(memory)
        if memory is self._live.state.memory:  # not before the session belongs to this agent
            self._live.state.memory = checked
        return checked

    async def save(self) -> None:
        """Store `state` now.

        Raises:
            UsageError: something in it is no JSON value.

        """
        check_json("session.state", dict(self.state))
        await self._live.save()

    @property
    def live(self) -> dict[str, Any]:
        """A dict for anything that need not outlive the process: it is dropped when the session leaves memory."""
        return self._author.scratch

    async def kept(self) -> list[Any]:
        """Read all that was put into the history with `turn.keep`.

        Returns:
            The values, in the order they were kept.

        """
        return [msgspec.json.decode(entry) for entry in await self._live.private_entries()]

    @property
    def cut(self) -> bool:
        """Whether it is a fork that ends inside a turn: what that turn had kept with `turn.keep` is not in it."""
        return self._live.state.cut_turn

    @property
    def position(self) -> int:
        """How far its stored history goes, as a number that only grows: see `history`."""
        return self._live.journal.lines

    async def history(self, running: Iterable[Entry] = (), *, since: int = 0) -> History:
        """Read what is stored of the conversation; behind it comes what a running turn has said.

        Args:
            running: what a running turn has said: `turn.said`.
            since: a `position` from before; only what was added after that is read.

        Returns:
            The history.

        """
        blocks = [block async for some in self._live.read(since) for block in some]
        blocks += (line.body for line in lines_of(running))
        # Beside the event loop: others need not wait while a long conversation is put together.
        return await asyncio.to_thread(lambda: fold(line for block in blocks for line in block.split(b"\n")))

    async def rename(self, title: str | None) -> None:
        """Set the title; the clients are told.

        Args:
            title: the new title; None removes it.

        """
        await self._live.rename(title, by="agent")

    # What can be set, and which commands there are

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
        return Options(self._author)

    @called_as('await session.set("mode", "act")')
    async def set(self, option: str, value: str | bool) -> None:  # noqa: FBT001
        """Set an option; the clients are told.

        Args:
            option: the id of the option; ``mode`` and ``model`` are the option of that category, whatever its id.
            value: one of its values, or True or False for a switch.

        Raises:
            InvalidParams: there is no such option, or it has no such value.

        """
        options = self._author.options
        if option in ("mode", "model") and all(known.id != option for known in options):
            option = next((known.id for known in options if known.category == option), option)
        await self._live.adjust_option(option, value)

    @called_as(f"await {OPTION.replace('agent', 'session')}")
    async def option(
        self,
        id: str,
        *,
        name: str,
        values: Values | None = None,
        default: str | bool,
        category: str | None = None,
        description: str | None = None,
    ) -> None:
        """Offer an option in this session alone. One with the same id is replaced.

        The client is told. In `on_open`, before the session is shown at all, it is part of what the client is told
        first. Offer it again whenever the session comes back to life: only the value that was set is stored.

        Args:
            id: its name for programs; all arguments are as with `Agent.option`.
            name: its name for people.
            values: each value with its name, or with its name and description; without values it is a switch.
            default: the value that holds until the user sets another.
            category: what it is about: ``mode``, ``model``, ``thought_level``.
            description: what it does, for people to read.

        Raises:
            UsageError: the default is none of the values.

        """
        self._author.offer_option(
            id, checked_option("session.option", id, name, values, default, category, description)
        )

    @called_as(f"await {MODES.replace('agent', 'session')}")
    async def modes(self, values: Values, *, default: str) -> None:
        """Offer modes in this session alone: the option of category ``mode``.

        Args:
            values: each mode with its name, or with its name and description.
            default: the mode that holds until the user sets another.

        Raises:
            UsageError: the default is none of the values.

        """
        option = checked_option("session.modes", "mode", "Mode", values, default, "mode", None)
        self._author.offer_option(option.id, option)

    @called_as(f"await {MODELS.replace('agent', 'session')}")
    async def models(self, values: Values, *, default: str) -> None:
        """Offer models in this session alone: the option of category ``model``.

        Args:
            values: each model with its name, or with its name and description.
            default: the model that holds until the user sets another.

        Raises:
            UsageError: the default is none of the values.

        """
        option = checked_option("session.models", "model", "Model", values, default, "model", None)
        self._author.offer_option(option.id, option)

    async def remove_option(self, id: str) -> None:
        """Offer an option no longer in this session, one of the agent's or of its own.

        Args:
            id: the id of the option.

        """
        self._author.offer_option(id, None)

    async def command(self, name: str, description: str, handler: Handler, *, hint: str | None = None) -> None:
        """Offer a slash command in this session alone. One with the same name is replaced.

        Args:
            name: the name of the command, without slash and spaces; all arguments are as with `Agent.command`.
            description: what it does, for people to read.
            handler: ``async def (turn)``, or an async generator of text to say.
            hint: what to type behind it.

        Raises:
            UsageError: it cannot be a name, or the function is no async function of one argument.

        """
        checked_function(handler, f"the command /{name}", "turn")
        self._author.offer_command(is_command_name(name), Command(name, description, hint, handler))

    async def remove_command(self, name: str) -> None:
        """Offer a slash command no longer in this session, one of the agent's or of its own.

        Args:
            name: the name of the command.

        """
        self._author.offer_command(name, None)

    def _in_category(self, category: str) -> str:
        for option in self._author.options:
            if option.category == category:
                return str(self._live.value(option))
        raise UsageError(f"the agent declares no {category}s; call agent.{category}s({{…}}, default=…)")

    # What it can use

    @property
    def mcp(self) -> Toolbox:
        """The MCP servers of the client that prompts: their tools, resources and prompts, and how they are doing."""
        return self._author.servers.toolbox(self._client)

    def services(self, turn: LiveTurn) -> ClientServices | None:
        """Return what the client that prompts does for the agent; None where no client prompts."""
        from holdfast.agent.client import ClientServices  # noqa: PLC0415  (few agents use it)

        client = self._client
        return None if client is None else ClientServices(turn, client, lambda: self._author.workspace(client))

    def files(self) -> Files:
        """Return the files in its roots, which are the directories that were there when the client opened it."""
        from holdfast.workspace import Files  # noqa: PLC0415  (not everybody needs them)

        return Files(self._author.workspace(self._client))


class _NoSuchOption(UsageError, KeyError):
    """Is raised as a dict does, and says which options there are."""

    def __str__(self) -> str:
        return str(self.args[0])


class Options:
    """The values of a session's options, read like a dict."""

    __slots__ = ("_author",)

    def __init__(self, author: AuthorSession) -> None:
        self._author = author

    def __getitem__(self, option_id: str) -> str | bool:
        for option in self._author.options:
            if option.id == option_id:
                return self._author.live.value(option)
        raise _NoSuchOption(no_such_option(self._author.options, option_id))

    if not TYPE_CHECKING:  # type checkers say it too

        def __getattr__(self, name: str) -> object:
            if name in (() if name.startswith("_") else self):
                raise AttributeError(f'an option is read by its id; write `session.options["{name}"]`', name=name)
            raise unknown_name("session.options", self, name, {})

    def __iter__(self) -> Iterator[str]:
        return iter(option.id for option in self._author.options)

    def __len__(self) -> int:
        return len(self._author.options)

    def as_dict(self) -> Mapping[str, str | bool]:
        """Return all of them."""
        return {option_id: self[option_id] for option_id in self}
