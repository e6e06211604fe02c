"""Questions that an agent puts to the user, and what counts as an answer (C8, C9)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

PermissionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class PermissionOption(msgspec.Struct, frozen=True):
    """One of the answers that a permission question offers."""

    id: str
    name: str
    kind: PermissionKind


ALLOW_OR_REJECT = (
    PermissionOption("allow_once", "Allow", "allow_once"),
    PermissionOption("allow_always", "Always allow", "allow_always"),
    PermissionOption("reject_once", "Reject", "reject_once"),
    PermissionOption("reject_always", "Always reject", "reject_always"),
)


class Permission(msgspec.Struct, frozen=True):
    """A question whether the agent may do something.

    `call` has the members of the tool call that the question is about; it is empty where there is none. `subject` is
    the name under which an answer given for ever is remembered.
    """

    title: str
    call: dict[str, Any]
    options: tuple[PermissionOption, ...] = ALLOW_OR_REJECT
    subject: str | None = None

    def chosen(self, answer: object) -> PermissionOption | None:
        """Return the option that an answer names, None where it is not the id of an offered option."""
        return next((option for option in self.options if option.id == answer), None)


class Elicitation(msgspec.Struct, frozen=True):
    """A request to fill in a form or to visit an address. `params` are those of the request, without the session id."""

    mode: Literal["form", "url"]
    params: dict[str, Any]


Question: TypeAlias = Permission | Elicitation


class ElicitationAnswer(msgspec.Struct, frozen=True):
    """The answer to an elicitation."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


Answer: TypeAlias = str | ElicitationAnswer | None
"""The id of a permission option, or the answer to an elicitation; None where nobody answered."""
