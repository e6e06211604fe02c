"""Finds and makes directories whose names may lead through places that somebody else can change (H10, P12).

A server that runs as root makes directories for principals, and a principal's processes may own what lies on the way.
So a path is walked one name at a time, from a descriptor to the next, and a link counts only if nobody but root and we
ourselves can have made it. What was found is named by a path without links. Whoever uses that path follows none.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.workspace.roots import DIRECTORY, NOFOLLOW

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import TypeAlias

    RunAs: TypeAlias = Callable[[Callable[[], None]], None]

MAX_LINKS = 40


class Owner(NamedTuple):
    """A user of the system that directories are made for."""

    uid: int
    gid: int
    run: RunAs
    """Runs something that touches files, as this user."""


class Untrusted(PermissionError):
    """A path leads through a link, or to a directory, that somebody else may have put there."""


def real_directory(path: str, *, closed: Collection[str] = ()) -> str:
    """Return where a directory is, by a path without links; names that are not there yet stand at its end.

    Args:
        path: an absolute path.
        closed: directories, by such paths, in which no link is followed, whoever made it.

    Raises:
        Untrusted: it leads through a link that somebody else may have made.

    """
    if sys.platform == "win32":
        return os.path.realpath(path)
    walk = _Walk(path, closed)
    try:
        while walk.rest:
            if not walk.step():
                return walk.name(*walk.rest)
        return walk.name()
    finally:
        walk.close()


def make_directory(path: str, owner: Owner | None = None, *, closed: Collection[str] = ()) -> str:
    """Make a directory for somebody, and those it is in, if they are missing; return where it is, without links.

    In a place that only root and we can change it is made and then given to its owner. Anywhere else the owner makes
    it: what we give away there might have been put in its place.

    Args:
        path: an absolute path.
        owner: whose the directory is; ours if omitted. Directories on the way are ours.
        closed: directories, by paths without links, in which no link is followed, whoever made it.

    Raises:
        Untrusted: it leads through a link that somebody else may have made, or is somebody else's directory.

    """
    if sys.platform == "win32":
        Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.path.realpath(path)
    walk = _Walk(path, closed)
    try:
        while walk.rest:
            if not walk.step():
                _make(walk, owner)
            elif not walk.rest:
                _take_over(walk, owner)
        return walk.name()
    finally:
        walk.close()


class _Walk:
    """A walk along a path: the directory that is open, how it was reached, and the names that are still to come."""

    def __init__(self, path: str, closed: Collection[str]) -> None:
        if not os.path.isabs(path) or "\0" in path:  # noqa: PTH117  (pathlib is slow)
            raise Untrusted(errno.EINVAL, "This is no absolute path", path)
        self.path = path
        self.rest = _names(path)
        self.here = os.open("/", DIRECTORY | NOFOLLOW)
        self.parent_is_safe = True
        """Whether nobody else can change what stands in the directory before the one that is open."""
        self._reached: list[str] = []
        self._closed = {os.path.join(directory, "") for directory in closed}  # noqa: PTH118
        self._links = 0

    def step(self) -> bool:
        """Go to the next name; return False if nothing is there."""
        name = self.rest[0]
        if name == "..":
            self._restart(self._reached[:-1], self.rest[1:])
            return True
        try:
            there = os.open(name, DIRECTORY | NOFOLLOW, dir_fd=self.here)
        except FileNotFoundError:
            return False
        except OSError as e:
            self._follow(name, e)
            return True
        self.parent_is_safe = self.is_safe()
        os.close(self.here)
        self.here = there
        self._reached.append(name)
        del self.rest[0]
        return True

    def is_safe(self, status: os.stat_result | None = None) -> bool:
        """Return whether nobody but root and us can change what stands in the directory that is open.

        With the `status` of something in it: whether nobody else can have put that there, as into /tmp.
        """
        assert sys.platform != "win32"
        found = os.fstat(self.here)
        if not _is_ours(found):
            return False
        others = stat.S_IWOTH if os.geteuid() != 0 and found.st_gid == os.getegid() else stat.S_IWOTH | stat.S_IWGRP
        if not found.st_mode & others:
            return True
        return status is not None and bool(found.st_mode & stat.S_ISVTX) and _is_ours(status)

    def name(self, *more: str) -> str:
        """Return the path of the directory that is open, with some names behind it; there is no link in it."""
        return "/" + "/".join((*self._reached, *more))

    def untrusted(self, why: str) -> Untrusted:
        """Return the error which says where the path leads through what it must not."""
        return Untrusted(errno.EPERM, why, self.name(*self.rest[:1]))

    def close(self) -> None:
        """Close what is open."""
        os.close(self.here)

    def _follow(self, name: str, error: OSError) -> None:
        try:
            target = os.readlink(name, dir_fd=self.here)
        except OSError:
            raise error from None
        self._links += 1
        if self._links > MAX_LINKS:
            raise error
        reached = os.path.join(self.name(), "")  # noqa: PTH118
        is_closed = any(reached.startswith(directory) for directory in self._closed)
        if is_closed or not self.is_safe(os.lstat(name, dir_fd=self.here)):
            raise self.untrusted("This is a link, and somebody else may have made it")
        reached_before = [] if target.startswith("/") else self._reached
        self._restart([], [*reached_before, *_names(target), *self.rest[1:]])

    def _restart(self, reached: list[str], rest: list[str]) -> None:
        """Go on at the top: every name is looked at again."""
        os.close(self.here)
        self.here = os.open("/", DIRECTORY | NOFOLLOW)
        self.parent_is_safe = True
        self._reached = []
        self.rest = [*reached, *rest]


def _make(walk: _Walk, owner: Owner | None) -> None:
    """Make the directory that comes next, and the owner's if it is the last; who else made it meanwhile has made it."""
    assert sys.platform != "win32"
    name, is_last, here = walk.rest[0], len(walk.rest) == 1, walk.here
    mode = 0o700 if is_last else 0o755
    if owner is None or walk.is_safe():
        with suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=here)
    else:

        def make() -> None:
            with suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=here)

        owner.run(make)


def _take_over(walk: _Walk, owner: Owner | None) -> None:
    """See to it that the directory that is open is its owner's; raise `Untrusted` if it is somebody else's."""
    assert sys.platform != "win32"
    found = os.fstat(walk.here)
    if owner is None or found.st_uid == owner.uid:
        return
    if not walk.parent_is_safe and not _is_ours(found):
        raise walk.untrusted("This directory belongs to somebody else")
    if walk.parent_is_safe and _is_ours(found):
        _give(walk, owner)


def _give(walk: _Walk, owner: Owner) -> None:
    """Give our directory to its owner if nothing is in it: it was made for him, by us or by one of us that died."""
    assert sys.platform != "win32"
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | NOFOLLOW, dir_fd=walk.here)
    try:
        if not os.listdir(fd):  # noqa: PTH208  (a descriptor is no path)
            os.fchown(fd, owner.uid, owner.gid)
    finally:
        os.close(fd)


def _is_ours(status: os.stat_result) -> bool:
    assert sys.platform != "win32"
    return status.st_uid in {0, os.geteuid()}


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in {"", "."}]
