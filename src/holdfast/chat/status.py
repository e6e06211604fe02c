"""The line that says where one is: directory, mode, model, and how much of the context is used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.client import ClientSession


def status_line(session: ClientSession | None, cwd: str) -> str:
    """Write it. What the agent has not said is left out."""
    if session is None:
        return short_path(cwd)
    parts = [short_path(session.cwd)]
    for names, current in ((session.modes, session.mode), (session.models, session.model)):
        if current:
            parts.append(names.get(current) or current)
    return " · ".join((*parts, *usage_words(session.usage)))


def usage_words(usage: dict[str, Any] | None) -> list[str]:
    """Say how much is used, and what it has cost."""
    words: list[str] = []
    if usage is None:
        return words
    used, size, cost = usage.get("used"), usage.get("size"), usage.get("cost")
    if isinstance(used, int | float):
        if isinstance(size, int | float) and size > 0:
            words.append(f"{short_number(used)} of {short_number(size)} tokens ({used / size:.0%})")
        else:
            words.append(f"{short_number(used)} tokens")
    match cost:
        case {"amount": int() | float() as amount, "currency": "USD"}:
            words.append(f"${amount:.2f}" if amount >= 1 else f"${amount:.3f}")
        case {"amount": int() | float() as amount, "currency": str(currency)}:
            words.append(f"{amount:.2f} {currency}")
        case _:
            pass
    return words


def short_number(number: float) -> str:
    """Write 53000 as 53k."""
    for limit, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= limit:
            return f"{number / limit:.1f}".removesuffix(".0") + unit
    return f"{number:g}"


def short_path(path: str) -> str:
    """Write the home directory as ~."""
    try:
        inside = Path(path).relative_to(Path.home())
    except (RuntimeError, ValueError):
        return path
    return "~" if inside == Path() else f"~/{inside}"
