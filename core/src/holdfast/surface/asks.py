"""Questions and answers, as far as every version writes them alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from holdfast.errors import InvalidParams
from holdfast.model import Answer, Elicitation, ElicitationAnswer, Permission, PermissionOption

if TYPE_CHECKING:
    from msgspec import Raw

    from holdfast.model import Question, Update


def elicitation_modes(capabilities: Update) -> frozenset[str]:
    """Return how a client can show an elicitation: as a form, as an address (C9)."""
    offered: Update = capabilities.get("elicitation") or {}
    return frozenset(mode for mode in ("form", "url") if isinstance(offered.get(mode), dict))


def option_list(question: Permission) -> list[Update]:
    """Return the answers a permission question offers."""
    return [
        {**option.more, "optionId": option.id, "name": option.name, "kind": option.kind} for option in question.options
    ]


class _Outcome(msgspec.Struct, rename="camel"):
    outcome: str
    option_id: str | None = None


class _PermissionAnswer(msgspec.Struct):
    outcome: _Outcome


_read_permission_answer = msgspec.json.Decoder(_PermissionAnswer).decode
_read_elicitation_answer = msgspec.json.Decoder(ElicitationAnswer).decode


def read_answer(question: Question, result: Raw) -> Answer:
    """Parse an answer; what is not clearly one is none (C8)."""
    try:
        if isinstance(question, Elicitation):
            return _read_elicitation_answer(result)
        outcome = _read_permission_answer(result).outcome
    except msgspec.DecodeError:
        return None
    return outcome.option_id if outcome.outcome == "selected" else None


# What a client is asked


_OF_AN_OPTION = frozenset({"optionId", "name", "kind"})


def read_meta(params: Update) -> Update:
    """Return the `_meta` of a request; nothing where it has none."""
    meta: Any = params.get("_meta")
    return cast("Update", meta) if isinstance(meta, dict) else {}


def read_options(options: Any) -> tuple[PermissionOption, ...]:
    """Parse the answers a permission question offers; what cannot be chosen is left out."""
    found: list[PermissionOption] = []
    for option in cast("list[Any]", options or ()):
        match option:
            case {"optionId": str(id_), "name": str(name), "kind": str(kind)}:
                members = cast("Update", option)
                more = {key: value for key, value in members.items() if key not in _OF_AN_OPTION}
                found.append(PermissionOption(id_, name, cast("Any", kind), more))
            case _:
                pass
    return tuple(found)


def permission_answer(chosen: PermissionOption | None) -> Update:
    """Return the answer to a question for permission."""
    if chosen is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": chosen.id}}


def read_elicitation(params: Update) -> Elicitation:
    """Parse a question that a form or an address answers."""
    mode = params.get("mode")
    if mode not in ("form", "url"):
        raise InvalidParams("mode must be form or url")
    return Elicitation(mode, {name: value for name, value in params.items() if name != "sessionId"})


def elicitation_answer(filled: ElicitationAnswer) -> Update:
    """Return the answer to such a question."""
    answer: Update = {"action": filled.action}
    return answer if filled.content is None else {**answer, "content": filled.content}
