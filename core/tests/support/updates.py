"""Updates as hypothesis draws them: every kind there is and kinds there are not, with whatever else may be in them."""

from __future__ import annotations

import os
from base64 import b64encode
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from hypothesis import strategies as st

from holdfast.model import RULES, Fold

if TYPE_CHECKING:
    from holdfast.model import History, Update

FEW = int(os.environ.get("HOLDFAST_EXAMPLES", "100"))
"""How many histories each law is tried on; the environment can ask for more."""

HARD = (
    "",
    "\n",
    "\0",
    "\x1b[31m",
    "\x7f\x85",
    "\u2028",
    "\ufeff",
    "\U0001f600",
    "\U0010ffff",
    '"content":[',
    '"}]}',
    "\\",
)
"""Text with all that makes text hard: control characters, other planes, and what looks like JSON."""

text = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(HARD)

keys = st.sampled_from(["a", "b", 'q"content":[', "é\n\U0001f600", "", "\\"])
"""Few, so that updates often are about the same entry."""

# Nobody looks inside a value, so a choice of values does; text is drawn where it is text that matters.
values: st.SearchStrategy[Any] = st.sampled_from(
    [
        None, True, False, 0, 1, -1, 1.0, -0.0, 0.1, 1e300, 2**53 + 1, -(2**63), 2**64, 10**30, *HARD,
        [], {}, [None], {"": None}, {"a": {"b": [1, None, {}]}}, {"sessionUpdate": "notice"}, {"messageId": "a"},
    ]
)  # fmt: skip
metas = st.none() | st.dictionaries(st.sampled_from(["x", "y", "z/z"]), values, max_size=3)

Form: TypeAlias = "dict[str, st.SearchStrategy[Any]]"


def merged(*parts: st.SearchStrategy[Update]) -> st.SearchStrategy[Update]:
    """Draw objects and make them one; a later one wins."""

    def merge(drawn: tuple[Update, ...]) -> Update:
        return {name: value for part in drawn for name, value in part.items()}

    return st.tuples(*parts).map(merge)


def objects(known: Form, optional: Form | None = None) -> st.SearchStrategy[Update]:
    """Draw an object of a form."""
    return st.fixed_dictionaries(known, optional=optional or {})


def others(*typed: str) -> st.SearchStrategy[Update]:
    """Draw members nobody knows, null among their values."""
    names = ["locations", "rawInput", "error", "type", "text", "content", "summary", "data", "é", *HARD]
    unknown = st.sampled_from([it for it in names if it not in typed])
    nothing: Update = {}
    return st.just(nothing) | st.dictionaries(unknown, values, max_size=2)


plain_blocks = objects({"type": st.just("text"), "text": text})
blocks = (
    plain_blocks
    | merged(others("type", "text"), plain_blocks)
    | merged(others("type"), objects({"type": st.sampled_from(["image", "_mine", ""])}))
)
call_items = (
    merged(others("type", "content"), objects({"type": st.just("content"), "content": blocks}))
    | objects({"type": st.just("diff"), "path": text}, {"oldText": text | st.none(), "newText": text, "_meta": metas})
    | objects({"type": st.just("terminal"), "terminalId": keys})
    | merged(others("type"), objects({"type": st.just("_mine")}))
)
pieces = st.binary(max_size=7).map(lambda it: b64encode(it).decode())
outputs = st.none() | merged(others("data"), objects({"data": pieces}))

_TYPED = (
    "sessionUpdate", "messageId", "toolCallId", "terminalId", "compactionId", "sessionId", "planId", "plan", "content",
    "output", "summary", "data", "_meta", "title", "name", "kind", "status", "cost", "entries",
)  # fmt: skip
_CALL: Form = {
    "title": text | st.none(),
    "name": text | st.none(),
    "kind": st.sampled_from(["read", "execute", "other", "_mine", "browse"]) | st.none(),
    "status": st.sampled_from(["pending", "in_progress", "paused", "completed", "failed", "cancelled", "_x"])
    | st.none(),
}


def _of(kind: str) -> st.SearchStrategy[Update]:
    rule = RULES[kind]
    items = call_items if rule.key == "toolCallId" else blocks
    known: Form = {"sessionUpdate": st.just(kind)}
    optional: Form = {"_meta": metas}
    if rule.key:
        known[rule.key] = keys
    if rule.fold is Fold.APPEND:
        known[rule.item] = pieces if rule.item == "data" else items
    elif rule.items:
        optional[rule.items] = outputs if rule.items == "output" else st.none() | st.lists(items, max_size=3)
    match kind:
        case "plan_update":
            plan = merged(objects({"type": st.just("items"), "planId": keys}), others(*_TYPED, "type"))
            known = {"sessionUpdate": st.just(kind), "plan": plan}
        case "tool_call_update":
            optional |= _CALL
        case "session_info_update":
            optional["title"] = text | st.none()
        case "usage_update":
            optional["cost"] = values
        case _:
            pass
    return merged(objects(known, optional), others(*_TYPED))


unknown_updates = merged(
    st.dictionaries(st.sampled_from(["messageId", "content", "plan", "_meta", ""]), values, max_size=3),
    objects({"sessionUpdate": st.sampled_from(["_mine", "_holdfast/turn_end", "from_the_future", "tool_call", ""])}),
)
text_chunks = objects(
    {
        "sessionUpdate": st.sampled_from(
            [kind for kind, rule in RULES.items() if rule.item == "content" and rule.key == "messageId"]
        ),
        "messageId": keys,
        "content": plain_blocks,
    }
)
updates = st.one_of([_of(kind) for kind in RULES]) | text_chunks | unknown_updates | _of("tool_call_update")
histories = st.lists(updates, max_size=14)
"""Sequences of updates, as a session has them."""


def encoded(update: object) -> bytes:
    """Encode so that equal values, and only those, are equal: no 1 that is true, no order of members."""
    return msgspec.json.encode(update, order="deterministic")


def told(history: History) -> list[bytes]:
    """Say all that a history knows, comparably."""
    return [*map(encoded, history.updates()), encoded(history.state)]
