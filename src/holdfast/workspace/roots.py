"""Which names lie inside a session's directories: the half of P9 that needs no descriptor.

Owns the root set `[cwd, *additionalDirectories]` and the arithmetic of paths in it. `..` in a path is taken by its
letters (`a/../b` is `b`, whatever `a` is), so a name is inside or outside before anything is touched. It opens nothing:
that a name stays inside once links are followed is the business of `opening`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from holdfast.errors import FileRefused, OutsideRoots, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

AnyPath: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Root:
    """One directory of the set: how the client named it, and where it really was when the session was opened."""

    given: str
    real: str


@dataclass(frozen=True, slots=True)
class Place:
    """A name inside a root. `parts` holds no `.` and no empty name, and no `..` until a link brings one."""

    root: Root
    parts: tuple[str, ...]
    asked: str
    """What the caller wrote, for messages."""
    directory: bool = False
    """Whether it was written as a directory, with a slash at its end."""


@dataclass(frozen=True, slots=True, init=False)
class Workspace:
    """The directories a session may touch; the first is `cwd`, against which relative paths are read.

    Making one looks at the disk once, to learn where each root really is. From then on a root is that directory: one
    that is deleted and made again is the same root, one that is replaced by a link is refused.
    """

    cwd: Path
    roots: tuple[Path, ...]
    _prefixes: tuple[tuple[str, Root], ...] = field(repr=False, compare=False)

    def __init__(self, cwd: AnyPath, additional: Iterable[AnyPath] = ()) -> None:
        roots = tuple(dict.fromkeys(_root(path) for path in (cwd, *additional)))  # B3: order kept, duplicates dropped
        names = [(root.given, root) for root in roots] + [(root.real, root) for root in roots]
        prefixes = {f"{name.rstrip('/')}/": root for name, root in reversed(names)}
        object.__setattr__(self, "cwd", Path(roots[0].given))
        object.__setattr__(self, "roots", tuple(Path(root.given) for root in roots))
        # The longest name first: of nested roots the inner one answers for what is in it.
        object.__setattr__(self, "_prefixes", tuple(sorted(prefixes.items(), key=lambda pair: -len(pair[0]))))

    def resolve(self, path: AnyPath) -> Path:
        """Give the absolute form of a path inside the roots; refuse any other. Links are not looked at."""
        place = self.locate(path)
        return Path(place.root.given, *place.parts)

    def locate(self, path: AnyPath) -> Place:
        """Find the root that a path is in."""
        asked = _text(path)
        absolute = _normal(asked if os.path.isabs(asked) else f"{self.cwd}/{asked}")  # noqa: PTH117  (pathlib is slow)
        found = self.find(absolute)
        if found is None:
            raise self.outside(asked, "is outside")
        # A name that ends in these can only be a directory's.
        return Place(*found, asked, asked.rpartition("/")[2] in {"", ".", ".."})

    def find(self, absolute: str) -> tuple[Root, tuple[str, ...]] | None:
        """Find the innermost root of an absolute, normal path, and its parts there."""
        whole = f"{absolute}/"
        for prefix, root in self._prefixes:
            if whole.startswith(prefix):
                return root, tuple(absolute[len(prefix) :].split("/")) if len(absolute) > len(prefix) else ()
        return None

    def follow(self, place: Place, link: str, rest: tuple[str, ...]) -> Place:
        """Find the place that a link names whose root is not that of the place it was met at; see `opening`."""
        names = [name for name in (*link.split("/"), *rest) if name not in {"", "."}]
        reached: list[str] = []
        found = None
        while names:
            if names[0] == ".." and found is not None and found[1]:
                break  # what stands before it may be a link: where it leads is for the walk to find out
            if (name := names.pop(0)) == "..":
                del reached[-1:]
            else:
                reached.append(name)
            found = self.find(f"/{'/'.join(reached)}")
        if found is None:
            raise self.outside(place.asked, f"leads, through a link to {link!r}, outside")
        return Place(found[0], (*found[1], *names), place.asked, place.directory)

    def show(self, root: Root, parts: tuple[str, ...]) -> str:
        """Write a place so that it can be given back to `locate`: short in cwd, absolute elsewhere."""
        if root.given == str(self.cwd):
            return "/".join(parts) or "."
        return str(Path(root.given, *parts))

    def outside(self, asked: str, how: str) -> OutsideRoots:
        """Say that a path is not in the set, and what would be."""
        roots = ", ".join(str(root) for root in self.roots)
        return OutsideRoots(
            asked,
            f"{how} the session's directories ({roots}). Use a path inside one of them,"
            " or have its directory added to the session.",
        )


def _root(path: AnyPath) -> Root:
    name = os.fspath(path)
    if not isinstance(name, str) or not os.path.isabs(name) or "\0" in name:  # noqa: PTH117  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"a session's directory must be an absolute path, not {name!r}")
    real = _normal(os.path.realpath(name))
    return Root(real if ".." in name.split("/") else _normal(name), real)


def _text(path: AnyPath) -> str:
    name = os.fspath(path)
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"a path is text, not {type(name).__name__}: decode it with os.fsdecode first")
    if not name:
        raise FileRefused(name, "is empty. Use '.' for the session's working directory.")
    if "\0" in name:
        raise FileRefused(name, "holds a NUL character, which no file name can. Leave it out.")
    if name.startswith("~") and name[1:2] in {"", "/"}:
        raise FileRefused(name, "starts with '~', which is not expanded here. Write the directory out.")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        raise FileRefused(name, "holds a character that no file name can. Leave it out.") from None
    return name


def _normal(absolute: str) -> str:
    path = os.path.normpath(absolute)
    return path.replace(os.sep, "/") if sys.platform == "win32" else f"/{path.lstrip('/')}"
