"""The questions that an author puts to the user, made of what `Turn` was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.errors import UsageError
from holdfast.model import Elicitation, Permission

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model import PermissionOption, Update


def permission_question(
    question: str,
    options: Sequence[PermissionOption],
    call_id: str | None,
    cwd: str,
    *,
    command: str | None,
    description: str | None,
    remember: str | None,
) -> Permission:
    """Return a permission question; raise `UsageError` where it cannot be asked."""
    if not options or len({option.id for option in options}) < len(options):
        raise UsageError("a question needs options to choose from, each with an id of its own")
    if call_id is not None and command is not None:
        raise UsageError("a question is about a tool call or about a command; let the call show the command")
    operation = command and {"type": "command", "command": _checked_text(command), "cwd": cwd}
    return Permission(
        _checked_text(question),
        {} if call_id is None else {"toolCallId": call_id},
        tuple(options),
        subject=remember or "\n".join(filter(None, (question, command))),
        description=None if description is None else _checked_text(description),
        operation=operation or None,
    )


def form_question(message: str, fields: Mapping[str, Any], required: Sequence[str]) -> Elicitation:
    """Return a form; raise `UsageError` where its message is no text, or its fields are none."""
    if not isinstance(fields, Mapping) or not all(isinstance(field, Mapping) for field in fields.values()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError('a form has fields with JSON schemas; write `turn.ask("…", {"name": {"type": "string"}})`')
    schema: Update = {"type": "object", "properties": {name: dict(field) for name, field in fields.items()}}
    if isinstance(required, str) or not fields.keys() >= set(required):
        raise UsageError(f"`required` is a list of names of fields, of {', '.join(fields) or 'none'}; not {required!r}")
    if required:
        schema["required"] = list(required)
    return Elicitation("form", {"mode": "form", "message": _checked_text(message), "requestedSchema": schema})


def url_question(message: str, url: str, id: str) -> Elicitation:
    """Return the question to go to an address; raise `UsageError` where its message is no text."""
    return Elicitation("url", {"mode": "url", "message": _checked_text(message), "url": url, "elicitationId": id})


def _checked_text(text: str) -> str:
    """Return a question as it is; raise `UsageError` where it is no text."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (what agent code says is unknown)
        raise UsageError(f"a question must be a string, not {type(text).__name__}")
    return text
