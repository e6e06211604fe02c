"""Questions to a version 2 client, and its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.model import Answer, Elicitation, Filled, Permission

if TYPE_CHECKING:
    from msgspec import Raw

    from holdfast.model import Question, Update


class Asks:
    """What a client can be asked."""

    __slots__ = ("modes",)

    def __init__(self, capabilities: Update) -> None:
        offered: Update = capabilities.get("elicitation") or {}
        self.modes = frozenset(mode for mode in ("form", "url") if isinstance(offered.get(mode), dict))
        """Whether it can show a form, and whether an address (C9)."""

    def request(self, session_id: str, question: Question) -> tuple[str, Update] | None:
        """Say which request asks a question; None where this client cannot be asked."""
        if isinstance(question, Permission):
            return "session/request_permission", {
                "sessionId": session_id,
                "title": question.title,
                "subject": {"type": "tool_call", "toolCall": question.call},
                "options": [{"optionId": it.id, "name": it.name, "kind": it.kind} for it in question.options],
            }
        if question.mode in self.modes:
            return "elicitation/create", {"sessionId": session_id, **question.params}
        return None

    def answer(self, question: Question, result: Raw) -> Answer:
        """Read an answer; what is not clearly one is none (C8)."""
        try:
            if isinstance(question, Elicitation):
                return _read_filled(result)
            outcome = _read_permission(result).outcome
        except msgspec.DecodeError:
            return None
        return outcome.option_id if outcome.outcome == "selected" else None


class _Outcome(msgspec.Struct, rename="camel"):
    outcome: str
    option_id: str | None = None


class _PermissionAnswer(msgspec.Struct):
    outcome: _Outcome


_read_permission = msgspec.json.Decoder(_PermissionAnswer).decode
_read_filled = msgspec.json.Decoder(Filled).decode
