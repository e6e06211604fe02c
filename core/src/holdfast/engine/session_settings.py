"""What can be set in a live session: options, title, what its agent remembers. A change is stored before it is told.

`LiveSession` is the one class made of it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Literal

import msgspec

from holdfast.errors import RequestError, SessionMoved, SessionNotFound
from holdfast.model import Scope, checked_value, options_update, text_without_lone_surrogates
from holdfast.store import Changes

if TYPE_CHECKING:
    from holdfast.engine.journal import Journal
    from holdfast.engine.ports import AgentSession, SessionClient
    from holdfast.engine.registry import Registry
    from holdfast.engine.turn import LiveTurn
    from holdfast.model import Option, OptionValue, SessionState, Update

log: logging.Logger = logging.getLogger(__name__)


class SessionSettings:
    """The settings of a session."""

    __slots__ = ()

    if TYPE_CHECKING:
        id: str
        principal: str
        agent_name: str
        agent: AgentSession
        additional: tuple[str, ...]
        title: str | None
        state: SessionState
        journal: Journal
        turn: LiveTurn | None
        _registry: Registry
        _setting: asyncio.Lock | None
        _told_options: Update | None

        def announce(self, update: Update) -> None: ...
        async def evict(self, reason: str) -> None: ...

    # Options and commands

    def value(self, option: Option) -> OptionValue:
        """Return an option's value: the one that was set, if it is still offered, or its default."""
        value = self.state.options.get(option.id, option.default)
        return value if option.accepts(value) else option.default

    def model_name(self) -> str:
        """Return the name of the model it works with; nothing where its agent does not say."""
        model = next((option for option in self.agent.options if option.category == "model"), None)
        return "" if model is None else model.name_of(self.value(model))

    def notices(self, client: SessionClient) -> list[Update]:
        """Return what the agent has to tell a client that has just attached."""
        return self.agent.notices(client)

    def options_update(self) -> Update:
        """Return all options and their values."""
        options = self.agent.options
        return options_update(options, {option.id: self.value(option) for option in options})

    def commands_update(self) -> Update:
        """Return the slash commands."""
        return {"sessionUpdate": "available_commands_update", "availableCommands": list(self.agent.commands)}

    def options_changed(self) -> None:
        """Tell the clients that the agent offers other options, or other values, unless they were told these last."""
        if not hasattr(self, "agent"):
            return  # what opens it will tell
        update = self.options_update()
        if update != self._told_options:
            self._tell_options(update)

    def _tell_options(self, update: Update) -> None:
        self._told_options = update
        self.announce(update)

    def commands_changed(self) -> None:
        """Tell the clients that the agent offers other commands."""
        if hasattr(self, "agent"):
            self.announce(self.commands_update())

    async def set_option(self, option_id: str, value: object) -> None:
        """Set an option for the user (D2); the agent is told, and may refuse with a `RequestError`."""
        before = self.state.options.get(option_id)
        if not await self._registry.finish(self._set_option(option_id, value)):
            return
        try:
            await self.agent.option_set(option_id, self.state.options[option_id])
        except RequestError:
            await self._registry.finish(self._set_back(option_id, before))
            raise
        except Exception:
            log.exception("The agent failed when an option was set; the option is set all the same")

    async def adjust_option(self, option_id: str, value: OptionValue) -> None:
        """Set an option for the agent (D6)."""
        await self._registry.finish(self._set_option(option_id, value))

    async def _set_option(self, option_id: str, value: object) -> bool:
        # One after the other: a store far away may finish the later first, and clients would be left with the earlier.
        if self._setting is None:
            self._setting = asyncio.Lock()
        async with self._setting:
            return await self._set_option_now(option_id, value)

    async def _set_option_now(self, option_id: str, value: object) -> bool:
        options = self.agent.options
        checked = checked_value(options, option_id, value)
        option = next(option for option in options if option.id == option_id)
        changed = self.value(option) != checked
        before = self.state.options.get(option_id)
        self.state.options[option_id] = checked
        update = self.options_update()  # now: what is set meanwhile is not stored yet
        try:
            # Even if nothing changes: the same value may have been set just now, and is not stored yet (P2).
            await self._save(Changes(state=self.state))
        except BaseException:
            self._put_option(option_id, before)
            raise
        if changed:
            self._tell_options(update)
        return changed

    async def _set_back(self, option_id: str, value: OptionValue | None) -> None:
        self._put_option(option_id, value)
        await self._save(Changes(state=self.state))
        self.options_changed()

    def _put_option(self, option_id: str, value: OptionValue | None) -> None:
        if value is None:
            self.state.options.pop(option_id, None)
        else:
            self.state.options[option_id] = value

    # Title, and what is remembered

    async def rename(self, title: str | None, *, by: Literal["user", "agent"] = "user") -> None:
        """Give it a title; None takes it away. One made of a prompt never comes in its place (B17)."""
        await self._registry.finish(self._rename(title, by))

    async def _rename(self, title: str | None, by: Literal["user", "agent"]) -> None:
        title = None if title is None else text_without_lone_surrogates(title)
        before = self.title, self.state.title_by
        self.title, self.state.title_by = title, by
        try:
            await self._save(Changes(title=title, state=self.state))
        except BaseException:
            if self.title == title:
                self.title, self.state.title_by = before
            raise
        if self.title != title:
            return  # its turn has given it another one since
        update: Update = {"sessionUpdate": "session_info_update", "title": title}
        if self.turn is not None and self.turn.running:
            self.turn.emit_update(update)  # its end must not bring back a title that it gave before
            await self.turn.shown()
        else:
            self.announce(update)

    async def save(self) -> None:
        """Store what the agent wants to remember now, not only when the turn ends."""
        await self._save(Changes(state=self.state))

    async def add_alias(self, name: str) -> None:
        """Let it be found by another name too: the id that its agent has for it (G9)."""
        await self._registry.store.set_alias(Scope(self.principal, self.agent_name), name, self.id)

    async def change(self, changes: Changes) -> None:
        """Change what is known of it besides the conversation; what lists show, as the additional directories."""
        await self._save(changes)
        if not isinstance(changes.additional, msgspec.UnsetType):
            self.additional = changes.additional

    async def _save(self, changes: Changes) -> None:
        try:
            await self.journal.save(changes)
        except (SessionMoved, SessionNotFound) as e:
            await self.evict(e.message)
            raise
