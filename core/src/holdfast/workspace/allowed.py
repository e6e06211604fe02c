"""Which directories somebody may choose as a session's roots (H10).

A root is allowed where it is one of these directories or lies in one, once all links are followed. Who is allowed what
is not known here.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.workspace.trusted_path import make_directory, real_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from holdfast.workspace.trusted_path import Owner


log: logging.Logger = logging.getLogger(__name__)


class AllowedDirectories:
    """Directories in which sessions may be opened.

    Somebody who works in them may own what lies around them too. A link that he can have made leads nowhere: the
    directory is then none of his.
    """

    __slots__ = ("_closed", "directories")

    def __init__(self, directories: Iterable[str], *, closed: Iterable[str] = ()) -> None:
        """Allow some directories; in `closed` he may put links, as in his home."""
        self.directories: tuple[str, ...] = tuple(directories)
        self._closed = tuple(closed)

    def first_outside(self, roots: Iterable[str]) -> str | None:
        """Return the first root that is in none of the directories, or None where all are."""
        allowed = self.real().values()
        return next(
            (root for root in roots if not _is_absolute(root) or not _lies_in(os.path.realpath(root), allowed)), None
        )

    def holds(self, directory: int | str) -> bool:
        """Return whether a directory that is open lies in one of them: no link or race can change the answer.

        One that does not exist yet is given by its path, and is opened without following a link later.
        """
        path = directory if isinstance(directory, str) else _path_of(directory)
        return _lies_in(path, self.real().values())

    def real(self) -> dict[str, str]:
        """Return where each directory is, by its name: a path in which nothing is a link."""
        return self._each(lambda directory, closed: real_directory(directory, closed=closed))

    def make(self, names: Collection[str], owner: Owner | None) -> None:
        """Make those of the directories that are missing and are among the names, for their owner."""

        def find(directory: str, closed: Sequence[str]) -> str:
            if directory in names:
                return make_directory(directory, owner, closed=closed)
            return real_directory(directory, closed=closed)

        self._each(find)

    def _each(self, find: Callable[[str, Sequence[str]], str]) -> dict[str, str]:
        found: dict[str, str] = {}
        # Whoever works in one of them may put links there, so the outer ones come first.
        for directory in sorted({*self._closed, *self.directories}, key=len):
            try:
                found[directory] = find(directory, tuple(found.values()))
            except OSError as e:
                log.error("A directory of a principal is not used: %s", e)  # noqa: TRY400  (no trace is needed)
        return {directory: found[directory] for directory in self.directories if directory in found}


def _is_absolute(path: str) -> bool:
    return os.path.isabs(path)  # noqa: PTH117  (a path of another system is not)


def _lies_in(path: str, directories: Iterable[str]) -> bool:
    """Return whether a path without links is one of some others, or lies in one."""
    whole = os.path.join(path, "")  # noqa: PTH118
    return any(whole.startswith(os.path.join(directory, "")) for directory in directories)  # noqa: PTH118


def _path_of(descriptor: int) -> str:
    if sys.platform == "linux":
        with suppress(OSError):
            return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
    elif sys.platform == "darwin":
        import fcntl  # noqa: PLC0415

        with suppress(OSError):
            return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return ""
