"""The status line: directory, mode, model, and how much of the context is used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    return " · ".join((*parts, *usage_parts(session.usage)))


def usage_parts(usage: dict[str, Any] | None) -> list[str]:
    """Return how much of the context is used, and what that has cost."""
    parts: list[str] = []
    if usage is None:
        return parts
    used, size, cost = usage.get("used"), usage.get("size"), usage.get("cost")
    if isinstance(used, int | float):
        if isinstance(size, int | float) and size > 0:
            parts.append(f"{short_number(used)} of {short_number(size)} tokens ({used / size:.0%})")
        else:
            parts.append(f"{short_number(used)} tokens")
    match cost:
        case {"amount": int() | float() as amount, "currency": "USD"}:
            parts.append(f"${amount:.2f}" if amount >= 1 else f"${amount:.3f}")
        case {"amount": int() | float() as amount, "currency": str(currency)}:
            parts.append(f"{amount:.2f} {currency}")
        case _:
            pass
    return parts


def short_number(number: float) -> str:
    """Return 53000 as 53k."""
    for limit, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= limit:
            return f"{number / limit:.1f}".removesuffix(".0") + unit
    return f"{number:g}"


def short_path(path: str) -> str:
    """Return a path with ~ for the home directory."""
    try:
        inside = Path(path).relative_to(Path.home())
    except (RuntimeError, ValueError):
        return path
    return "~" if inside == Path() else f"~/{inside}"
