"""Paths as people read them: those in a session's directory without it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.view.blocks import Call


def short_path(path: str, cwd: str) -> str:
    """Return a path relative to a directory if it lies in it, otherwise as it is."""
    if not cwd or ".." in path.split("/"):  # it may lie elsewhere
        return path
    return path.removeprefix(f"{cwd.rstrip('/')}/") or path


def with_short_paths(call: Call, cwd: str) -> Call:
    """Return a tool call whose places and changed files are relative to a directory."""
    parts = [part._replace(label=short_path(part.label, cwd)) if part.kind == "diff" else part for part in call.parts]
    return replace(call, locations=tuple(short_path(it, cwd) for it in call.locations), parts=tuple(parts))
