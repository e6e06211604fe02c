"""The kinds and the states of tool calls."""

from __future__ import annotations

FINAL_STATUSES = frozenset({"completed", "failed", "cancelled"})
"""The states of a tool call that is over."""
