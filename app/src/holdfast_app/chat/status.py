"""The status line: directory, mode, model, and how much of the context is used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.view.usage import usage_parts

if TYPE_CHECKING:
    from holdfast.client import ClientSession


def status_line(session: ClientSession | None, cwd: str) -> str:
    """Return the status line. What the agent has not said is left out."""
    if session is None:
        return short_path(cwd)
    parts = [short_path(session.cwd)]
    for names, current in ((session.modes, session.mode), (session.models, session.model)):
        if current:
            parts.append(names.get(current) or current)
    if jobs := len(session.background):
        parts.append(f"{jobs} in the background: /jobs")
    return " · ".join((*parts, *usage_parts(session.usage)))


def short_path(path: str) -> str:
    """Return a path with ~ for the home directory."""
    try:
        inside = Path(path).relative_to(Path.home())
    except (RuntimeError, ValueError):
        return path
    return "~" if inside == Path() else f"~/{inside}"
