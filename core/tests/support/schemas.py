"""The official schemas, as the official TypeScript SDK brings them, and what they say of a frame that an agent sends.

Of each version there are two: the stable schema, and one with what is unstable too. What an agent sends must be valid
in both, as far as the stable one knows the method. The second is read strictly: what the schemas leave open for
custom values and for later versions is closed, and a member the schema does not name is an error.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parent.parent.parent.parent
SDK = ROOT / "node_modules" / "@agentclientprotocol" / "sdk"

Schema = dict[str, Any]

APPLIES = ("$ref", "allOf", "anyOf", "oneOf", "properties")


def lacking(what: str) -> NoReturn:
    """Skip a check that needs something this machine does not have; where CI is set, nothing may be lacking."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI must not do without")
    pytest.skip(what)


@cache
def definitions(version: int, *, stable: bool) -> dict[str, Schema]:
    """Get the definitions of a schema."""
    path = SDK / "schema" / f"v{version}" / ("schema.json" if stable else "schema.unstable.json")
    if not path.is_file():
        lacking("the official schemas are not installed: they come with npm, by `make test`")
    return json.loads(path.read_bytes())["$defs"]


def definition(version: int, side: str, method: str, ending: str, *, stable: bool) -> str | None:
    """Find what a schema calls the request, response or notification of a method."""
    for name, it in definitions(version, stable=stable).items():
        if it.get("x-method") == method and it.get("x-side") == side and name.endswith(ending):
            return name
    return None


def closed(schema: Any, *, here: bool = False) -> Any:
    """Close what a schema leaves open; `here` is where a value stands, and not only a part of what is said of it."""
    if isinstance(schema, list):
        return [closed(it) for it in cast("list[Any]", schema) if not _is_open(it)]
    if not isinstance(schema, dict):
        return schema
    read = cast("Schema", schema)
    shut: Schema = {}
    for key, value in read.items():
        if key == "properties":
            shut[key] = {name: closed(it, here=True) for name, it in value.items()}
        elif key in ("items", "additionalProperties"):
            shut[key] = closed(value, here=True)
        elif key in ("allOf", "anyOf", "oneOf", "$defs"):
            shut[key] = {name: closed(it) for name, it in value.items()} if key == "$defs" else closed(value)
        else:
            shut[key] = value
    if here and any(it in read for it in APPLIES):
        shut["unevaluatedProperties"] = False
    return shut


def _is_open(schema: Any) -> bool:
    return isinstance(schema, dict) and cast("Schema", schema).get("title") == "other"


@cache
def validator(version: int, name: str, *, stable: bool) -> Draft202012Validator:
    """Make a validator of one definition."""
    all_of_them = definitions(version, stable=stable)
    root: Schema = {"$ref": f"#/$defs/{name}", "$defs": all_of_them}
    return Draft202012Validator(root if stable else closed(root, here=True))


def invalid(version: int, name: str, value: Any, *, stable: bool) -> list[str]:
    """Say where a value is not what a definition says."""
    errors: Any = validator(version, name, stable=stable).iter_errors(value)  # pyright: ignore[reportUnknownMemberType]
    return [f"at {it.json_path}: {it.message[:300]}" for it in errors]


def faults(version: int, side: str, method: str, ending: str, body: Any) -> list[str]:
    """Say what is wrong with what an agent sends: the result or the parameters of a method."""
    wrong: list[str] = []
    known = False
    for stable in (True, False):
        name = definition(version, side, method, ending, stable=stable)
        if name is None:
            continue
        known = True
        read = body if stable else _without_ours(version, method, body)
        wrong += (f"{name} of {method}, {it}" for it in invalid(version, name, read, stable=stable))
    return wrong if known else [f"version {version} has no {ending} of {method}"]


def _without_ours(version: int, method: str, body: Any) -> Any:
    """Leave out what is said on purpose although the schema does not name it."""
    if version == 1 and "models" in body:  # the schema had them once, and clients still read them (D4)
        return {name: value for name, value in body.items() if name != "models"}
    if version == 2 and method == "initialize":  # markers of the early draft (B9)
        early = ("load", "resume", "close", "list")
        session = {name: value for name, value in body["capabilities"]["session"].items() if name not in early}
        return {**body, "capabilities": {**body["capabilities"], "session": session}}
    if version == 2 and method == "session/update":
        if body["update"]["sessionUpdate"].startswith("_"):  # how a turn ended, for clients that know us
            return {**body, "update": {"sessionUpdate": "state_update", "state": "idle"}}
        return {**body, "update": _without_texts(body["update"])}
    return body


def _without_texts(value: Any) -> Any:
    """Leave out the old and the new text of a diff, which version 1 needs and version 2 only lets pass."""
    if isinstance(value, list):
        return [_without_texts(it) for it in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    texts = ("path", "oldText", "newText") if members.get("type") == "diff" else ()
    return {name: _without_texts(it) for name, it in members.items() if name not in texts}
