"""What listing and searching return: plain values, and never more of them than asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

Kind: TypeAlias = Literal["file", "directory", "link", "other"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A name in a directory, and what it is.

    Attributes:
        size: how many bytes a file has.

    """

    path: str
    """Relative to cwd where it can be, absolute in other roots; every file tool takes it.

    Always text that can be shown and sent: each byte of a name that is not UTF-8 is written like `\\xe9`.
    `Workspace.absolute` gives the real path."""
    kind: Kind
    """`other` is a pipe, a socket or a device, which no tool reads or writes."""
    size: int
    modified: float
    """Seconds since 1970."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Match:
    """A line that holds what was searched for.

    Attributes:
        path: the file.

    """

    path: str
    line: int
    """The first line is 1."""
    text: str
    """The line without its end; of a long one, the part around the match."""


@dataclass(frozen=True, slots=True)
class Results(Sequence[T], Generic[T]):
    """What was found: a sequence, in order.

    Attributes:
        items: what was found.
        truncated: whether there may be more.

    """

    items: tuple[T, ...]
    truncated: bool = False

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)
