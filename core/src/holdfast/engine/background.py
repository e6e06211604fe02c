"""Work that goes on in a session beside its turns: a command that keeps running, a tool call that watches something.

It belongs to the session, not to the turn that began it: cancelling a turn leaves it alone, and it ends by itself, when
a client cancels it, or with the session (C13). What is going on is part of every state that clients are told.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.model import FINAL_STATUSES, History, event_from

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from holdfast.engine.session import LiveSession
    from holdfast.model import Event, SessionState, Update

log: logging.Logger = logging.getLogger(__name__)

_ENTITIES = {"terminal": ("terminal_update", "terminalId"), "tool_call": ("tool_call_update", "toolCallId")}
"""By the type of an item, the entry it refers to and the member that has its id."""


class Background:
    """What goes on beside the turns of one session, by the id of its terminal or tool call."""

    __slots__ = ("_session", "_stops")

    def __init__(self, session: LiveSession) -> None:
        self._session = session
        self._stops: dict[str, Callable[[], Awaitable[None]]] = {}

    def __len__(self) -> int:
        return len(self._stops)

    @property
    def items(self) -> list[Update]:
        """What goes on, as clients are told: references to terminals and tool calls they know."""
        return list(self._session.state.background)

    def begin(self, item: Update, stop: Callable[[], Awaitable[None]]) -> None:
        """List work that was announced and goes on; `stop` makes it end, and returns when it has called `end`."""
        self._stops[item[_ENTITIES[item["type"]][1]]] = stop
        self._session.state.background = (*self._session.state.background, item)
        self._session.background_changed()

    def end(self, id_: str) -> None:
        """List work no longer: its end was told."""
        if self._stops.pop(id_, None) is not None:
            listed = self._session.state.background
            self._session.state.background = tuple(item for item in listed if id_ not in item.values())
            self._session.background_changed()

    def cancel(self, id_: str) -> bool:
        """Begin to stop one piece of work for a client; return whether there is such."""
        if id_ not in self._stops:
            return False
        self._session.start(self._stop(id_))
        return True

    async def stop_all(self) -> None:
        """Stop everything, and wait until it has ended."""
        for id_ in list(self._stops):
            await self._stop(id_)

    async def _stop(self, id_: str) -> None:
        try:
            if (stop := self._stops.get(id_)) is not None:
                await stop()
        except Exception:
            log.exception("Work in the background failed when it was stopped")
            self.end(id_)


def background_keys(items: Iterable[Update]) -> frozenset[tuple[str, str]]:
    """Return the entries that items refer to, by entity and key."""
    return frozenset(_keys(items))


def background_ends(state: SessionState, said: History) -> list[Event]:
    """Return how work ends whose process is gone, unless `said` has told its end."""
    events: list[Event] = []
    for entity, key in _keys(state.background):
        entry = said.get(entity, key)
        members: Update = {} if entry is None else entry.members
        end: Update = {"capabilities": None}
        if entity == "terminal_update" and not isinstance(members.get("exitStatus"), dict):
            events.append(event_from({"sessionUpdate": entity, "terminalId": key, "exitStatus": {}, **end}))
        elif entity == "tool_call_update" and members.get("status") not in FINAL_STATUSES:
            events.append(event_from({"sessionUpdate": entity, "toolCallId": key, "status": "failed", **end}))
    return events


def _keys(items: Iterable[Update]) -> Iterator[tuple[str, str]]:
    """Yield the entry of each item; one that another version has stored may be of an unknown type."""
    for item in items:
        entity, name = _ENTITIES.get(str(item.get("type")), ("", ""))
        if isinstance(key := item.get(name), str):
            yield entity, key
