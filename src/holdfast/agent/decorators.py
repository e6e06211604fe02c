"""How the decorators of an `Agent` are written: with brackets or without, and what stands in them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from holdfast.errors import UsageError

D = TypeVar("D", bound=Callable[..., Any])


def written_as(example: str) -> Callable[[D], D]:
    """Let a decorator that is written another way than in `example` raise `UsageError`, which shows the example."""

    def check(decorator: D) -> D:
        @wraps(decorator)
        def checked(*args: Any, **kwargs: Any) -> Any:
            try:
                given = inspect.signature(decorator).bind(*args, **kwargs).args[1:]
            except TypeError as e:
                raise UsageError(f"@agent.{decorator.__name__}: {e}; write `{example}`") from None
            if callable(given[0]) is example.endswith(")"):
                raise UsageError(f"@agent.{decorator.__name__} is not written like this; write `{example}`")
            return decorator(*args, **kwargs)

        return checked  # pyright: ignore[reportReturnType]  (it takes and returns what the decorator does)

    return check
