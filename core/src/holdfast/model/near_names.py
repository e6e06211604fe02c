"""What an author may have meant by a name that there is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def near_name(wrong: object, known: Iterable[str]) -> str:
    """Return the known name that is nearest to a wrong one, an empty text if none is near."""
    from difflib import get_close_matches  # noqa: PLC0415  (slow to import, and mistakes are rare)

    return next(iter(get_close_matches(wrong, list(known), 1)), "") if isinstance(wrong, str) else ""


def choice_of(wrong: object, known: Iterable[str], *, are: str) -> str:
    """Return what stands behind a wrong name: what may have been meant, and all that are known.

    Args:
        wrong: the name.
        known: all that there are.
        are: what stands before them, as ``it can be``.

    """
    names = list(known)
    meant = f"; did you mean {near!r}?" if (near := near_name(wrong, names)) else ""
    all_of_them = f"{are} {', '.join(names) or 'none'}"
    return f"{meant} {all_of_them[0].upper()}{all_of_them[1:]}" if meant else f"; {all_of_them}"
