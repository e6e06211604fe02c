"""The fold: events in, entries out, each where it first appeared.

One fold serves everyone: the engine for the running turn, recovery for a turn a crash broke, a client for what it
receives. A history may begin anywhere. What it appends to an entry whose beginning it has not seen, it also gives back
as something to append, never as the whole, unless it is told that every entry begins here (`complete`).

What every history of the same events agrees on: neighbouring blocks of plain text are one block, and a cleared member
is as good as one that never was.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from itertools import groupby
from typing import TYPE_CHECKING, Any

from holdfast.model.kinds import CHUNK_OF, RULES, Fold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model.events import Event, Update
    from holdfast.model.kinds import Rule


class Entry:
    """One thing in the conversation: a message, a tool call, a plan."""

    __slots__ = ("_texts", "entity", "extras", "items", "key", "members", "meta_cleared", "whole")

    def __init__(self, entity: str, key: str, *, whole: bool) -> None:
        self.entity = entity
        self.key = key
        self.members: Update = {}
        """All it has but its key and its list of items."""
        self.items: list[Any] | None = None
        """Its list of items, as the content of a message; None where nothing was said about it."""
        self.extras: dict[int, Update] = {}
        """What came along with single items, as the `_meta` of a chunk, by the item's position."""
        self.whole = whole
        """Whether the list is all there is, or only what is to be appended to what came before."""
        self.meta_cleared = False
        """Whether metadata that came before are to be cleared before those in `members` are put in."""
        self._texts: list[str] = []  # plain text that is still to be joined to the list

    def append_text(self, text: str) -> None:
        """Append plain text. A message streamed in 2,000 chunks becomes one block, in linear time."""
        self._texts.append(text)

    def append(self, item: Any, extra: Update) -> None:
        """Append an item to the list, and what came along with it."""
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
        """Put a whole list in the place of the old one; null clears it."""
        self._texts.clear()
        self.extras.clear()
        self.items = []
        self.whole = True
        for item in value or ():
            self.append(item, {})

    def content(self) -> list[Any]:
        """Get the list of items."""
        self._settle()
        return [] if self.items is None else self.items

    def blocks(self) -> Iterator[Any]:
        """Give the items as one reads them: text whose pieces came each with something of its own is one text."""
        for is_text, group in groupby(self.content(), key=_is_text):
            if is_text:
                yield {"type": "text", "text": "".join(it["text"] for it in group)}
            else:
                yield from group

    def text(self) -> str:
        """Get all that is plain text in it, for search and for reading."""
        found = (it["content"] if it.get("type") == "content" else it for it in self.blocks())
        return "\n".join(it["text"] for it in found if it.get("type") == "text")

    def updates(self) -> Iterator[Update]:
        """Give the updates that make this entry again: a single one, but for rare cases."""
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
        if self.whole:
            yield {**head, **self.members, rule.items: []}
        elif self.members:
            yield {**head, **self.members}
        chunk = CHUNK_OF[self.entity]
        for at, item in enumerate(self.items):
            yield {
                "sessionUpdate": chunk,
                rule.key: self.key,
                RULES[chunk].item: item,
                **self.extras.get(at, {}),
            }

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
        self._about: Update = {}  # what the object has besides its data

    def append(self, item: Any, extra: Update) -> None:
        """Append a piece of output. What came along with it is let go: pieces do not stay apart."""
        del extra
        if self.items is None:
            self.items = []
        self.items.append(item)

    def replace(self, value: Any) -> None:
        """Put a whole output in the place of the old one."""
        self.whole = True
        self._about = {} if value is None else {k: v for k, v in value.items() if k != "data"}
        self.items = [] if value is None else [value["data"]]

    def text(self) -> str:
        """Get nothing: what a terminal printed is not something that was said."""
        return ""

    def output(self) -> bytes:
        """Get what it printed."""
        return b"".join(b64decode(piece) for piece in self.items or ())

    def _list(self) -> object:
        return {"data": "".join(self.items or ()), **self._about}

    def _settle(self) -> None:
        if self.items is not None and len(self.items) > 1:
            self.items = [b64encode(self.output()).decode()]


class History:
    """Entries in the order of their first appearance, and the latest of each thing that only has a latest."""

    __slots__ = ("_complete", "_entries", "_kept", "state")

    def __init__(self, *, complete: bool = True) -> None:
        self._complete = complete
        self._entries: dict[tuple[str, str], Entry] = {}
        self._kept = 0
        self.state: dict[str, Update] = {}
        """By kind, the latest update about the session itself."""

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, entity: str, key: str) -> Entry | None:
        """Find an entry."""
        return self._entries.get((entity, key))

    def apply(self, event: Event) -> None:
        """Fold one event in."""
        rule = event.rule
        if event.plain is not None:
            self._entry(rule.entity, event.key).append_text(event.plain)
            return
        match rule.fold:
            case Fold.TRANSIENT:
                pass
            case Fold.STATE:
                self.state[event.kind] = latest(self.state.get(event.kind), event.update())
            case Fold.APPEND:
                update = event.update()
                item = update.pop(rule.item)
                del update["sessionUpdate"], update[rule.key]
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
        """Give the updates that make this history again."""
        for entry in self:
            yield from entry.updates()

    def _entry(self, entity: str, key: str) -> Entry:
        entry = self._entries.get((entity, key))
        if entry is None:
            kind = Terminal if entity == "terminal_update" else Entry
            entry = self._entries[entity, key] = kind(entity, key, whole=self._complete)
        return entry

    def _patch(self, event: Event, rule: Rule) -> None:
        update = event.update()
        entry = self._entry(rule.entity, event.key)
        del update["sessionUpdate"], update[rule.key]
        if rule.items and rule.items in update:
            entry.replace(update.pop(rule.items))
        if "_meta" in update:
            self._patch_meta(entry, update.pop("_meta"))
        for name, value in update.items():
            if value is None and self._complete:
                entry.members.pop(name, None)
            else:
                entry.members[name] = value

    def _patch_meta(self, entry: Entry, patch: Update | None) -> None:
        """Patch metadata: unlike any other member, key by key."""
        if patch is None:
            entry.members.pop("_meta", None)
            entry.meta_cleared = not self._complete
            return
        merged = {**entry.members.get("_meta", {}), **patch}
        keep_nulls = not self._complete and not entry.meta_cleared
        entry.members["_meta"] = merged if keep_nulls else {k: v for k, v in merged.items() if v is not None}

    def _keep(self, event: Event) -> None:
        self._kept += 1
        self._entry("", str(self._kept)).members = event.update()


def latest(before: Update | None, update: Update) -> Update:
    """Say what is known of the session itself after an update about it, where that is more than the update says."""
    if before is None:
        return update
    match update["sessionUpdate"]:
        case "session_info_update":
            merged = {**before, **update}
            if before.get("_meta") and update.get("_meta"):
                merged["_meta"] = {**before["_meta"], **update["_meta"]}
            return merged
        case "usage_update" if "cost" in before:
            return {"cost": before["cost"], **update}
        case _:
            return update


def _is_text(item: Any) -> bool:
    return item.get("type") == "text" and isinstance(item.get("text"), str)


def _is_plain_text(item: Any) -> bool:
    return item.get("type") == "text" and len(item) == 2
