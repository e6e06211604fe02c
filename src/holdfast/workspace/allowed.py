"""Which directories somebody may choose as a session's roots (H10).

A root is allowed where it is one of these directories or lies in one, once all links are followed. Who is allowed what
is not known here.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class AllowedDirectories:
    """Directories in which sessions may be opened."""

    __slots__ = ("directories",)

    def __init__(self, directories: Iterable[str]) -> None:
        self.directories: tuple[str, ...] = tuple(directories)

    def first_outside(self, roots: Iterable[str]) -> str | None:
        """Return the first root that is in none of the directories, or None where all are."""
        allowed = self._real()
        return next((root for root in roots if not _is_inside(root, allowed)), None)

    def holds(self, descriptor: int) -> bool:
        """Return whether a directory that is open lies in one of them: no link or race can change the answer."""
        return _is_inside(_path_of(descriptor), self._real())

    def _real(self) -> list[str]:
        return [os.path.realpath(directory) for directory in self.directories]


def _is_inside(path: str, allowed: Iterable[str]) -> bool:
    if not os.path.isabs(path):  # noqa: PTH117  (a path of another system)
        return False
    real = os.path.join(os.path.realpath(path), "")  # noqa: PTH118
    return any(real.startswith(os.path.join(directory, "")) for directory in allowed)  # noqa: PTH118


def _path_of(descriptor: int) -> str:
    if sys.platform == "linux":
        with suppress(OSError):
            return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
    elif sys.platform == "darwin":
        import fcntl  # noqa: PLC0415

        with suppress(OSError):
            return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return ""
