"""What a session has used: how much of the model's context, and money."""

from __future__ import annotations

from typing import Any

from holdfast.model import is_object


def usage_parts(usage: Any) -> list[str]:
    """Return how much of the context is used, and what that has cost, of a `usage_update`; nothing where none is."""
    parts: list[str] = []
    if not is_object(usage):
        return parts
    used, size, cost = usage.get("used"), usage.get("size"), usage.get("cost")
    if isinstance(used, int | float):
        if isinstance(size, int | float) and size > 0:
            parts.append(f"{short_number(used)} of {short_number(size)} tokens ({used / size:.0%})")
        else:
            parts.append(f"{short_number(used)} tokens")
    match cost:
        case {"amount": int() | float() as amount, "currency": "USD"}:
            parts.append(f"${amount:.2f}" if amount >= 1 else f"${amount:.3f}".removesuffix("0"))
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
