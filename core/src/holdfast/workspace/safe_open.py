"""Opens a path without leaving the roots: not by `..`, not by a link, not by a race (P9).

Owns the choice between the kernel's way (`openat2`, one call for a path of any depth) and ours, one name at a time.
Whoever reads or writes does it through the descriptor that comes from here, never by a path again.

Links are followed as long as they stay in the roots. The kernel refuses absolute ones even inside a root; so whenever
it sees a path leave, our way takes a second look and has the last word. Each name is opened with O_NOFOLLOW relative to
the descriptor before it. A link, or a `..` that a link brought, is never handed to the kernel: it becomes a new list of
names, which is walked again from its root. Whatever is swapped meanwhile, each step starts at a descriptor that was
reached from a root, downwards.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from holdfast.errors import FileRefused, UsageError
from holdfast.workspace import openat2
from holdfast.workspace.roots import DIRECTORY, NOFOLLOW

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from holdfast.workspace.roots import RootedPath, Workspace

T = TypeVar("T")

READ: int = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""To read a file. A pipe with nobody at its other end must not block us."""

LIST: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
"""To read a directory."""

MAX_LINKS = 40
"""As many links as Linux follows."""

# What the kernel may say of a path that our way might manage: it leaves the root, in the kernel's eyes; it is longer
# than the kernel takes in one piece; somebody renames so busily that the kernel cannot tell.
_WALK_INSTEAD = {errno.EXDEV, errno.ENAMETOOLONG, errno.EAGAIN}
_TRIES = 8

# What O_NOFOLLOW says of a link: ENOTDIR beside O_DIRECTORY, ELOOP else; EMLINK on FreeBSD.
_MAYBE_LINK = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}


@dataclass(frozen=True, slots=True)
class SafeOpener:
    """Opens paths of one workspace."""

    workspace: Workspace
    openat2: bool = field(default_factory=openat2.available)
    """Whether to ask the kernel first. Our way alone is as safe, and slower."""

    def __post_init__(self) -> None:
        if sys.platform == "win32":
            raise UsageError("file tools need descriptors of directories, which Windows does not have")

    @contextmanager
    def open(self, path: RootedPath, flags: int) -> Generator[int]:
        """Open what is at a path, to be read."""
        assert sys.platform != "win32"
        fd = self._beneath(path, flags | (os.O_DIRECTORY if path.directory else 0)) if self.openat2 else None
        if fd is None:
            fd = walk_to(self.workspace, path, flags)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def parent(self, path: RootedPath, *, follow: bool = True, make: bool = False) -> Generator[tuple[int, str]]:
        """Open the directory that a path is in, and give the name there.

        With `follow` a link at the end of the path is followed first. With `make` directories on the way are made.
        """
        fd, name = self._open_parent(path, follow=follow, make=make)
        try:
            yield fd, name
        finally:
            os.close(fd)

    def make(self, path: RootedPath) -> None:
        """Make a directory and those it is in, where they are missing."""
        os.close(walk_to(self.workspace, path, DIRECTORY, make=True))

    def _open_parent(self, path: RootedPath, *, follow: bool, make: bool) -> tuple[int, str]:
        if not path.parts:
            raise root_itself(path)
        fd = None
        if self.openat2:
            with suppress(FileNotFoundError):  # the walk makes what is missing, or says so
                fd = self._beneath(path._replace(parts=path.parts[:-1]), DIRECTORY)
        if fd is not None:
            name = path.parts[-1]
            if not (follow and _is_link(fd, name)):
                return fd, name
            os.close(fd)
        return _walk_to_parent(self.workspace, path, follow=follow, make=make)

    def _beneath(self, path: RootedPath, flags: int) -> int | None:
        """Ask the kernel; return None if our way should try."""
        relative = "/".join(path.parts) or "."
        with path.root.open() as root:
            for _ in range(_TRIES):
                try:
                    return openat2.open_beneath(root, relative, flags)
                except OSError as e:
                    if e.errno not in _WALK_INSTEAD:
                        raise
                    if e.errno != errno.EAGAIN:
                        break
        return None


