"""What a scripted model replies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Say:
    """The model says something, and may call tools.

    Attributes:
        text: what it says.
        calls: tools it calls: pairs of a name and arguments.
        thought: what it thinks before.

    """

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    thought: str = ""
    finish: str | None = None
    """The reason to stop, in the protocol's own word, where the usual one is not meant."""
    then: Literal["end", "break", "hang"] = "end"
    """What follows what was said: ``break`` loses the connection before the end; after ``hang`` nothing ever comes."""
    pace: float = 0.0
    """Seconds between two pieces of a stream."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The provider refuses with a status of HTTP.

    Attributes:
        status: the status, as 429.
        message: what the provider says.
        headers: further headers of the answer, as ``retry-after``.

    """

    status: int
    message: str = "it failed"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Reply: TypeAlias = Say | Fail


def calls(*of: tuple[str, Mapping[str, Any]], text: str = "") -> Say:
    """Return a reply that calls tools.

    Args:
        of: pairs of a name and arguments.
        text: what the model says before.

    Returns:
        The reply.

    """
    return Say(text, of)
