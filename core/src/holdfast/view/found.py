"""How people are told what a search has found: how many places, and what each of them is."""

from __future__ import annotations

MOST_COUNTED = 1_000
"""Places are counted to this number: a search as one types must not wait for all places of a common word."""

_WHO = {
    "title": "title",
    "user_message": "you",
    "agent_message": "agent",
    "agent_thought": "thought",
    "session_message": "session",
    "tool_call_update": "tool",
    "terminal_update": "terminal",
}


def who_said(kind: str) -> str:
    """Return what people call the kind of entry that a place is in."""
    return _WHO.get(kind, kind)


def places_found(shown: int, total: int, most: int = MOST_COUNTED) -> str:
    """Return how many places there are, and whether only the first of them are shown. They were counted to `most`."""
    if total == 0:
        return "No place"
    if total > (counted := max(shown, most)):
        return f"The first {shown:,} of more than {counted:,} places"
    if shown < total:
        return f"The first {shown:,} of {total:,} places"
    return "1 place" if total == 1 else f"{total:,} places"


def next_limit(limit: int, total: int) -> int:
    """Return how many places to ask for to see all of them, or, of very many, more of them."""
    return total if total <= MOST_COUNTED else limit * 10
