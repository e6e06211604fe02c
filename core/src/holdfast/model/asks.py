"""Questions that an agent puts to the user, and what counts as an answer (C8, C9)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

PermissionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class PermissionOption(msgspec.Struct, frozen=True):
    """One of the answers that a permission question offers.

    Attributes:
        id: its name for programs.
        name: its name for people.
        kind: what it means; only those that begin with ``allow`` approve.

    """

    id: str
    name: str
    kind: PermissionKind
    more: dict[str, Any] = {}
    """Further members, as another agent has them."""


ALLOW_OR_REJECT = (
    PermissionOption("allow_once", "Allow", "allow_once"),
    PermissionOption("allow_always", "Always allow", "allow_always"),
    PermissionOption("reject_once", "Reject", "reject_once"),
    PermissionOption("reject_always", "Always reject", "reject_always"),
)


class Permission(msgspec.Struct, frozen=True):
    """A question whether the agent may do something.

    Attributes:
        title: what is asked.
        call: the members of the tool call that the question is about; empty where there is none.
        options: the answers to choose from.
        subject: the name under which an answer given for ever is remembered.

    """

    title: str
    call: dict[str, Any]
    options: tuple[PermissionOption, ...] = ALLOW_OR_REJECT
    subject: str | None = None
    description: str | None = None
    """Why it is asked, where the title does not say that."""
    meta: dict[str, Any] = {}
    """The `_meta` of the request, where another agent asks."""
    operation: dict[str, Any] | None = None
    """What it is about, where that is no tool call: ``{"type": "command", "command": …, "cwd": …}``, or another."""

    def shown_call(self) -> dict[str, Any]:
        """Return members of a tool call that show all the question is about.

        Returns:
            The call, or what stands for it where the question is about a command.

        """
        if self.call or self.operation is None:
            return self.call
        details = {name: value for name, value in self.operation.items() if name not in ("type", "_meta")}
        is_command = self.operation.get("type") == "command" and isinstance(details.get("command"), str)
        shown = [details["command"], f"in {details.get('cwd')}"] if is_command else [_pretty(self.operation)]
        content = [{"type": "content", "content": {"type": "text", "text": text}} for text in shown]
        kind = "execute" if is_command else "other"
        return {"title": self.title, "kind": kind, "rawInput": details, "content": content}

    def chosen(self, answer: object) -> PermissionOption | None:
        """Return the option that an answer names.

        Args:
            answer: the id of an option, or anything else.

        Returns:
            The option, None where the answer is not the id of an offered one.

        """
        return next((option for option in self.options if option.id == answer), None)


def _pretty(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value)).decode()


class Elicitation(msgspec.Struct, frozen=True):
    """A request to fill in a form or to visit an address.

    Attributes:
        mode: which of both.
        params: those of the request, without the session id: `message` and `requestedSchema`, or `url`.

    """

    mode: Literal["form", "url"]
    params: dict[str, Any]


Question: TypeAlias = Permission | Elicitation


class ElicitationAnswer(msgspec.Struct, frozen=True):
    """The answer to an elicitation.

    Attributes:
        action: what the user did with it.
        content: what was filled in, for a form that was accepted.

    """

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


Answer: TypeAlias = str | ElicitationAnswer | None
"""The id of a permission option, or the answer to an elicitation; None where nobody answered."""
