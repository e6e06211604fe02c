"""Events and stored updates as version 1 says them, statefully, for one client and one session.

- A message becomes one chunk per content block; a message that is replaced after it was shown cannot be said.
- The first of a tool call is a `tool_call`, what follows a `tool_call_update`. Version 1 cannot append to a call's
  content, so each addition says all of it again, once per batch of events. `cancelled` is `failed`, `paused` is
  `in_progress`; a diff needs the old and the new text.
- A terminal of the agent's becomes text in its tool call.
- A terminal of the client's own is shown as that while it runs.
- The plan becomes `plan`; version 1 has one, and knows no cancelled entries. One in Markdown becomes its only entry,
  unless the client asked for such plans.
- Options become `config_option_update`, switches only for clients that know them, and the mode `current_mode_update`.
- Notices and compactions are said to clients that asked for them. That a session was handed over, that it is a fork
  from an earlier point, that a part of it cannot be read, or that its agent had forgotten it, is said as a message; the
  last not to a client that gets a notice.
- What else version 1 has no words for is left out, but kinds that nobody knows pass where the agent is another's (G3).
"""

from __future__ import annotations

import logging
import time
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.format.lines import event_in
from holdfast.model.kinds import DAMAGED, FORKED_EARLIER, HAND_OVER, LOG_ONLY, LOST_CONTEXT, RULES, TURN_END
from holdfast.model.tool_calls import TOOL_KINDS, V1_FINAL_STATUSES
from holdfast.surface.v1.options import current_mode, lower_commands, lower_options
from holdfast.surface.v1.replay import cut, runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.model import Event, Update
    from holdfast.surface.v1.client import Client

log: logging.Logger = logging.getLogger(__name__)

MESSAGES = frozenset({"user_message", "agent_message", "agent_thought"})
CHUNKS = frozenset({"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"})
AS_THEY_ARE = frozenset({"session_info_update", "usage_update"})
UNSAID = frozenset({"state_update", TURN_END, *LOG_ONLY})
STATUS = {"cancelled": "failed", "paused": "in_progress"}
NOT_OF_A_CALL = frozenset({"sessionUpdate", "content", "capabilities"})
NOT_OF_A_DIFF = frozenset({"changes", "patch"})

TERMINAL_BYTES = 64 << 10
"""How much of a terminal's output is shown, the last of it."""

TERMINAL_SECONDS = 0.5
"""A terminal's text, which has to be said whole each time, is said again when it has doubled; or after so long…"""

LATEST_SECONDS = 5.0
"""…or after so long, where all of it would have been said more often than a client that is told only what is new."""

CHUNK_BYTES = 200
"""What stands around a piece of output where only what is new is told."""

ENDED_CALLS = 1_000
"""So many of the calls that have ended are known, in case they are spoken of again."""

SAID_MESSAGES = 2_000
"""Of the messages that were said half as many are known, at least; an older one that is spoken of again is new."""

CONTENT_BYTES = 4 << 20
"""How much of a call's content is said; of more than that only the beginning and the end."""

_TERMINAL = b'{"sessionUpdate":"terminal_update"'

_encode = msgspec.json.Encoder().encode


class _Call:
    """A tool call that may still change: its content, as version 1 has to say it."""

    __slots__ = ("final", "items", "new_bytes", "printed", "said_at", "said_bytes", "said_in_all", "terminals")

    def __init__(self) -> None:
        self.items: list[Update] = []
        self.terminals: set[str] = set()
        self.final = False
        self.printed = 0  # bytes its terminals have printed since its content was said
        self.said_bytes = 0  # and how many they had in it then
        self.said_at = 0.0
        self.said_in_all = 0  # all the bytes of them that were said, again and again
        self.new_bytes = 0  # and those that would have been said if only what is new were

    @property
    def waits(self) -> bool:
        """Whether only a terminal has printed more, and so little that it need not be said now."""
        if self.final or not 0 < self.printed < self.said_bytes:
            return False
        costly = self.said_in_all + self.said_bytes > self.new_bytes
        return time.monotonic() < self.said_at + (LATEST_SECONDS if costly else TERMINAL_SECONDS)