def root_itself(path: RootedPath) -> FileRefused:
    """Return the error which says that a root can be looked into, but not be removed, renamed or written."""
    return FileRefused(path.original, "is a directory of the session itself. Name something inside it.")


def walk_to(workspace: Workspace, path: RootedPath, flags: int, *, make: bool = False) -> int:
    """Open what is at a path, one name at a time. With `make` it is a directory, made where it is missing."""

    def finish(here: int, name: str, how: int) -> int | _Link:
        return _enter(here, name, flags | how, make=make)

    return _walk(workspace, path, finish, make=make)


def _walk_to_parent(workspace: Workspace, path: RootedPath, *, follow: bool, make: bool) -> tuple[int, str]:
    """Open the directory that a path is in; return it with the name there, which was no link if `follow`."""

    def finish(here: int, name: str, _how: int) -> tuple[int, str] | _Link:
        if name == ".":
            raise root_itself(path)
        if name == "..":
            return _Link(name)
        if follow:
            with suppress(OSError):
                return _Link(os.readlink(name, dir_fd=here))
        return os.dup(here), name

    return _walk(workspace, path, finish, make=make)


@dataclass(frozen=True, slots=True)
class _Link:
    """What stands under a name instead of what can be opened: another name for it."""

    target: str


@dataclass(frozen=True, slots=True)
class _Detour:
    """In the directory `reached` there is a link: go to `target` instead, and from there on to `rest`."""

    reached: tuple[str, ...]
    target: str
    rest: tuple[str, ...]


def _walk(workspace: Workspace, path: RootedPath, finish: Callable[[int, str, int], T | _Link], *, make: bool) -> T:
    for _ in range(MAX_LINKS + 1):
        outcome = _descend(path, finish, make=make)
        if not isinstance(outcome, _Detour):
            return outcome
        path = _redirected(workspace, path, outcome)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path.original)


def _descend(path: RootedPath, finish: Callable[[int, str, int], T | _Link], *, make: bool) -> T | _Detour:
    assert sys.platform != "win32"
    with path.root.open() as root:
        here = os.dup(root)
    names = path.parts or (".",)
    for index, name in enumerate(names[:-1]):
        try:
            there = _enter(here, name, DIRECTORY, make=make)
        finally:
            os.close(here)
        if isinstance(there, _Link):
            return _Detour(names[:index], there.target, names[index + 1 :])
        here = there
    try:
        outcome = finish(here, names[-1], os.O_DIRECTORY if path.directory else 0)
    finally:
        os.close(here)
    return _Detour(names[:-1], outcome.target, ()) if isinstance(outcome, _Link) else outcome


def _enter(here: int, name: str, flags: int, *, make: bool) -> int | _Link:
    """Open one name in a directory, unless it is a link."""
    if name == "..":
        return _Link(name)
    try:
        return os.open(name, flags | NOFOLLOW, dir_fd=here)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=here)
        return _enter(here, name, flags, make=False)
    except OSError as e:
        if e.errno not in _MAYBE_LINK:
            raise
        with suppress(OSError):
            return _Link(os.readlink(name, dir_fd=here))
        if e.errno == errno.ENOTDIR:
            mode = os.lstat(name, dir_fd=here).st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
                raise
        return _Link(name)  # it was a link, then it was none, and now who knows: look again


def _redirected(workspace: Workspace, path: RootedPath, detour: _Detour) -> RootedPath:
    """Write a detour as a path. Only `..` at its start is worked out here: what it climbs was reached by no link."""
    if detour.target.startswith("/"):
        return workspace.follow(path, detour.target, detour.rest)
    directory = path.directory or (not detour.rest and detour.target.endswith(("/", "/.")))
    reached = list(detour.reached)
    names = [name for name in detour.target.split("/") if name not in {"", "."}]
    while names and names[0] == "..":
        if not reached:
            return workspace.follow(path, "/".join((path.root.real, *names)), detour.rest)
        reached.pop()
        del names[0]
    return path._replace(parts=(*reached, *names, *detour.rest), directory=directory)


def _is_link(directory: int, name: str) -> bool:
    try:
        os.readlink(name, dir_fd=directory)
    except OSError:
        return False
    return True
