"""Whether an update may become an event: two checks, for two sources.

`check_update` asks the least that a history needs. Surfaces use it after their own shapes, and so does whoever reads a
file: what other agents said is kept even where it is odd. `checked_event` is for agent code, which can still be
corrected: a known kind must be complete and its words known, as the newest protocol version wants it. Kinds, types and
members that nobody knows pass, and so do words that begin with `_`.
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any, cast, get_args

import msgspec

from holdfast.errors import UsageError
from holdfast.model import shapes
from holdfast.model.events import event_from, is_object
from holdfast.model.kinds import LOG_ONLY, RESERVED_PREFIX, RULES, Fold
from holdfast.model.lifecycle import StopReason
from holdfast.model.near_names import choice_of
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


_WRONG_TYPE = r"Expected `([^`]+)`, got `([^`]+)`(?: - at `(?:key in )?\$\.?([^`]*)`)?"
_MISSING = r"Object missing required field `([^`]+)`(?: - at `\$\.?([^`]*)`)?"
_PYTHON = {"str": "a string", "int": "an integer", "float": "a number", "array": "a list", "object": "a dict"}
_ARGUMENTS = {"planId": "id", "sessionId": "session_id"}
"""By member, the argument that an author gives for it, if that has another name."""


def checked_event(update: Update, said_by: str = "") -> Event:
    """Return the event of an update that agent code wants to say; raise `UsageError` where it is malformed.

    Args:
        update: the JSON object.
        said_by: the author's verb, as ``turn.tool``: the error names it, and not the update's kind and members.

    """
    kind: Any = update.get("sessionUpdate")
    if not isinstance(kind, str):
        raise UsageError("an update must say what it is: a string as `sessionUpdate`")
    if kind.startswith(RESERVED_PREFIX):
        raise UsageError(f"{kind} is one of Holdfast's own kinds; choose another prefix, as in `_mine/{kind[10:]}`")
    shape = shapes.UPDATES.get(kind)
    if shape is not None:
        _check_shape(said_by or kind, update, shape, as_arguments=bool(said_by))
        _check_words(said_by or kind, kind, update)
        _check_content(kind, update, said_by)
        if RULES[kind].fold is not Fold.TRANSIENT:
            _check_members(kind, update)  # also those that its kind does not have
    return event_from(update, said_by=said_by)


def checked_stop_reason(reason: object) -> StopReason:
    """Return why a turn ends; raise `UsageError` for a reason that the protocol does not know."""
    known = get_args(StopReason)
    if not isinstance(reason, str) or (reason not in known and not reason.startswith("_")):
        raise UsageError(f"a turn cannot end with {reason!r}{choice_of(reason, known, are='it can end with')}")
    return cast("StopReason", reason)


def _check_shape(where: str, value: Any, shape: type, *, as_arguments: bool = False) -> None:
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError as e:
        raise UsageError(f"{where}: {_in_python(str(e)) if as_arguments else e}") from None


def _in_python(fault: str) -> str:
    """Return what msgspec says in the words of somebody who called a function with arguments."""
    if (wrong := re.fullmatch(_WRONG_TYPE, fault)) is not None:
        wanted = [_PYTHON.get(kind, kind) for kind in wrong[1].split(" | ") if kind != "null"]
        got = {"array": "list", "object": "dict", "null": "None"}.get(wrong[2], wrong[2])
        return f"`{_argument(wrong[3] or '')}` must be {' or '.join(wanted)}, not {got}"
    if (missing := re.fullmatch(_MISSING, fault)) is not None:
        return f"`{f'{_argument(missing[2])}.' if missing[2] else ''}{missing[1]}` is missing"
    return fault.replace("`$.", "`")


def _argument(path: str) -> str:
    name = path.removeprefix("plan.")
    return _ARGUMENTS.get(name, name) or "it"


def _check_words(where: str, kind: str, members: Update) -> None:
    for name, known in _WORDS.get(kind, {}).items():
        word: Any = members.get(name)
        if word is not None and word not in known and not word.startswith("_"):
            raise UsageError(f"{where}: `{name}` cannot be {word!r}{choice_of(word, sorted(known), are='it can be')}")


def _check_content(kind: str, update: Update, said_by: str) -> None:
    """Check what is inside the lists and objects of an update, by the type that each names."""
    match kind:
        case "tool_call_update":
            for item in update.get("content") or ():
                _check_typed(said_by or f"{kind}: `content`", item, shapes.TOOL_CONTENT, as_arguments=bool(said_by))
        case "tool_call_content_chunk":
            where = said_by or f"{kind}: `content`"
            _check_typed(where, update["content"], shapes.TOOL_CONTENT, as_arguments=bool(said_by))
        case "plan_update":
            _expect(isinstance(update["plan"].get("planId"), str), said_by or kind, _plan_id_rule(said_by))
            _check_typed(said_by or f"{kind}: `plan`", update["plan"], shapes.PLANS, as_arguments=bool(said_by))
            for entry in update["plan"].get("entries") or () if update["plan"]["type"] == "items" else ():
                _check_words(said_by or f"{kind}: `entries`", "plan_entry", entry)
        case "terminal_output_chunk":
            _check_data(kind, update["data"])
        case "terminal_update":
            _check_output(kind, update.get("output"))
        case _:
            _check_blocks(kind, update, said_by)


def _plan_id_rule(said_by: str) -> str:
    return f"`{'id' if said_by else 'planId'}` must be a string"


def _check_blocks(kind: str, update: Update, said_by: str) -> None:
    rule = RULES[kind]
    name = rule.item or rule.items
    blocks = [update[rule.item]] if rule.item else (update.get(rule.items) or ()) if rule.items else ()
    for block in blocks:
        _check_typed(said_by or f"{kind}: `{name}`", block, shapes.BLOCKS, as_arguments=bool(said_by))


def _check_typed(where: str, item: Any, known: dict[str, type], *, as_arguments: bool) -> None:
    """Check an object by the shape of its type. One of a type that nobody knows passes."""
    type_: Any = item.get("type")
    if not isinstance(type_, str):
        raise UsageError(f"{where}{': a block' if as_arguments else ''} must say what it is: a string as `type`")
    if (shape := known.get(type_)) is not None:
        # An author gives blocks; all else is made of arguments, which have no type.
        inside = f"{where}: {type_}" if known is shapes.BLOCKS or not as_arguments else where
        _check_shape(inside, item, shape, as_arguments=as_arguments)
    if type_ == "content" and known is shapes.TOOL_CONTENT and is_object(item):
        _check_typed(where, item["content"], shapes.BLOCKS, as_arguments=as_arguments)
