"""An `await` or an `async` that was forgotten is told; nothing else is done in its place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

F = TypeVar("F", bound=Callable[..., Coroutine[Any, Any, Any]])
T = TypeVar("T")


def awaited(function: F) -> F:
    """Let what an async function returns raise `UsageError` where it is taken for its answer (P13).

    A coroutine is always true: ``if turn.allow("May I?"):`` would do it, whatever the user says.
    """

    @wraps(function)
    def ask(*args: Any, **kwargs: Any) -> Any:
        return NotAwaited(function(*args, **kwargs), function.__name__)

    return ask  # pyright: ignore[reportReturnType]  (it is awaited as the function's own is)


class NotAwaited(Coroutine[Any, Any, T]):
    """A coroutine that is neither true nor false. Tasks are made of it as of any other."""

    __slots__ = ("_coroutine", "_name")

    def __init__(self, coroutine: Coroutine[Any, Any, T], name: str) -> None:
        self._coroutine = coroutine
        self._name = name

    def __bool__(self) -> bool:
        # Python 3.12 asks whether a task has a coroutine when it shows the task.
        asking = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        if asking.f_globals.get("__name__", "").startswith("asyncio."):
            return True
        self._coroutine.close()
        raise UsageError(
            f"write `await` before `….{self._name}(…)`: without it nobody is asked, and there is no answer"
        )

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def send(self, value: Any, /) -> Any:
        """Go on, as coroutines do."""
        return self._coroutine.send(value)

    def throw(self, kind: Any, value: BaseException | object = None, trace: TracebackType | None = None, /) -> Any:
        """Raise an exception where it waits, as coroutines do."""
        if value is None and trace is None:
            return self._coroutine.throw(kind)
        return self._coroutine.throw(kind, value, trace)

    def close(self) -> None:
        """End it, as coroutines do."""
        self._coroutine.close()


def needs_async_with(self: object, *_: object) -> NoReturn:
    """Raise `UsageError`: the ``__enter__`` and ``__exit__`` of what is entered with ``async with``."""
    raise UsageError(f"a {type(self).__name__} is opened with `async with`; write `async` before the `with`")


def is_not_awaited(self: object) -> NoReturn:
    """Raise `UsageError`: the ``__await__`` of what is entered with ``async with``."""
    raise UsageError(
        f"a {type(self).__name__} is opened with `async with`, and not awaited; write `async with … as …:`"
    )
