"""Opening a path one component at a time, so that no link is ever followed by anyone but us.

Owns what `openat2` cannot do or where it is missing: absolute links, links from one root into another, directories made
on the way, other systems. Each name is opened with O_NOFOLLOW relative to the descriptor before it. A link, or a `..`
that a link brought, is never handed to the kernel: it becomes a new list of names, which is walked again from its
root. Whatever is swapped meanwhile, each step starts at a descriptor that was reached from a root, downwards.
It does not know what is opened or why.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from holdfast.errors import FileRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.workspace.roots import Place, Root, Workspace

T = TypeVar("T")

MAX_HOPS = 40
"""As many links as Linux follows."""

# A directory that is only passed through need not be readable, where the system can say so.
DIRECTORY: int = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

# What O_NOFOLLOW says of a link: ENOTDIR beside O_DIRECTORY, ELOOP else; EMLINK on FreeBSD.
_MAYBE_LINK = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}


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


def open_place(workspace: Workspace, place: Place, flags: int, *, make: bool = False) -> int:
    """Open what is at a place; with `make`, it and the way to it are directories, made where they are missing."""

    def finish(here: int, name: str, how: int) -> int | _Link:
        return _enter(here, name, flags | how, make=make)

    return _walk(workspace, place, finish, make=make)


def open_parent(workspace: Workspace, place: Place, *, follow: bool, make: bool) -> tuple[int, str]:
    """Open the directory that holds what is at a place, and say its name there.

    With `follow` a link at the end of the path has been followed: the name was no link a moment ago.
    """

    def finish(here: int, name: str, _how: int) -> tuple[int, str] | _Link:
        if name == ".":
            raise root_itself(place)
        if name == "..":
            return _Link(name)
        if follow:
            with suppress(OSError):
                return _Link(os.readlink(name, dir_fd=here))
        return os.dup(here), name

    return _walk(workspace, place, finish, make=make)


def open_root(root: Root) -> int:
    """Open a root where it was when the session was opened, through no link."""
    here = os.open("/", DIRECTORY | NOFOLLOW)
    for name in filter(None, root.real.split("/")):
        try:
            there = os.open(name, DIRECTORY | NOFOLLOW, dir_fd=here)
        finally:
            os.close(here)
        here = there
    return here


def lost_root(root: Root, error: OSError) -> Exception:
    """Say why a root cannot be opened, and what to do about it."""
    if error.errno == errno.ENOENT:
        why = "This directory of the session is gone; make it again, or open a session elsewhere"
        return FileNotFoundError(errno.ENOENT, why, root.given)
    if error.errno in _MAYBE_LINK:
        why = "was replaced by a link or a file since the session was opened. Load the session again to use it."
        return FileRefused(root.given, why)
    return error


def root_itself(place: Place) -> FileRefused:
    """Say that a root can be looked into, but not be removed, renamed or written."""
    return FileRefused(place.asked, "is a directory of the session itself. Name something inside it.")


def _walk(workspace: Workspace, place: Place, finish: Callable[[int, str, int], T | _Link], *, make: bool) -> T:
    for _ in range(MAX_HOPS + 1):
        outcome = _descend(place, finish, make=make)
        if not isinstance(outcome, _Detour):
            return outcome
        place = _take(workspace, place, outcome)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), place.asked)


def _descend(place: Place, finish: Callable[[int, str, int], T | _Link], *, make: bool) -> T | _Detour:
    assert sys.platform != "win32"  # see `Opener`
    try:
        here = open_root(place.root)
    except OSError as e:
        raise lost_root(place.root, e) from e
    names = place.parts or (".",)
    for index, name in enumerate(names[:-1]):
        try:
            there = _enter(here, name, DIRECTORY, make=make)
        finally:
            os.close(here)
        if isinstance(there, _Link):
            return _Detour(names[:index], there.target, names[index + 1 :])
        here = there
    try:
        outcome = finish(here, names[-1], os.O_DIRECTORY if place.directory else 0)
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


def _take(workspace: Workspace, place: Place, detour: _Detour) -> Place:
    """Write a detour as a place. Only `..` at its start is worked out here: what it climbs was reached by no link."""
    if detour.target.startswith("/"):
        return workspace.follow(place, detour.target, detour.rest)
    directory = place.directory or (not detour.rest and detour.target.endswith(("/", "/.")))
    reached = list(detour.reached)
    names = [name for name in detour.target.split("/") if name not in {"", "."}]
    while names and names[0] == "..":
        if not reached:
            return workspace.follow(place, "/".join((place.root.real, *names)), detour.rest)
        reached.pop()
        del names[0]
    return replace(place, parts=(*reached, *names, *detour.rest), directory=directory)
