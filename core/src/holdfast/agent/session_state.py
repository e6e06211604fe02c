"""`SessionDict`: `session.state`, which refuses what cannot be stored where it is put in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from holdfast.model import check_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class SessionDict(dict[str, Any]):
    """A dict of JSON values. What is no such value raises `UsageError` in the line that puts it in.

    What is changed deeper inside, as by ``state["seen"].append(…)``, is looked at when the turn ends.
    """

    __slots__ = ()

    def __setitem__(self, key: str, value: Any) -> None:
        check_json("session.state", {key: value})
        super().__setitem__(key, value)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of a key; put the default there first if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *other: Any, **more: Any) -> None:
        """Put in all of another mapping, or nothing of it."""
        new: dict[str, Any] = dict(*other, **more)
        check_json("session.state", new)
        super().update(new)

    def __ior__(self, other: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> Self:  # type: ignore[override]
        self.update(other)
        return self
