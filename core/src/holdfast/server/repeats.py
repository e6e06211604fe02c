"""Prompts that a client may send again: one whose connection was cut does not know whether its prompt has arrived.

It names its prompt in `_meta`; a prompt of the same name, in the same session and by the same principal, is the same
prompt, and gets the answer of the turn that the first one began. The same holds for words that steer a turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUEST = "holdfast/request"
"""In `_meta` of a prompt: a name that its client gives to no other one."""

KEPT = 1_000
"""So many prompts are remembered; the oldest are forgotten."""

MAX_NAME = 100

Key: TypeAlias = tuple[str, str, str]
T = TypeVar("T")


class Repeats(Generic[T]):
    """The prompts of late that have names, and what became of them."""

    def __init__(self) -> None:
        self._begun: dict[Key, T] = {}

    def key(self, principal: str, session_id: str, meta: Mapping[str, Any]) -> Key | None:
        """Return what a prompt is known by; None where it has no name."""
        name = meta.get(REQUEST)
        return (principal, session_id, name) if isinstance(name, str) and 0 < len(name) <= MAX_NAME else None

    def get(self, key: Key) -> T | None:
        """Return what a prompt began."""
        return self._begun.get(key)

    def put(self, key: Key, begun: T) -> None:
        """Remember what a prompt began."""
        self._begun[key] = begun
        while len(self._begun) > KEPT:
            del self._begun[next(iter(self._begun))]
