"""Questions to a version 2 client, as requests, and requests of a version 2 agent, as questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import InvalidParams
from holdfast.model import Permission
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgspec import Raw

    from holdfast.model import Answer, Question, Update

__all__ = ["Questions", "elicitation_answer", "permission_answer", "read_elicitation", "read_permission"]

V1_OF_A_DIFF = frozenset({"path", "oldText", "newText"})
"""What version 1 says of a diff."""


class Questions:
    """What a client can be asked."""

    __slots__ = ("modes",)

    def __init__(self, capabilities: Update) -> None:
        self.modes: frozenset[str] = elicitation_modes(capabilities)

    def request(self, session_id: str, question: Question) -> tuple[str, Update] | None:
        """Return the request that asks a question; None where this client cannot be asked."""
        if isinstance(question, Permission):
            params: Update = {"sessionId": session_id, "title": question.title, "options": option_list(question)}
            if question.description is not None:
                params["description"] = question.description
            if question.meta:
                params["_meta"] = question.meta
            if question.call:
                params["subject"] = {"type": "tool_call", "toolCall": _call(question.call)}
            elif question.operation is not None:
                params["subject"] = question.operation
            return "session/request_permission", params
        if question.mode in self.modes:
            return "elicitation/create", {"sessionId": session_id, **question.params}
        return None

    def answer(self, question: Question, result: Raw) -> Answer:
        """Parse an answer."""
        return read_answer(question, result)


def _call(call: Update) -> Update:
    """Return a tool call whose diffs have no member but those of this version: the schema lets none through here."""
    if not call.get("content"):
        return call
    return {**call, "content": [shown for item in call["content"] for shown in _shown(item)]}


def _shown(item: Update) -> Iterator[Update]:
    """Yield an item of a tool call; a diff that is too long for a patch has its new text beside it (P13)."""
    if item["type"] != "diff":
        yield item
        return
    yield {name: value for name, value in item.items() if name not in V1_OF_A_DIFF}
    if not item.get("patch") and isinstance(new := item.get("newText"), str):
        yield {"type": "content", "content": {"type": "text", "text": f"{item.get('path')} becomes:\n\n{new}"}}


def read_permission(params: Update) -> Permission:
    """Parse a question for permission; one without options that can be chosen has none."""
    title, description = params.get("title"), params.get("description")
    if not isinstance(title, str):
        raise InvalidParams("title must be a string")
    subject: Any = params.get("subject")
    operation = cast("Update", subject) if isinstance(subject, dict) else None
    call: Any = None if operation is None else operation.get("toolCall")
    return Permission(
        title,
        cast("Update", call) if isinstance(call, dict) else {},
        read_options(params.get("options")),
        description=description if isinstance(description, str) else None,
        meta=read_meta(params),
        operation=None if isinstance(call, dict) else operation,
    )
