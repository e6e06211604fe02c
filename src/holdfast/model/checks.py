"""Whether an update can become part of a history: the least that must hold before it is made an event.

This is for what agent code says; a surface checks what it lifts by the shapes of its protocol version. What was stored
has passed one or the other.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

from holdfast.errors import UsageError
from holdfast.model.kinds import RULES, Fold

if TYPE_CHECKING:
    from holdfast.model.events import Update

_MEMBERS: dict[str, type] = {"status": str, "kind": str, "title": str, "exitStatus": dict, "_meta": dict}
"""What these members must be in every kind that folds, where they are there and not null."""


def check_update(update: Update) -> None:
    """Refuse an update that no history could hold, and say what is wrong with it."""
    kind: Any = update.get("sessionUpdate")
    if not isinstance(kind, str):
        raise UsageError("an update must say what it is: a string as `sessionUpdate`")
    rule = RULES.get(kind)
    if rule is None or rule.fold is Fold.TRANSIENT:
        return
    for name, wanted in _MEMBERS.items():
        _expect(isinstance(update.get(name), wanted | None), kind, f"`{name}` must be a {wanted.__name__} or null")
    holder: Any = update.get("plan") if kind == "plan_update" else update
    if rule.key:
        _expect(isinstance(holder, dict), kind, "`plan` must be an object")
        key: Any = holder.get(rule.key)
        _expect(isinstance(key, str), kind, f"`{rule.key}` must be a string")
    if kind == "terminal_output_chunk":
        _check_data(kind, update.get("data"))
    elif kind == "terminal_update":
        _check_output(kind, update.get("output"))
    elif rule.fold is Fold.APPEND:
        _check_item(kind, rule.item, update.get(rule.item))
    elif rule.items and (items := update.get(rule.items)) is not None:
        _expect(isinstance(items, list | tuple), kind, f"`{rule.items}` must be a list")
        for item in items:
            _check_item(kind, rule.items, item)


def _check_item(kind: str, name: str, item: Any) -> None:
    _expect(isinstance(item, dict), kind, f"`{name}` must be made of objects")
    if item.get("type") == "content":
        _expect(isinstance(item.get("content"), dict), kind, f"`{name}` has a `content` that is no object")
        item = item["content"]
    if item.get("type") == "text":
        _expect(isinstance(item.get("text"), str), kind, f"`{name}` has a text without `text`")


def _check_output(kind: str, output: Any) -> None:
    if output is not None:
        _expect(isinstance(output, dict), kind, "`output` must be an object")
        _check_data(kind, output.get("data"))


def _check_data(kind: str, data: Any) -> None:
    try:
        b64decode(data, validate=True)
    except (TypeError, ValueError):
        raise UsageError(f"{kind}: `data` must be base64") from None


def _expect(holds: bool, kind: str, rule: str) -> None:  # noqa: FBT001
    if not holds:
        raise UsageError(f"{kind}: {rule}")
