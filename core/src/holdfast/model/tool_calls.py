"""The kinds and states that a tool call can have, written down once for every package that has to know them."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
"""What a tool does. Both protocol versions have the same kinds."""

ToolStatus: TypeAlias = Literal["pending", "in_progress", "paused", "completed", "failed", "cancelled"]
"""How far a tool call is. Version 1 has neither `paused` nor `cancelled`."""

TOOL_KINDS: frozenset[str] = frozenset(get_args(ToolKind))
TOOL_STATUSES: frozenset[str] = frozenset(get_args(ToolStatus))

FINAL_STATUSES = frozenset({"completed", "failed", "cancelled"})
"""The states of a tool call that has ended."""

V1_FINAL_STATUSES = frozenset({"completed", "failed"})
"""The final states that version 1 has too."""
