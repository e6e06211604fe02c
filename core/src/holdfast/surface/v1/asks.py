"""Questions to a version 1 client, as requests, and requests of a version 1 agent, as questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import InvalidParams
from holdfast.model import Permission, new_id
from holdfast.surface.asks import (
    elicitation_answer,
    elicitation_modes,
    option_list,
    permission_answer,
    read_answer,
    read_elicitation,
    read_meta,
    read_options,
)
from holdfast.surface.v1.lift import lift_content
from holdfast.surface.v1.lower import lower_content, lower_members

if TYPE_CHECKING:
    from msgspec import Raw

    from holdfast.model import Answer, Question, Update

__all__ = ["Questions", "elicitation_answer", "permission_answer", "read_elicitation", "read_permission"]

QUESTION = "holdfast/question"
"""Under this name in `_meta` stands what is asked: version 1 has no member for it."""


class Questions:
    """What a client can be asked."""

    __slots__ = ("modes",)

    def __init__(self, capabilities: Update) -> None:
        self.modes: frozenset[str] = elicitation_modes(capabilities)

    def request(self, session_id: str, question: Question) -> tuple[str, Update] | None:
        """Return the request that asks a question; None where this client cannot be asked."""
        if isinstance(question, Permission):
            params: Update = {"sessionId": session_id, "toolCall": _call(question), "options": option_list(question)}
            return "session/request_permission", {**params, "_meta": {**question.meta, QUESTION: question.title}}
        if question.mode in self.modes:
            return "elicitation/create", {"sessionId": session_id, **question.params}
        return None

    def answer(self, question: Question, result: Raw) -> Answer:
        """Parse an answer."""
        return read_answer(question, result)


def _call(question: Permission) -> Update:
    """Return the tool call a question is about, whole (P13).

    Clients merge it into the call they show, so its own title stays its title (C8); what is asked, where that is more,
    comes first in its content.
    """
    shown = question.shown_call()
    call = lower_members({"toolCallId": new_id("call"), "kind": "other", "status": "pending", **shown})
    first = [] if call.setdefault("title", question.title) == question.title else [question.title]
    if question.description is not None:
        first.append(question.description)
    content = [{"type": "content", "content": {"type": "text", "text": text}} for text in first]
    content += lower_content(shown.get("content") or ())
    return {**call, "content": content} if content else call


def read_permission(params: Update) -> Permission:
    """Parse a question for permission; one without options that can be chosen has none."""
    given: Any = params.get("toolCall")
    if not isinstance(given, dict):
        raise InvalidParams("toolCall must be an object")
    call = cast("Update", given)
    if "content" in call:
        call = {**call, "content": lift_content(call["content"])}
    meta = read_meta(params)
    asked = meta.get(QUESTION)
    title = asked if isinstance(asked, str) else str(call.get("title") or "")
    return Permission(title, call, read_options(params.get("options")), meta=meta)