class Lowering:
    """What one client is told of one session."""

    def __init__(
        self, session_id: str, client: Client, mode: str | None = None, *, passes_unknown: bool = False
    ) -> None:
        id_ = _encode(session_id)
        self._before = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%s,"update":' % id_
        self._between = b"}}\n" + self._before
        self._client = client
        self._mode = mode  # the one the client knows
        self._passes_unknown = passes_unknown
        self._calls: dict[str, _Call] = {}
        self._ended_calls: dict[str, None] = {}  # the latest: one that is spoken of again is no new one
        self._terminals: dict[str, bytes] = {}
        self._exited: set[str] = set()
        self._embedded: dict[str, str] = {}  # terminals of the client's own that tool calls show
        self._dirty: dict[str, None] = {}
        self._messages: dict[str, None] = {}  # those that were said
        self._quiet: set[str] = set()
        self._unsaid: set[str] = set()
        self._unreadable = 0  # how often the client was told that a part cannot be read

    def quiet(self, message_id: str) -> None:
        """Do not repeat to the client what it has just said itself (C2)."""
        self._quiet.add(message_id)

    def embed_terminal(self, terminal_id: str, own_id: str) -> None:
        """Show the client's own terminal `own_id` where a tool call shows `terminal_id` (C11)."""
        self._embedded[terminal_id] = own_id

    def live(self, events: Sequence[Event]) -> bytes:
        """Return events as whole lines for the wire."""
        said: list[bytes] = []
        idle: Update | None = None
        for event in events:
            if event.kind in CHUNKS:
                said.append(event.body)
                self._messages[event.key] = None
            elif event.key in self._quiet:
                self._quiet.remove(event.key)
            elif event.kind != "state_update":
                said += map(_encode, self._lower(event.update()))
            elif b'"idle"' in event.body and (state := event.update()).get("state") == "idle":
                idle = state
        if self._dirty:
            said += map(_encode, self._changed_calls(waits=idle is None))
        if idle is not None:
            self._forget_turn(idle.get("background") or ())
        return self._lines(said) if said else b""

    def shared(self, events: Sequence[Event]) -> bool:
        """Return whether every client is told these events alike, as parts of messages are; they count as said then."""
        if self._dirty or not all(event.kind in CHUNKS for event in events):
            return False
        self._messages.update(dict.fromkeys([event.key for event in events]))
        return True

    def _forget_turn(self, background: Sequence[Update]) -> None:
        """Forget what a turn has shown: nothing of it changes any more, but for what goes on in the background."""
        if len(self._messages) > SAID_MESSAGES:
            self._messages = dict.fromkeys([*self._messages][-SAID_MESSAGES // 2 :])
        if not (self._calls or self._terminals or self._exited or self._embedded):
            return
        going_on = {item.get("terminalId") or item.get("toolCallId") for item in background}
        self._calls = {key: call for key, call in self._calls.items() if going_on & {key, *call.terminals}}
        kept = {terminal for call in self._calls.values() for terminal in call.terminals}
        self._terminals = {key: text for key, text in self._terminals.items() if key in kept}
        self._exited &= kept
        self._embedded.clear()

    @property
    def has_more(self) -> bool:
        """Whether something was held back, to be said by `rest` in a moment."""
        return bool(self._dirty)

    def rest(self) -> bytes:
        """Return what was held back and need not wait any longer, as whole lines."""
        return self._lines([*map(_encode, self._changed_calls(waits=True))])

    def _lines(self, said: list[bytes]) -> bytes:
        return b"%s%s}}\n" % (self._before, self._between.join(said)) if said else b""

    def begin_replay(self) -> None:
        """Do nothing: version 1 says messages in chunks only."""

    def past(self, block: bytes) -> tuple[bytes, ...]:
        """Return a block of stored lines as whole lines for the wire, in pieces."""
        said: list[bytes] = []
        self._mode = None  # a replay tells all of it again
        pieces = list(runs(block))
        for other, _ in pieces:  # ahead of the calls they belong to, which are then said once and whole
            if other.startswith(_TERMINAL):
                said += map(_encode, self._lower(event_in(other).update()))
        for other, plain in pieces:
            if other and not other.startswith(_TERMINAL):
                said += map(_encode, self._lower(event_in(other).update()))
            if plain:
                said.append(cut(plain).replace(b"\n", self._between))
        said += map(_encode, self._changed_calls(waits=False))
        self._messages.clear()
        self._let_go()
        return (self._before, self._between.join(said), b"}}\n") if said else ()

    def _let_go(self) -> None:
        """Forget the calls that have ended, and whose terminals have."""
        for key, call in list(self._calls.items()):
            if call.final and call.terminals <= self._exited:
                del self._calls[key]
                for terminal in call.terminals:
                    self._terminals.pop(terminal, None)
                    self._exited.discard(terminal)

    def _lower(self, update: Update) -> Iterator[Update]:
        """Yield an update in version 1's words; a note in place of one that makes no sense (P11)."""
        try:
            yield from self._said(update)
        except (AttributeError, KeyError, TypeError, ValueError) as e:
            log.warning("An update of the kind %s makes no sense and is skipped: %r", update["sessionUpdate"], e)
            yield self._unreadable_note(1)

    def _said(self, update: Update) -> Iterator[Update]:
        kind = update["sessionUpdate"]
        if kind in UNSAID:
            return
        if kind in MESSAGES:
            yield from self._message(kind, update)
        elif kind in CHUNKS or kind in AS_THEY_ARE:
            yield update
        elif kind in ("tool_call_update", "tool_call_content_chunk"):
            yield from self._call(update)
        elif kind in ("terminal_update", "terminal_output_chunk"):
            self._terminal(update)
        elif kind == "plan_update" and update["plan"].get("type") == "items":
            entries = [entry for entry in update["plan"].get("entries") or () if entry.get("status") != "cancelled"]
            yield {**_without(update, "plan"), "sessionUpdate": "plan", "entries": entries}
        elif kind == "plan_update" and update["plan"].get("type") == "markdown" and not self._client.wants(kind):
            entry = {"content": update["plan"].get("content"), "status": "in_progress", "priority": "medium"}
            yield {**_without(update, "plan"), "sessionUpdate": "plan", "entries": [entry]}
        elif kind == "plan_removed":
            yield {**_without(update, "planId"), "sessionUpdate": "plan", "entries": []}
        elif kind == "config_option_update":
            if options := lower_options(update, self._client):
                yield {**update, "configOptions": options}
            if (mode := current_mode(update)) not in (None, self._mode):
                self._mode = mode
                yield {"sessionUpdate": "current_mode_update", "currentModeId": mode}
        elif kind == "available_commands_update":
            yield {**update, "availableCommands": lower_commands(update)}
        elif kind == DAMAGED:
            yield self._unreadable_note(update.get("lines"))
        elif kind in (HAND_OVER, LOST_CONTEXT, FORKED_EARLIER):
            yield from self._boundary(update)
        elif self._client.wants(kind) or (self._passes_unknown and kind not in RULES):
            yield update
        elif kind not in self._unsaid:
            self._unsaid.add(kind)
            log.info("Protocol version 1 has no words for %s; it is left out", kind)

    def _message(self, kind: str, update: Update) -> Iterator[Update]:
        key = update["messageId"]
        if key in self._quiet:
            self._quiet.remove(key)
            return
        if key in self._messages:
            log.info("Protocol version 1 cannot replace a message; the client keeps what it was shown first")
            return
        for block in update.get("content") or ():
            self._messages[key] = None
            yield {"sessionUpdate": f"{kind}_chunk", "messageId": key, "content": block}

    def _boundary(self, update: Update) -> Iterator[Update]:
        """Say as a message what the agent no longer knows, or never knew (F2, G6), or that a fork begins (B15)."""
        kind = update["sessionUpdate"]
        if kind == LOST_CONTEXT and self._client.wants("notice"):
            return
        if kind != HAND_OVER:
            key, text = str(update.get("messageId", kind)), str(update.get("text", ""))
        else:
            before, after = update.get("from"), update.get("to")
            key, text = f"hand-over-{before}-{after}", f"{after} goes on here; before it was {before}."
        yield _message_of_ours(key, text)

    def _unreadable_note(self, lines: object) -> Update:
        self._unreadable += 1
        some = "A part" if not isinstance(lines, int) else f"{lines:,} entries" if lines > 1 else "An entry"
        return _message_of_ours(f"damaged-{self._unreadable}", f"{some} of this session cannot be read.")

    # Tool calls and their terminals

    def _call(self, update: Update) -> Iterator[Update]:
        key = update["toolCallId"]
        is_new = key not in self._calls and key not in self._ended_calls
        call = self._calls.setdefault(key, _Call())
        if update["sessionUpdate"] == "tool_call_content_chunk":
            self._add(key, call, update["content"])
            return
        if "content" in update:
            call.items = []
            self._dirty[key] = None
            for item in update["content"] or ():
                self._add(key, call, item)
        lowered = lower_members(update)
        if key in self._dirty:
            lowered["content"] = self._whole_content(key)
        if is_new and "title" in update:
            yield {"sessionUpdate": "tool_call", **lowered}
        elif is_new or len(lowered) > 1:
            yield {"sessionUpdate": "tool_call_update", **lowered}
        call.final = lowered.get("status") in V1_FINAL_STATUSES
        if call.final and not call.terminals:
            del self._calls[key]
            self._ended_calls[key] = None
            if len(self._ended_calls) > ENDED_CALLS:
                del self._ended_calls[next(iter(self._ended_calls))]

    def _add(self, key: str, call: _Call, item: Update) -> None:
        if item.get("type") == "terminal":
            call.terminals.add(item["terminalId"])
        call.items.append(item)
        self._dirty[key] = None

    def _terminal(self, update: Update) -> None:
        key = update["terminalId"]
        if isinstance(update.get("exitStatus"), dict):
            self._exited.add(key)
        output: Update = update.get("output") or {}
        data: str | None = update["data"] if "data" in update else output.get("data")
        if data:
            before = self._terminals.get(key, b"") if "data" in update else b""
            self._terminals[key] = (before + b64decode(data))[-TERMINAL_BYTES:]
        for call_key, call in self._calls.items():
            if key in call.terminals and data and key not in self._embedded:
                self._dirty[call_key] = None
                call.printed += len(data)
                call.new_bytes += len(data) + CHUNK_BYTES

    def _changed_calls(self, *, waits: bool) -> Iterator[Update]:
        """Yield the content of the calls whose content has changed, but for those that may wait a moment."""
        for key in list(self._dirty):
            if not (waits and self._calls[key].waits):
                yield {"sessionUpdate": "tool_call_update", "toolCallId": key, "content": self._whole_content(key)}

    def _whole_content(self, key: str) -> list[Update]:
        del self._dirty[key]
        call = self._calls[key]
        call.printed, call.said_at = 0, time.monotonic()
        call.said_bytes = sum(len(self._terminals.get(terminal, b"")) for terminal in call.terminals)
        call.said_in_all += call.said_bytes
        return lower_content(call.items, self._terminals, self._embedded)


def _message_of_ours(key: str, text: str) -> Update:
    return {"sessionUpdate": "agent_message_chunk", "messageId": key, "content": {"type": "text", "text": text}}


def lower_content(
    items: Sequence[Update],
    terminals: Mapping[str, bytes] | None = None,
    embedded: Mapping[str, str] | None = None,
) -> list[Update]:
    """Return the content of a tool call; of one that is too long, the beginning and the end (A4).

    `terminals` has what terminals of the agent printed, `embedded` the client's own ids of terminals that it shows.
    """
    content = [lowered for item in items for lowered in _lower_item(item, terminals or {}, embedded or {})]
    sizes = [len(_encode(item)) for item in content]
    if sum(sizes) <= CONTENT_BYTES:
        return content
    first: list[Update] = []
    last: list[Update] = []
    room = CONTENT_BYTES
    for at in range(len(content)):
        for side, index in ((first, at), (last, -1 - at)):
            if len(first) + len(last) < len(content) and sizes[index] <= room:
                side.append(content[index])
                room -= sizes[index]
    left_out = len(content) - len(first) - len(last)
    note = f"[{left_out} parts are too long to be shown here, and are left out]"
    return [*first, {"type": "content", "content": {"type": "text", "text": note}}, *reversed(last)]


def _lower_item(item: Any, terminals: Mapping[str, bytes], embedded: Mapping[str, str]) -> Iterator[Update]:
    if item.get("type") == "content":
        yield item
    elif item.get("type") == "diff" and "newText" in item:
        yield {name: value for name, value in item.items() if name not in NOT_OF_A_DIFF}
    elif item.get("type") == "terminal" and item["terminalId"] in embedded:
        yield {"type": "terminal", "terminalId": embedded[item["terminalId"]]}
    elif item.get("type") == "terminal" and (output := terminals.get(item["terminalId"])):
        text = output.decode(errors="replace")
        yield {"type": "content", "content": {"type": "text", "text": f"```\n{text.rstrip()}\n```"}}


def lower_members(update: Update) -> Update:
    """Return the members of a tool call, but for its content."""
    call = {name: value for name, value in update.items() if name not in NOT_OF_A_CALL}
    if "status" in call:
        call["status"] = STATUS.get(call["status"], call["status"])
    if "kind" in call and call["kind"] not in TOOL_KINDS:
        call["kind"] = "other"
    return call


def _without(update: Update, name: str) -> Update:
    return {other: value for other, value in update.items() if other != name}
