"""Whether an update may become an event: two checks, for two sources.

`check_update` asks the least that a history needs. Surfaces use it after their own shapes, and so does whoever reads a
file: what other agents said is kept even where it is odd. `checked_event` is for agent code, which can still be
corrected: a known kind must be complete and its words known, as the newest protocol version wants it. Kinds, types and
members that nobody knows pass, and so do words that begin with `_`.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any, cast, get_args

import msgspec

from holdfast.errors import UsageError
from holdfast.model import shapes
from holdfast.model.events import event_from, is_object
from holdfast.model.kinds import LOG_ONLY, RESERVED_PREFIX, RULES, Fold
from holdfast.model.lifecycle import StopReason
from holdfast.model.tool_calls import TOOL_KINDS, TOOL_STATUSES

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from holdfast.model.events import Event, Update

_MEMBERS: dict[str, type] = {"status": str, "kind": str, "title": str, "exitStatus": dict, "_meta": dict}
"""What these members must be in every kind that folds, where they are there and not null."""

_LISTS: dict[str, str] = {"available_commands_update": "availableCommands", "config_option_update": "configOptions"}
"""By kind, the member that must be a list of objects, where it is there."""

_WORDS: dict[str, dict[str, AbstractSet[str]]] = {
    "tool_call_update": {"kind": TOOL_KINDS, "status": TOOL_STATUSES},
    "compaction_update": {"status": frozenset({"in_progress", "completed", "failed", "cancelled"})},
    "notice": {"severity": frozenset({"info", "warning", "error"})},
    "state_update": {"state": frozenset({"running", "idle", "requires_action", "unknown"})},
    "plan_entry": {
        "status": frozenset({"pending", "in_progress", "completed", "cancelled"}),
        "priority": frozenset({"high", "medium", "low"}),
    },
}
"""By kind, the members whose values are words of the protocol."""


def check_update(update: Update) -> None:
    """Raise `UsageError` for an update that no history can hold."""
    kind: Any = update.get("sessionUpdate")
    if not isinstance(kind, str):
        raise UsageError("an update must say what it is: a string as `sessionUpdate`")
    if kind in LOG_ONLY:
        raise UsageError(f"{kind} is reserved for Holdfast's own logs")
    rule = RULES.get(kind)
    if rule is None or rule.fold is Fold.TRANSIENT:
        return
    _check_members(kind, update)
    if kind in _LISTS and update.get(_LISTS[kind]) is not None:
        _check_objects(kind, _LISTS[kind], update[_LISTS[kind]])
    holder: Any = update.get("plan") if kind == "plan_update" else update
    if rule.key:
        _expect(isinstance(holder, dict), kind, "`plan` must be an object")
        if kind == "plan_update":
            _check_plan(holder)
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


def _check_members(kind: str, update: Update) -> None:
    for name, wanted in _MEMBERS.items():
        _expect(isinstance(update.get(name), wanted | None), kind, f"`{name}` must be a {wanted.__name__} or null")


def _check_objects(kind: str, name: str, items: Any) -> None:
    _expect(isinstance(items, list | tuple), kind, f"`{name}` must be a list")
    _expect(all(isinstance(item, dict) for item in items), kind, f"`{name}` must be made of objects")


def _check_plan(plan: Update) -> None:
    _expect(isinstance(plan.get("type"), str | None), "plan_update", "`type` must be a string")
    if plan.get("entries") is not None:
        _check_objects("plan_update", "entries", plan["entries"])


def _check_item(kind: str, name: str, item: Any) -> None:
    _expect(isinstance(item, dict), kind, f"`{name}` must be made of objects")
    if item.get("type") == "terminal":
        _expect(isinstance(item.get("terminalId"), str), kind, f"`{name}` has a terminal without `terminalId`")
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


# What agent code says


def checked_event(update: Update) -> Event:
    """Return the event of an update that agent code wants to say; raise `UsageError` where it is malformed."""
    kind: Any = update.get("sessionUpdate")
    if not isinstance(kind, str):
        raise UsageError("an update must say what it is: a string as `sessionUpdate`")
    if kind.startswith(RESERVED_PREFIX):
        raise UsageError(f"{kind} is one of Holdfast's own kinds; choose another prefix, as in `_mine/{kind[10:]}`")
    shape = shapes.UPDATES.get(kind)
    if shape is not None:
        _check_shape(kind, update, shape)
        _check_words(kind, kind, update)
        _check_content(kind, update)
        if RULES[kind].fold is not Fold.TRANSIENT:
            _check_members(kind, update)  # also those that its kind does not have
    return event_from(update)


def checked_stop_reason(reason: object) -> StopReason:
    """Return why a turn ends; raise `UsageError` for a reason that the protocol does not know."""
    known = get_args(StopReason)
    if not isinstance(reason, str) or (reason not in known and not reason.startswith("_")):
        raise UsageError(f"a turn cannot end with {reason!r}; it can end with {', '.join(known)}")
    return cast("StopReason", reason)


def _check_shape(where: str, value: Any, shape: type) -> None:
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError as e:
        raise UsageError(f"{where}: {e}") from None


def _check_words(where: str, kind: str, members: Update) -> None:
    for name, known in _WORDS.get(kind, {}).items():
        word: Any = members.get(name)
        if word is not None and word not in known and not word.startswith("_"):
            raise UsageError(f"{where}: `{name}` cannot be {word!r}; it can be {', '.join(sorted(known))}")


def _check_content(kind: str, update: Update) -> None:
    """Check what is inside the lists and objects of an update, by the type that each names."""
    match kind:
        case "tool_call_update":
            for item in update.get("content") or ():
                _check_typed(f"{kind}: `content`", item, shapes.TOOL_CONTENT)
        case "tool_call_content_chunk":
            _check_typed(f"{kind}: `content`", update["content"], shapes.TOOL_CONTENT)
        case "plan_update":
            _expect(isinstance(update["plan"].get("planId"), str), kind, "`planId` must be a string")
            _check_typed(f"{kind}: `plan`", update["plan"], shapes.PLANS)
            for entry in update["plan"].get("entries") or () if update["plan"]["type"] == "items" else ():
                _check_words(f"{kind}: `entries`", "plan_entry", entry)
        case "terminal_output_chunk":
            _check_data(kind, update["data"])
        case "terminal_update":
            _check_output(kind, update.get("output"))
        case _:
            _check_blocks(kind, update)


def _check_blocks(kind: str, update: Update) -> None:
    rule = RULES[kind]
    if rule.item:
        _check_typed(f"{kind}: `{rule.item}`", update[rule.item], shapes.BLOCKS)
    elif rule.items:
        for block in update.get(rule.items) or ():
            _check_typed(f"{kind}: `{rule.items}`", block, shapes.BLOCKS)


def _check_typed(where: str, item: Any, known: dict[str, type]) -> None:
    """Check an object by the shape of its type. One of a type that nobody knows passes."""
    type_: Any = item.get("type")
    if not isinstance(type_, str):
        raise UsageError(f"{where} must say what it is: a string as `type`")
    if (shape := known.get(type_)) is not None:
        _check_shape(f"{where}: {type_}", item, shape)
    if type_ == "content" and known is shapes.TOOL_CONTENT and is_object(item):
        _check_typed(where, item["content"], shapes.BLOCKS)
