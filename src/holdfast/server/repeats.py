"""Prompts that a client may send again: one whose connection was cut does not know whether its prompt has arrived.

It names its prompt in `_meta`; a prompt of the same name, in the same session and by the same principal, is the same
prompt, and gets the answer of the turn that the first one began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.engine import OpenTurn

REQUEST = "holdfast/request"
"""In `_meta` of a prompt: a name that its client gives to no other one."""

KEPT = 1_000
"""So many prompts are remembered; the oldest are forgotten."""

MAX_NAME = 100

Key: TypeAlias = tuple[str, str, str]


class Repeats:
    """The prompts of late that have names."""

    def __init__(self) -> None:
        self._turns: dict[Key, OpenTurn] = {}

    def key(self, principal: str, session_id: str, meta: Mapping[str, Any]) -> Key | None:
        """Return what a prompt is known by; None where it has no name."""
        name = meta.get(REQUEST)
        return (principal, session_id, name) if isinstance(name, str) and 0 < len(name) <= MAX_NAME else None

    def get(self, key: Key) -> OpenTurn | None:
        """Return the turn that a prompt began."""
        return self._turns.get(key)

    def put(self, key: Key, turn: OpenTurn) -> None:
        """Remember which turn a prompt began."""
        self._turns[key] = turn
        while len(self._turns) > KEPT:
            del self._turns[next(iter(self._turns))]
