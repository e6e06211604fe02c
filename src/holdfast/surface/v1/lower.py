"""Events and stored updates as version 1 says them, statefully, for one client and one session.

- A message becomes one chunk per content block; a message that is replaced after it was shown cannot be said.
- The first of a tool call is a `tool_call`, what follows a `tool_call_update`. Version 1 cannot append to a call's
  content, so each addition says all of it again, once per batch of events. `cancelled` is `failed`, `paused` is
  `in_progress`; a diff needs the old and the new text.
- A terminal of the agent's becomes text in its tool call.
- The plan becomes `plan`; version 1 has one, and knows no cancelled entries.
- Options become `config_option_update`, switches only for clients that know them, and the mode `current_mode_update`.
- Notices and compactions are said to clients that asked for them. What else version 1 has no words for is left out.
"""

from __future__ import annotations

import logging
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.model.tool_calls import TOOL_KINDS, V1_FINAL_STATUSES
from holdfast.surface.v1.options import lower_commands, lower_options, modes
from holdfast.surface.v1.replay import cut, runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.model import Event, Update
    from holdfast.surface.v1.client import Client

log = logging.getLogger(__name__)

MESSAGES = frozenset({"user_message", "agent_message", "agent_thought"})
CHUNKS = frozenset({"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"})
AS_THEY_ARE = frozenset({"session_info_update", "usage_update"})
UNSAID = frozenset({"state_update", "_holdfast/turn_end"})
STATUS = {"cancelled": "failed", "paused": "in_progress"}
NOT_OF_A_CALL = frozenset({"sessionUpdate", "content", "capabilities"})
NOT_OF_A_DIFF = frozenset({"changes", "patch"})

TERMINAL_BYTES = 64 << 10
"""How much of a terminal's output is shown, the last of it."""

_TERMINAL = b'{"sessionUpdate":"terminal_update"'

_encode = msgspec.json.Encoder().encode


class _Call:
    """A tool call that may still change: its content, as version 1 has to say it."""

    __slots__ = ("final", "items", "terminals")

    def __init__(self) -> None:
        self.items: list[Update] = []
        self.terminals: set[str] = set()
        self.final = False


