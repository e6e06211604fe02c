"""Opening what is at a place without leaving the roots: not by `..`, not by a link, not by a race (P9).

Owns the choice between the kernel's way (`openat2`, two calls for a path of any depth) and ours (`walk`). Whoever reads
or writes does it through the descriptor that comes from here, never by a path again. It does not know what for.

Links are followed as long as they stay in the root set. The kernel refuses absolute ones even inside a root; so
whenever it sees a path leave, the walk takes a second look and has the last word: it follows an absolute link, or one
that climbs out of its root, if its text names something in a root of the set, and starts again from that root.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holdfast.errors import UsageError
from holdfast.workspace import openat2, walk

if TYPE_CHECKING:
    from collections.abc import Generator

    from holdfast.workspace.roots import Place, Root, Workspace

READ: int = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""To read a file. A pipe with nobody at its other end must not hold us up."""

LIST: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
"""To read a directory."""

# What the kernel may say of a path that the walk might manage: it leaves the root, in the kernel's eyes; it is longer
# than the kernel takes in one piece; somebody renames so busily that the kernel cannot tell.
_WALK_INSTEAD = {errno.EXDEV, errno.ENAMETOOLONG, errno.EAGAIN}
_TRIES = 8


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens places of one workspace."""

    workspace: Workspace
    openat2: bool = field(default_factory=openat2.available)
    """Whether to ask the kernel first. The walk alone is as safe, and slower."""

    def __post_init__(self) -> None:
        if sys.platform == "win32":
            raise UsageError("file tools need descriptors of directories, which Windows does not have")

    @contextmanager
    def open(self, place: Place, flags: int) -> Generator[int]:
        """Open what is at a place, to be read."""
        assert sys.platform != "win32"
        fd = self._beneath(place, flags | (os.O_DIRECTORY if place.directory else 0)) if self.openat2 else None
        if fd is None:
            fd = walk.open_place(self.workspace, place, flags)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def parent(self, place: Place, *, follow: bool = True, make: bool = False) -> Generator[tuple[int, str]]:
        """Open the directory a place is in, and say its name there; see `walk.open_parent`."""
        fd, name = self._open_parent(place, follow=follow, make=make)
        try:
            yield fd, name
        finally:
            os.close(fd)

    def make(self, place: Place) -> None:
        """Make a directory and those it is in, where they are missing."""
        os.close(walk.open_place(self.workspace, place, walk.DIRECTORY, make=True))

    def _open_parent(self, place: Place, *, follow: bool, make: bool) -> tuple[int, str]:
        if not place.parts:
            raise walk.root_itself(place)
        fd = None
        if self.openat2:
            with suppress(FileNotFoundError):  # the walk makes what is missing, or says so
                fd = self._beneath(replace(place, parts=place.parts[:-1]), walk.DIRECTORY)
        if fd is not None:
            name = place.parts[-1]
            if not (follow and _is_link(fd, name)):
                return fd, name
            os.close(fd)
        return walk.open_parent(self.workspace, place, follow=follow, make=make)

    def _beneath(self, place: Place, flags: int) -> int | None:
        """Ask the kernel; `None` if the walk should try."""
        root = _open_root(place.root)
        path = "/".join(place.parts) or "."
        try:
            for _ in range(_TRIES):
                try:
                    return openat2.open_beneath(root, path, flags)
                except OSError as e:
                    if e.errno not in _WALK_INSTEAD:
                        raise
                    if e.errno != errno.EAGAIN:
                        break
            return None
        finally:
            os.close(root)


def _open_root(root: Root) -> int:
    try:
        return openat2.open_without_links(root.real, walk.DIRECTORY)
    except OSError as e:
        if e.errno == errno.ENAMETOOLONG:
            return walk.open_root(root)
        raise walk.lost_root(root, e) from e


def _is_link(directory: int, name: str) -> bool:
    try:
        os.readlink(name, dir_fd=directory)
    except OSError:
        return False
    return True
