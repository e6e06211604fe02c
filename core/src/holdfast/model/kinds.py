"""How each kind of event folds into a history: the rules, then the table.

- APPEND adds an item to an entry's list; the entry is created where there is none.
- PATCH changes members of an entry: omitted means unchanged, null means cleared, a value replaces.
- REPLACE puts a whole new entry in the old one's place; REMOVE takes it away.
- STATE is about the session, not its conversation: only the latest counts.
- TRANSIENT is shown to whoever watches and never kept.
- Any kind that is not in the table is kept as it is, an entry of its own each time.
"""

from __future__ import annotations

from enum import Enum

import msgspec


class Fold(Enum):
    """What an event does to the history."""

    APPEND = "append"
    PATCH = "patch"
    REPLACE = "replace"
    REMOVE = "remove"
    STATE = "state"
    TRANSIENT = "transient"
    OPAQUE = "opaque"


class Rule(msgspec.Struct, frozen=True):
    """How one kind of event folds.

    `entity` names the kind under which the whole entry is written; `key` is the member that identifies it; `item` is
    the member of the event that APPEND adds to the list `items` of the entry.
    """

    fold: Fold
    entity: str = ""
    key: str = ""
    item: str = ""
    items: str = ""


OPAQUE = Rule(Fold.OPAQUE)

RULES: dict[str, Rule] = {
    "user_message": Rule(Fold.PATCH, "user_message", "messageId", items="content"),
    "user_message_chunk": Rule(Fold.APPEND, "user_message", "messageId", "content", "content"),
    "agent_message": Rule(Fold.PATCH, "agent_message", "messageId", items="content"),
    "agent_message_chunk": Rule(Fold.APPEND, "agent_message", "messageId", "content", "content"),
    "agent_thought": Rule(Fold.PATCH, "agent_thought", "messageId", items="content"),
    "agent_thought_chunk": Rule(Fold.APPEND, "agent_thought", "messageId", "content", "content"),
    "session_message": Rule(Fold.PATCH, "session_message", "messageId", items="content"),
    "session_message_chunk": Rule(Fold.APPEND, "session_message", "messageId", "content", "content"),
    "tool_call_update": Rule(Fold.PATCH, "tool_call_update", "toolCallId", items="content"),
    "tool_call_content_chunk": Rule(Fold.APPEND, "tool_call_update", "toolCallId", "content", "content"),
    "terminal_update": Rule(Fold.PATCH, "terminal_update", "terminalId", items="output"),
    "terminal_output_chunk": Rule(Fold.APPEND, "terminal_update", "terminalId", "data", "output"),
    "compaction_update": Rule(Fold.PATCH, "compaction_update", "compactionId", items="summary"),
    "compaction_summary_chunk": Rule(Fold.APPEND, "compaction_update", "compactionId", "content", "summary"),
    "subagent_update": Rule(Fold.PATCH, "subagent_update", "sessionId"),
    "plan_update": Rule(Fold.REPLACE, "plan_update", "planId"),
    "plan_removed": Rule(Fold.REMOVE, "plan_update", "planId"),
    "available_commands_update": Rule(Fold.STATE),
    "config_option_update": Rule(Fold.STATE),
    "session_info_update": Rule(Fold.STATE),
    "usage_update": Rule(Fold.STATE),
    "state_update": Rule(Fold.TRANSIENT),
    "notice": Rule(Fold.TRANSIENT),
}

CHUNK_OF = {rule.entity: kind for kind, rule in RULES.items() if rule.fold is Fold.APPEND}
"""The kind of event that appends one item to an entity's list."""

MESSAGE_CHUNKS = frozenset(kind for kind, rule in RULES.items() if kind != rule.entity and rule.key == "messageId")
"""The kinds that append to a message or a thought."""

REMEMBERED = "_holdfast/permission"
"""The kind of a log line that holds a permission answer given for ever. It is not part of the conversation."""

PRIVATE = "_holdfast/private"
"""The kind of a log line that holds a private entry: no client is ever shown it."""

LOG_BEGUN = "_holdfast/begun"
"""The kind of the first line of a log that is kept after its seal: `epoch`, and what was shown as it began."""

LOG_PASSED = "_holdfast/passed"
"""The kind of a log line in the place of `count` events that were shown there and are not stored."""

LOG_ENDED = "_holdfast/ended"
"""The kind of the last line of a log that is kept after its seal: `epoch`, and what is shown once it is sealed."""

LOG_ONLY = frozenset({REMEMBERED, PRIVATE, LOG_BEGUN, LOG_PASSED, LOG_ENDED})
"""The kinds that stand only in logs: they are not part of the conversation, and no agent, file or client may send one.

One that came from outside would be read as ours when a log is recovered: a permission that the user never gave.
"""

RESERVED_PREFIX = "_holdfast/"
"""Kinds with this prefix are made by Holdfast alone. Agents, wrapped or not, may not send them."""

TURN_END = "_holdfast/turn_end"
"""The kind of the entry that says how a turn ended, where it did not end well: members `reason`, `error`."""

DAMAGED = "_holdfast/damaged"
"""The kind of an entry in the place of stored lines that cannot be read (P11): members `lines` (how many), `reason`."""

HAND_OVER = "_holdfast/hand_over"
"""The kind of the entry where the user gave the session to another agent (F2): members `from`, `to`."""

FORKED_EARLIER = "_holdfast/forked_earlier"
"""The kind of the entry where a fork begins whose source goes on (B15): members `messageId`, `text`."""

LOST_CONTEXT = "_holdfast/lost_context"
"""The kind of the entry where a wrapped agent had forgotten what was before (G6): members `messageId`, `text`."""
