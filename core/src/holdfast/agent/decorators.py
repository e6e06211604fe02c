"""How the methods that authors call are written; a call that is written otherwise says so, and shows an example."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.errors import UsageError
from holdfast.model import near_name

if TYPE_CHECKING:
    from collections.abc import Mapping

D = TypeVar("D", bound=Callable[..., Any])


def written_as(example: str) -> Callable[[D], D]:
    """Let a decorator that is written another way than in `example` raise `UsageError`, which shows the example."""

    def check(decorator: D) -> D:
        @wraps(decorator)
        def checked(*args: Any, **kwargs: Any) -> Any:
            given = _arguments(decorator, f"@agent.{decorator.__name__}", example, args, kwargs)
            if callable(given[0]) is example.endswith(")"):
                raise UsageError(f"@agent.{decorator.__name__} is not written like this; write `{example}`")
            return decorator(*args, **kwargs)

        return checked  # pyright: ignore[reportReturnType]  (it takes and returns what the decorator does)

    return check


def called_as(example: str) -> Callable[[D], D]:
    """Let a method that is called with other arguments raise `UsageError`, which shows the example.

    What stands before the first bracket of the example is what the author calls the method.
    """
    verb = example.partition("(")[0].rpartition(" ")[2]

    def check(method: D) -> D:
        @wraps(method)
        def called(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            except TypeError as e:
                # One that was raised inside has a frame of the method; binding arguments again takes too long before.
                if e.__traceback__ is not None and e.__traceback__.tb_next is None:
                    _arguments(method, verb, example, args, kwargs)
                raise

        return called  # pyright: ignore[reportReturnType]  (it takes and returns what the method does)

    return check


def _arguments(
    method: Callable[..., Any], verb: str, example: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Return the arguments that a method is called with, without `self`; raise `UsageError` if it takes others."""
    signature = inspect.signature(method)
    try:
        return signature.bind(*args, **kwargs).args[1:]
    except TypeError as e:
        unknown = next((name for name in kwargs if name not in signature.parameters), None)
        near = near_name(unknown, list(signature.parameters)[1:])
        advice = f"did you mean {near!r}? Write" if near else "write"
        raise UsageError(f"{verb}: {e}; {advice} `{example}`") from None


# Names that there are not


def unknown_name(
    called: str, owner: object, name: str, elsewhere: Mapping[str, type], otherwise: str = ""
) -> AttributeError:
    """Return the error for a name that an object does not have, with what its author may have meant.

    Args:
        called: what the author calls the object, as ``turn``.
        owner: the object.
        name: the name.
        elsewhere: classes that may have it, by how it is written then, with ``{}`` for the name.
        otherwise: the advice if nothing is known that may have been meant.

    """
    if name.startswith("_"):  # Python and libraries look for those
        return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}", name=name)
    written = next((how.format(name) for how, other in elsewhere.items() if name in vars(other)), "")
    near = near_name(name, [known for known in dir(owner) if not known.startswith("_")])
    advice = f"write `{written}`" if written else f"did you mean `{called}.{near}`?" if near else otherwise
    return AttributeError(f"there is no `{called}.{name}`{advice and f'; {advice}'}", name=name)
