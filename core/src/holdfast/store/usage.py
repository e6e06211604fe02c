"""What sessions have taken, added up by agent and model from their stored states. Every store goes by this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.store.reports import AgentUsage

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Cost(msgspec.Struct):
    amount: float
    currency: str


class _Told(msgspec.Struct):
    used: int = 0
    cost: _Cost | None = None


class _Latest(msgspec.Struct):
    usage_update: _Told | None = None


class _State(msgspec.Struct):
    """As much of a `SessionState` as is counted."""

    model: str = ""
    tokens: dict[str, int] = {}
    latest: _Latest | None = None


_read: Any = msgspec.json.Decoder(_State, strict=False).decode


class UsageCount:
    """Adds up what sessions have taken."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], AgentUsage] = {}

    def add(self, rows: Iterable[tuple[str, int, bytes | str]]) -> None:
        """Count sessions, each given by its agent, its number of messages and its state."""
        for agent, messages, state in rows:
            told = _told(state)
            row = self._rows.get((agent, told.model)) or AgentUsage(agent, told.model, 0, 0, {}, 0, {})
            usage = told.latest.usage_update if told.latest is not None else None
            cost = usage.cost if usage is not None else None
            self._rows[agent, told.model] = AgentUsage(
                agent,
                told.model,
                row.sessions + 1,
                row.messages + messages,
                _sum(row.tokens, told.tokens),
                row.context_tokens + (usage.used if usage is not None else 0),
                row.cost if cost is None else _sum(row.cost, {cost.currency: cost.amount}),
            )

    def total(self) -> tuple[AgentUsage, ...]:
        """Return what was counted, those with most sessions first."""
        return tuple(sorted(self._rows.values(), key=lambda row: (-row.sessions, row.agent, row.model)))


def _told(state: bytes | str) -> _State:
    try:
        return _read(state)
    except (msgspec.DecodeError, UnicodeDecodeError):  # an agent's own idea of usage, or damage: nothing is counted
        return _State()


def _sum(counts: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {**counts, **{name: counts.get(name, 0) + count for name, count in more.items()}} if more else counts
