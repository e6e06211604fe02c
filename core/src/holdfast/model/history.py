"""The fold: events in, entries out, each where it first appeared.

One fold serves everyone: the engine for the running turn, recovery for a turn a crash broke, a client for what it
receives. A history may begin anywhere. What it appends to an entry whose beginning it has not seen, it also gives back
as something to append, never as the whole, unless it is told that every entry begins here (`complete`).

What every history of the same events agrees on: neighbouring blocks of plain text are one block, and a cleared member
is as good as one that never was.

What is folded was checked when it was made, but a stored history may be damaged or written by a version that checked
less. So no update makes the fold fail: what is not shaped as its kind wants is kept as it is, for people to see (P11).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from holdfast.model.events import is_object
from holdfast.model.kinds import CHUNK_OF, OPAQUE, RULES, Fold

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from holdfast.model.events import Event, Update
    from holdfast.model.kinds import Rule

ENDS = {"tool_call_update": "status", "terminal_update": "exitStatus"}
"""By entity, what says how it ended. What is appended is said before that: version 1 forgets what has ended."""


class Entry:
    """One part of the conversation: a message, a tool call, a plan.

    Attributes:
        entity: what it is: ``user_message``, ``agent_message``, ``agent_thought``, ``tool_call_update``,
            ``plan_update``…
        key: its id.

    """

    __slots__ = ("_texts", "entity", "extras", "items", "key", "members", "meta_cleared", "whole")

    def __init__(self, entity: str, key: str, *, whole: bool) -> None:
        self.entity: str = entity
        self.key: str = key
        self.members: Update = {}
        """Everything but its key and its list of items."""
        self.items: list[Any] | None = None
        """Its list of items, as the content of a message; None where no update has named it."""
        self.extras: dict[int, Update] = {}
        """Further members of single chunks, as their `_meta`, by the position of the item they brought."""
        self.whole: bool = whole
        """Whether the list is all there is; otherwise it is to be appended to what came before."""
        self.meta_cleared: bool = False
        """Whether earlier metadata are to be cleared before those in `members` are set."""
        self._texts: list[str] = []  # plain text that is still to be joined to the list

    def append_text(self, text: str) -> None:
        """Append plain text. A message streamed in 2,000 chunks becomes one block, in linear time.

        Args:
            text: the text.

        """
        self._texts.append(text)

    def append(self, item: Any, extra: Update) -> None:
        """Append an item to the list.

        Args:
            item: the item.
            extra: the further members of its chunk.

        """
        if not extra and _is_plain_text(item):
            self._texts.append(item["text"])
            return
        self._settle()
        if self.items is None:
            self.items = []
        if extra:
            self.extras[len(self.items)] = extra
        self.items.append(item)

    def replace(self, value: Any) -> None:
        """Replace the whole list.

        Args:
            value: the new list; None clears it.

        """
        self._texts.clear()
        self.extras.clear()
        self.items = []
        self.whole = True
        if value is None:
            return
        for item in cast("list[Any]", value) if isinstance(value, list | tuple) else [value]:
            self.append(item, {})

    def content(self) -> list[Any]:
        """Return the list of items.

        Returns:
            Content blocks, of a message; of a tool call what it shows; base64, of a terminal.

        """
        self._settle()
        return [] if self.items is None else self.items

    def blocks(self) -> Iterator[Any]:
        """Iterate over the items as people read them.

        Yields:
            The items; neighbouring texts are one text, whatever members their chunks had.

        """
        for is_text, group in groupby(self.content(), key=_is_text):
            if is_text:
                yield {"type": "text", "text": "".join(item["text"] for item in group)}
            else:
                yield from group

    def text(self) -> str:
        """Return all plain text in it, for search and for reading.

        Returns:
            The text.

        """
        content = self.content()
        if len(content) == 1 and _is_text(content[0]):
            return content[0]["text"]
        return "\n".join(block["text"] for block in map(_content_block, self.blocks()) if _is_text(block))

    def only_text(self) -> Update | None:
        """Return its one item, where it is nothing but that, and that is plain text.

        Returns:
            The item; None for any other entry.

        """
        self._settle()
        if self.items is None or len(self.items) != 1 or not self.whole or self.members or self.extras:
            return None
        return self.items[0] if _is_plain_text(self.items[0]) and not self.meta_cleared else None

    def updates(self) -> Iterator[Update]:
        """Iterate over the updates that make this entry again.

        Yields:
            The updates: one, but for rare cases.

        """
        self._settle()
        rule = RULES.get(self.entity)
        if rule is None or rule.fold is Fold.REPLACE:
            yield self.members
            return
        head = {"sessionUpdate": self.entity, rule.key: self.key}
        if self.meta_cleared:
            yield {**head, "_meta": None}
        if self.items is None:
            yield {**head, **self.members}
            return
        if self.whole and not self.extras:
            yield {**head, **self.members, rule.items: self._list()}
            return
        last: Update = {}
        if self.whole:
            yield {**head, **self.members, rule.items: []}
        else:
            last = {name: value for name, value in self.members.items() if name == ENDS.get(self.entity)}
            if len(last) < len(self.members):
                yield {**head, **{name: value for name, value in self.members.items() if name not in last}}
        chunk = CHUNK_OF[self.entity]
        for at, item in enumerate(self.items):
            yield {
                "sessionUpdate": chunk,
                rule.key: self.key,
                RULES[chunk].item: item,
                **self.extras.get(at, {}),
            }
        if last:
            yield {**head, **last}

    def _list(self) -> object:
        return self.items

    def _settle(self) -> None:
        if self._texts:
            text = "".join(self._texts)
            self._texts.clear()
            if self.items is None:
                self.items = []
            if self.items and len(self.items) - 1 not in self.extras and _is_plain_text(self.items[-1]):
                self.items[-1] = {"type": "text", "text": self.items[-1]["text"] + text}
            else:
                self.items.append({"type": "text", "text": text})


class Terminal(Entry):
    """A terminal: its items are pieces of base64, and the list of them is written as one object."""

    __slots__ = ("_about",)

    def __init__(self, entity: str, key: str, *, whole: bool) -> None:
        super().__init__(entity, key, whole=whole)
        self.items: list[Any] | None = None
        self._about: Update = {}  # what the object has besides its data

    def append(self, item: Any, extra: Update) -> None:
        """Append a piece of output. Further members of its chunk are dropped: pieces do not stay apart."""
        del extra
        if self.items is None:
            self.items = []
        self.items.append(item)

    def replace(self, value: Any) -> None:
        """Replace the whole output; None clears it."""
        self.whole = True
        output = value if is_object(value) else {"data": value}
        self._about = {name: member for name, member in output.items() if name != "data"}
        self.items = [] if output.get("data") is None else [output["data"]]

    def text(self) -> str:
        """Return an empty text: the output of a terminal is not something that was said."""
        return ""

    def output(self) -> bytes:
        """Return what it printed; a piece that cannot be decoded is shown as U+FFFD."""
        return b"".join(map(_decoded, self.items or ()))

    def last_output(self, limit: int) -> bytes:
        """Return about the last `limit` bytes of what it printed, without decoding the rest."""
        pieces: list[bytes] = []
        for piece in reversed(self.items or ()):
            if limit <= 0:
                break
            end = piece[-(limit * 4 // 3 + 4) // 4 * 4 :] if isinstance(piece, str) else piece
            pieces.append(_decoded(end))
            limit -= len(pieces[-1])
        return b"".join(reversed(pieces))

    def _list(self) -> object:
        return {"data": "".join(self.items or ()), **self._about}

    def _settle(self) -> None:
        if self.items and (len(self.items) > 1 or not isinstance(self.items[0], str)):
            self.items = [b64encode(self.output()).decode()]


class History:
    """Entries in the order of their first appearance, and the latest update of each kind about the session itself.

    Iterate over it for its entries; ``len`` counts them.

    Args:
        complete: whether every entry begins here; those in `earlier` are exceptions.
        earlier: entity and key of entries that have begun before.

    """

    __slots__ = ("_complete", "_earlier", "_entries", "_kept", "state")

    def __init__(self, *, complete: bool = True, earlier: Collection[tuple[str, str]] = ()) -> None:
        """Begin with nothing. Where every entry begins here (`complete`), those in `earlier` are exceptions."""
        self._complete = complete
        self._earlier = earlier
        self._entries: dict[tuple[str, str], Entry] = {}
        self._kept = 0
        self.state: dict[str, Update] = {}
        """By kind, the latest update about the session itself."""

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def keys(self) -> frozenset[tuple[str, str]]:
        """Return the names of all entries.

        Returns:
            The entity and the key of each.

        """
        return frozenset(self._entries)

    def get(self, entity: str, key: str) -> Entry | None:
        """Return an entry.

        Args:
            entity: what it is: ``agent_message``, ``user_message``, ``tool_call_update``, ``plan_update``…
            key: its id.

        Returns:
            The entry, None where there is no such.

        """
        return self._entries.get((entity, key))

    def apply(self, event: Event) -> None:
        """Fold one event in.

        Args:
            event: what happened.

        """
        rule = RULES.get(event.kind, OPAQUE)
        if event.plain_text is not None:
            entry = self._entries.get((rule.entity, event.key)) or self._entry(rule.entity, event.key)
            entry.append_text(event.plain_text)
            return
        match rule.fold:
            case Fold.TRANSIENT:
                pass
            case Fold.STATE:
                self.state[event.kind] = latest(self.state.get(event.kind), event.update())
            case Fold.APPEND:
                update = event.update()
                item = update.pop(rule.item, None)
                del update["sessionUpdate"]
                update.pop(rule.key, None)
                if "_meta" in update and update["_meta"] is None:
                    del update["_meta"]  # of a chunk, null is as good as none
                self._entry(rule.entity, event.key).append(item, update)
            case Fold.PATCH:
                self._patch(event, rule)
            case Fold.REPLACE:
                self._entry(rule.entity, event.key).members = event.update()
            case Fold.REMOVE:
                self._entries.pop((rule.entity, event.key), None)
                if not self._complete:  # there may be one that came before
                    self._keep(event)
            case Fold.OPAQUE:
                self._keep(event)

    def updates(self) -> Iterator[Update]:
        """Iterate over the updates that make this history again.

        Yields:
            The updates, in order.

        """
        for entry in self:
            yield from entry.updates()

    def _entry(self, entity: str, key: str) -> Entry:
        entry = self._entries.get((entity, key))
        if entry is None:
            kind = Terminal if entity == "terminal_update" else Entry
            entry = self._entries[entity, key] = kind(entity, key, whole=self._begins_here(entity, key))
        return entry

    def _begins_here(self, entity: str, key: str) -> bool:
        return self._complete and (entity, key) not in self._earlier

    def _patch(self, event: Event, rule: Rule) -> None:
        update = event.update()
        entry = self._entry(rule.entity, event.key)
        complete = self._begins_here(rule.entity, event.key)
        del update["sessionUpdate"]
        update.pop(rule.key, None)
        if rule.items and rule.items in update:
            entry.replace(update.pop(rule.items))
        if "_meta" in update:
            _patch_meta(entry, update.pop("_meta"), complete=complete)
        for name, value in update.items():
            if value is None and complete:
                entry.members.pop(name, None)
            else:
                entry.members[name] = value

    def _keep(self, event: Event) -> None:
        self._kept += 1
        self._entry("", str(self._kept)).members = event.update()


def _patch_meta(entry: Entry, patch: Update | None, *, complete: bool) -> None:
    """Patch metadata: unlike any other member, key by key."""
    if patch is None:
        entry.members.pop("_meta", None)
        entry.meta_cleared = not complete
        return
    merged = _merged(entry.members.get("_meta"), patch)
    keep_nulls = not complete and not entry.meta_cleared
    entry.members["_meta"] = merged if keep_nulls else {k: v for k, v in merged.items() if v is not None}


def latest(before: Update | None, update: Update) -> Update:
    """Return what is known of the session itself after an update: what is in it, and of `before` what it leaves out."""
    if before is None:
        return update
    match update["sessionUpdate"]:
        case "session_info_update":
            merged = {**before, **update}
            if before.get("_meta") and update.get("_meta"):
                merged["_meta"] = _merged(before["_meta"], update["_meta"])
            return merged
        case "usage_update" if "cost" in before:
            return {"cost": before["cost"], **update}
        case _:
            return update


def _merged(before: Any, patch: Any) -> Update:
    """Patch metadata key by key. What is no object has no keys, and counts as none."""
    return {name: value for members in (before, patch) if is_object(members) for name, value in members.items()}


def _content_block(item: Any) -> Any:
    """Return the content block in an item of a tool call; any other item is one itself."""
    return item.get("content") if is_object(item) and item.get("type") == "content" else item


def _is_text(item: Any) -> TypeGuard[Update]:
    return isinstance(item, dict) and item.get("type") == "text" and isinstance(item.get("text"), str)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _is_plain_text(item: Any) -> bool:
    return _is_text(item) and len(item) == 2


def _decoded(piece: Any) -> bytes:
    try:
        return b64decode(piece)
    except (TypeError, ValueError):
        return "\ufffd".encode()
