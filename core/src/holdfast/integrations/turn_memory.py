"""What a model remembers: the messages of each turn, kept as a private entry of that turn. Knows no library.

They are read once, when the session comes back to life; after that a turn looks only at what was added since the last
one, so that its cost does not grow with the conversation.

The turns a user sees are the turns the model knows. For a turn that is there as it was kept, what was kept counts. Any
other is put together again from what the user sees of it: one whose process died, one that was cancelled, one that a
fork has cut short, one that something else than a model has answered. So nothing is forgotten silently (P11), nothing
that a fork left out is known, and no tool call is without a result, which providers refuse.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, cast

import msgspec

from holdfast.model import Entry
from holdfast.model.kinds import FORKED_EARLIER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holdfast.agent import Turn

log: logging.Logger = logging.getLogger(__name__)

NO_RESULT = "It was interrupted before it gave a result. What it had done until then stays done."

Message = TypeVar("Message")
"""A message as a library has it."""
Message_co = TypeVar("Message_co", covariant=True)


class PastTurn(NamedTuple):
    """A turn as its user sees it."""

    prompt: Entry
    entries: list[Entry]

    def steps(self) -> Iterator[str | PastCall]:
        """Yield what was said and what was called. Thoughts are left out: providers want them whole or not at all."""
        for entry in self.entries:
            if entry.entity == "agent_message":
                yield entry.text()
            elif entry.entity == "tool_call_update":
                yield _call(entry)


class PastCall(NamedTuple):
    """A tool call as its user sees it, with a result in any case."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: Any
    is_done: bool
    """Whether the tool did what it was to do."""
    is_told: bool
    """Whether the result is what the tool gave; otherwise it was broken off."""


class Messages(Protocol[Message_co]):
    """How a library reads its messages."""

    def read(self, kept: list[Any], turn: PastTurn) -> Sequence[Message_co]:
        """Return the messages of a turn as they were kept; raise `ValueError` where they cannot be read."""
        ...

    def put_together(self, turn: PastTurn) -> Sequence[Message_co]:
        """Return messages that say what the user sees of a turn."""
        ...


class _Known(Generic[Message]):
    """What the model knows of a live session: the messages up to a position of its history."""

    def __init__(self) -> None:
        self.position = 0
        self.messages: list[Message] = []
        self.beside: dict[str, Any] = {}
        self.kept: dict[str, Any] = {}
        """By the id of its turn, what was kept and is not among the messages yet."""


class TurnMemory(Generic[Message]):
    """What the model knows when a turn begins, and what it will know after it."""

    def __init__(self, turn: Turn, key: str, messages: Messages[Message]) -> None:
        self._turn = turn
        self._key = key
        self._messages = messages
        self._known: _Known[Message] | None = turn.session.live.get(key)
        self.turn_id: str = next(entry.key for entry in turn.said if entry.entity == "user_message")
        """The id of the user's message, under which this turn is kept."""

    async def recall(self) -> list[Message]:
        """Return the messages of all turns before this one."""
        known = self._known or await self._wake()
        session = self._turn.session
        if (position := session.position) > known.position:
            for past in _turns(await session.history(since=known.position)):
                self._add(known, past, known.kept.pop(past.prompt.key, None))
            known.position = position
        return list(known.messages)

    @property
    def beside(self) -> dict[str, Any]:
        """What the last turn kept beside its messages."""
        return dict(self._known.beside) if self._known is not None else {}

    @property
    def last_shown(self) -> Entry:
        """The last entry that this turn has shown."""
        return [entry for entry in self._turn.said if entry.entity][-1]

    async def keep(
        self, messages: Sequence[Any], *, beside: dict[str, Any] | None = None, all_messages: bool = False
    ) -> None:
        """Keep the messages of this turn as JSON values; they are stored with what the user sees of it.

        Args:
            messages: What was said in this turn.
            beside: What else is known after it: a small dict of JSON values, which replaces that of the last turn.
            all_messages: Whether these are all that the model knows from now on, as after a summary.

        """
        if self._turn.is_over:
            return
        kept: dict[str, Any] = {"last": self.last_shown.key, "messages": list(messages)}
        if beside:
            kept["beside"] = beside
        if all_messages:
            kept["all"] = True
        try:
            # A framework may have dates and tuples in its messages: they are what they will be in the next process.
            kept = msgspec.json.decode(msgspec.json.encode(kept))
        except (TypeError, ValueError, RecursionError):
            log.warning("What the model said cannot be kept as it is; what is shown of it is", exc_info=True)
            return
        await self._turn.keep({self._key: {self.turn_id: kept}})
        if self._known is not None:
            self._known.kept[self.turn_id] = kept

    async def _wake(self) -> _Known[Message]:
        """Read what was kept, when the session has come back to life."""
        known = self._known = self._turn.session.live[self._key] = _Known[Message]()
        for entry in await self._turn.session.kept():
            if isinstance(entry, dict):
                known.kept |= cast("dict[str, Any]", entry).get(self._key, {})
        return known

    def _add(self, known: _Known[Message], past: PastTurn, kept: dict[str, Any] | None) -> None:
        keys = {past.prompt.key, *(entry.key for entry in past.entries)}
        if kept is None or kept.get("last") not in keys:
            known.messages += self._messages.put_together(past)
            return
        try:
            messages = self._messages.read(kept.get("messages") or [], past)
        except ValueError:
            log.warning("What the model said was kept in a way that is not read any more; what is shown counts")
            known.messages += self._messages.put_together(past)
            return
        if kept.get("all"):
            known.messages.clear()
        known.messages += messages
        known.beside = kept.get("beside") or {}


def _turns(history: Iterable[Entry]) -> list[PastTurn]:
    turns: list[PastTurn] = []
    for entry in history:
        if entry.entity == "user_message":
            turns.append(PastTurn(entry, []))
        elif entry.members.get("sessionUpdate") == FORKED_EARLIER:
            turns.append(PastTurn(_as_told(entry), []))
        elif turns:
            turns[-1].entries.append(entry)
    return turns


def _as_told(note: Entry) -> Entry:
    """Return a note of ours as the message that tells the model of it: models take no others between turns."""
    text = f"[{note.members.get('text')} Look at them before you rely on what was said of them.]"
    told = Entry("user_message", str(note.members.get("messageId")), whole=True)
    told.append_text(text)
    return told


def _call(entry: Entry) -> PastCall:
    about = entry.members
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", str(about.get("name") or about.get("title") or "tool"))[:64]
    arguments: Any = about.get("rawInput")
    output: Any = about.get("rawOutput")
    if output is None:
        output = entry.text()
    done = about.get("status") == "completed"
    return PastCall(
        entry.key,
        name,
        cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {},
        output or ("Done." if done else NO_RESULT),
        done,
        bool(output) or done,
    )