class Lowering:
    """What one client is told of one session."""

    def __init__(self, session_id: str, client: Client) -> None:
        id_ = _encode(session_id)
        self._before = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%s,"update":' % id_
        self._between = b"}}\n" + self._before
        self._client = client
        self._calls: dict[str, _Call] = {}
        self._terminals: dict[str, bytes] = {}
        self._dirty: dict[str, None] = {}
        self._messages: set[str] = set()
        self._quiet: set[str] = set()
        self._unsaid: set[str] = set()

    def quiet(self, message_id: str) -> None:
        """Do not repeat to the client what it has just said itself (C2)."""
        self._quiet.add(message_id)

    def live(self, events: Sequence[Event]) -> bytes:
        """Say what happened."""
        said: list[bytes] = []
        for event in events:
            if event.kind in CHUNKS:
                said.append(event.body)
                self._messages.add(event.key)
            else:
                said += map(_encode, self._lower(event.update()))
        said += map(_encode, self._changed_calls())
        if any(it.kind == "state_update" and it.update().get("state") == "idle" for it in events):
            self._calls.clear()  # a turn that has ended changes nothing any more
            self._terminals.clear()
        return b"%s%s}}\n" % (self._before, self._between.join(said)) if said else b""

    def past(self, block: bytes) -> tuple[bytes, ...]:
        """Say what is stored."""
        said: list[bytes] = []
        pieces = list(runs(block))
        for other, _ in pieces:  # ahead of the calls they belong to, which are then said once and whole
            if other.startswith(_TERMINAL):
                self._terminal(msgspec.json.decode(other))
        for other, plain in pieces:
            if other and not other.startswith(_TERMINAL):
                said += map(_encode, self._lower(msgspec.json.decode(other)))
            if plain:
                said.append(cut(plain).replace(b"\n", self._between))
        said += map(_encode, self._changed_calls())
        self._messages.clear()
        self._let_go()
        return (self._before, self._between.join(said), b"}}\n") if said else ()

    def _let_go(self) -> None:
        """Forget the calls that have ended and whose terminals were shown."""
        for key, call in list(self._calls.items()):
            if call.final and call.terminals <= self._terminals.keys():
                del self._calls[key]
                for terminal in call.terminals:
                    del self._terminals[terminal]

    def _lower(self, update: Update) -> Iterator[Update]:
        kind = update["sessionUpdate"]
        if kind in MESSAGES:
            yield from self._message(kind, update)
        elif kind in CHUNKS or kind in AS_THEY_ARE:
            yield update
        elif kind in ("tool_call_update", "tool_call_content_chunk"):
            yield from self._call(update)
        elif kind in ("terminal_update", "terminal_output_chunk"):
            self._terminal(update)
        elif kind == "plan_update" and update["plan"].get("type") == "items":
            entries = [it for it in update["plan"].get("entries") or () if it.get("status") != "cancelled"]
            yield {**_without(update, "plan"), "sessionUpdate": "plan", "entries": entries}
        elif kind == "plan_removed":
            yield {**_without(update, "planId"), "sessionUpdate": "plan", "entries": []}
        elif kind == "config_option_update":
            if options := lower_options(update, self._client):
                yield {**update, "configOptions": options}
            if (mode := modes(update)) is not None:
                yield {"sessionUpdate": "current_mode_update", "currentModeId": mode["currentModeId"]}
        elif kind == "available_commands_update":
            yield {**update, "availableCommands": lower_commands(update)}
        elif self._client.wants(kind):
            yield update
        elif kind not in UNSAID and kind not in self._unsaid:
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
            self._messages.add(key)
            yield {"sessionUpdate": f"{kind}_chunk", "messageId": key, "content": block}

    # Tool calls and their terminals

    def _call(self, update: Update) -> Iterator[Update]:
        key = update["toolCallId"]
        is_new = key not in self._calls
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

    def _add(self, key: str, call: _Call, item: Update) -> None:
        if item.get("type") == "terminal":
            call.terminals.add(item["terminalId"])
        call.items.append(item)
        self._dirty[key] = None

    def _terminal(self, update: Update) -> None:
        key = update["terminalId"]
        output: Update = update.get("output") or {}
        data: str | None = update["data"] if "data" in update else output.get("data")
        if data:
            before = self._terminals.get(key, b"") if "data" in update else b""
            self._terminals[key] = (before + b64decode(data))[-TERMINAL_BYTES:]
        for call_key, call in self._calls.items():
            if key in call.terminals and data:
                self._dirty[call_key] = None

    def _changed_calls(self) -> Iterator[Update]:
        """Say the content of the calls it has changed of."""
        for key in list(self._dirty):
            yield {"sessionUpdate": "tool_call_update", "toolCallId": key, "content": self._whole_content(key)}

    def _whole_content(self, key: str) -> list[Update]:
        del self._dirty[key]
        return [lowered for it in self._calls[key].items for lowered in self._content(it)]

    def _content(self, item: Any) -> Iterator[Update]:
        if item.get("type") == "content":
            yield item
        elif item.get("type") == "diff" and "newText" in item:
            yield {name: value for name, value in item.items() if name not in NOT_OF_A_DIFF}
        elif item.get("type") == "terminal" and (output := self._terminals.get(item["terminalId"])):
            text = output.decode(errors="replace")
            yield {"type": "content", "content": {"type": "text", "text": f"```\n{text.rstrip()}\n```"}}


def lower_members(update: Update) -> Update:
    """Say what is known of a tool call, but for its content."""
    call = {name: value for name, value in update.items() if name not in NOT_OF_A_CALL}
    if "status" in call:
        call["status"] = STATUS.get(call["status"], call["status"])
    if "kind" in call and call["kind"] not in TOOL_KINDS:
        call["kind"] = "other"
    return call


def _without(update: Update, name: str) -> Update:
    return {other: value for other, value in update.items() if other != name}
