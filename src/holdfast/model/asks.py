"""Questions that an agent puts to the user, and what counts as an answer (C8, C9)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

PermissionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class PermissionOption(msgspec.Struct, frozen=True):
    """One answer the user may give to a permission question."""

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
    """Asks whether the agent may do something.

    `call` is what is known of the tool call it is about, empty where it is about none; `subject` names what is
    remembered.
    """

    title: str
    call: dict[str, Any]
    options: tuple[PermissionOption, ...] = ALLOW_OR_REJECT
    subject: str | None = None

    def chosen(self, answer: object) -> PermissionOption | None:
        """Find the option an answer names: anything but the id of an offered option is no answer."""
        return next((it for it in self.options if it.id == answer), None)


class Elicitation(msgspec.Struct, frozen=True):
    """Please fill in this form, or go to this address. `params` is the request without the session's id."""

    mode: Literal["form", "url"]
    params: dict[str, Any]


Question: TypeAlias = Permission | Elicitation


class Filled(msgspec.Struct, frozen=True):
    """The answer to an elicitation."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


Answer: TypeAlias = str | Filled | None
"""The id of a permission option, or a filled-in form; None where nobody answered."""
