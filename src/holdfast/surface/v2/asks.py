"""Questions to a version 2 client, and its answers: `Asks` puts them, `read_permission` and the rest are put to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from holdfast.errors import InvalidParams
from holdfast.model import Answer, Elicitation, ElicitationAnswer, Permission, PermissionOption

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
            params: Update = {
                "sessionId": session_id,
                "title": question.title,
                "options": [{"optionId": it.id, "name": it.name, "kind": it.kind} for it in question.options],
            }
            if question.call:
                params["subject"] = {"type": "tool_call", "toolCall": question.call}
            return "session/request_permission", params
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
_read_filled = msgspec.json.Decoder(ElicitationAnswer).decode


# What a client is asked


def read_permission(params: Update) -> Permission:
    """Take a question for permission; one without options that can be chosen has none."""
    title, subject = params.get("title"), params.get("subject")
    call: Any = cast("Update", subject).get("toolCall") if isinstance(subject, dict) else None
    if not isinstance(title, str):
        raise InvalidParams("title must be a string")
    options = [_option(it) for it in cast("list[Any]", params.get("options") or ())]
    about: Update = cast("Update", call) if isinstance(call, dict) else {}
    return Permission(title, about, tuple(it for it in options if it is not None))


def _option(it: Any) -> PermissionOption | None:
    match it:
        case {"optionId": str(id_), "name": str(name), "kind": str(kind)}:
            return PermissionOption(id_, name, cast("Any", kind))
        case _:
            return None


def permission_answer(chosen: PermissionOption | None) -> Update:
    """Answer a question for permission."""
    if chosen is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": chosen.id}}


def read_elicitation(params: Update) -> Elicitation:
    """Take a question that a form or an address answers."""
    mode = params.get("mode")
    if mode not in ("form", "url"):
        raise InvalidParams("mode must be form or url")
    return Elicitation(mode, {name: value for name, value in params.items() if name != "sessionId"})


def elicitation_answer(filled: ElicitationAnswer) -> Update:
    """Answer such a question."""
    answer: Update = {"action": filled.action}
    return answer if filled.content is None else {**answer, "content": filled.content}
