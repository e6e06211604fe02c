"""JSON values as a log may hold them: without keys (P10), and nothing that steers the terminal they are read in."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from holdfast.diagnostics.masking import without_environment_keys
from holdfast.redaction.redact import Redactor
from holdfast.view.safe_text import safe_json


def masked_json(value: Any) -> str:
    """Encode a JSON value without what looks like a key, and without what MCP servers are told in confidence.

    Characters that could steer a terminal are escaped; the value stays the same.
    """
    return without_environment_keys(safe_json(msgspec.json.encode(Redactor().value(_without_services(value)))))


def _without_services(value: Any) -> Any:
    """Return a JSON value without what MCP servers are told in confidence: their environments and headers."""
    if isinstance(value, list):
        return [_without_services(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    return {
        name: _hidden(member) if name in ("env", "headers") else _without_services(member)
        for name, member in members.items()
    }


def _hidden(value: Any) -> Any:
    """Return an environment, or headers, with nothing but the names."""
    match value:
        case list():
            return [
                {**cast("dict[str, Any]", item), "value": "…"} if isinstance(item, dict) else "…"
                for item in cast("list[Any]", value)
            ]
        case dict():
            return dict.fromkeys(cast("dict[str, Any]", value), "…")
        case _:
            return "…"
