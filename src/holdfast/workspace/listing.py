"""What is there: one entry, the entries of a directory, and every file beneath a directory that a pattern fits.

Owns the sweep over a tree, which `glob` and `search` share. A sweep follows no link to a directory, so it ends; opens
each directory anew from its root, so it holds one descriptor however deep it is; and looks at a bounded number of
entries. What a pattern means is the business of `patterns`.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holdfast.errors import FileRefused, OutsideRoots
from holdfast.workspace.opening import LIST
from holdfast.workspace.results import Entry, Results
from holdfast.workspace.roots import Place
from holdfast.workspace.walk import DIRECTORY

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Iterator

    from holdfast.workspace.opening import Opener
    from holdfast.workspace.patterns import Pattern
    from holdfast.workspace.results import Kind
    from holdfast.workspace.roots import Root

MAX_SWEEP_ENTRIES = 500_000
"""A sweep that has looked at as many names is over."""


def entry(opener: Opener, place: Place) -> Entry:
    """Say what is at a place; of a link, what it leads to."""
    path = opener.workspace.show(place.root, place.parts)
    if place.directory or not place.parts:
        with opener.open(place, DIRECTORY) as fd:
            return _entry(path, os.fstat(fd))
    try:
        with opener.parent(place) as (directory, name):
            return _entry(path, os.lstat(name, dir_fd=directory))
    except FileRefused as e:
        if isinstance(e, OutsideRoots):
            raise
        return entry(opener, replace(place, directory=True))  # a link to a root, which has no parent in it


def list_directory(opener: Opener, place: Place, limit: int) -> Results[Entry]:
    """List a directory by name; of links, themselves."""
    entries: list[Entry] = []
    truncated = False
    with opener.open(place, LIST) as fd, os.scandir(fd) as scan:
        for item in scan:
            if len(entries) == limit:
                truncated = True
                break
            path = opener.workspace.show(place.root, (*place.parts, item.name))
            with suppress(FileNotFoundError):  # gone since
                entries.append(_entry(path, item.stat(follow_symlinks=False)))
    return Results(tuple(sorted(entries, key=lambda e: e.path)), truncated)


def glob(
    opener: Opener,
    base: Place,
    pattern: Pattern,
    limit: int,
    skip: Collection[str],
    stopped: threading.Event | None = None,
) -> Results[str]:
    """Find what a pattern fits beneath a directory."""
    sweep = Sweep(opener, base, pattern, skip, stopped)
    found: list[str] = []
    for place in sweep:
        if len(found) == limit:
            return Results(tuple(found), truncated=True)
        found.append(place.asked)
    return Results(tuple(found), sweep.truncated)


@dataclass(slots=True)
class Sweep:
    """Goes through a tree in order of names and gives the places that a pattern fits."""

    opener: Opener
    base: Place
    pattern: Pattern
    skip: Collection[str]
    """Names of directories to pass over, unless the pattern itself says them."""
    stopped: threading.Event | None = None
    links: bool = True
    """Whether a link to a file is a file."""
    truncated: bool = field(default=False, init=False)
    """Whether it ended before it had seen everything."""
    _seen: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Place]:
        pending = [(self.base.parts, self.pattern.start)]
        while pending and not self.truncated:
            parts, state = pending.pop()
            below: list[tuple[tuple[str, ...], frozenset[int]]] = []
            for name, kind in self._names(parts):
                after = self.pattern.step(state, name)
                place = self._place((*parts, name))
                if kind == "directory":
                    if name not in self.skip or self.pattern.names(name):
                        below.append((place.parts, after))
                        if self.pattern.directories and self.pattern.fits(after):
                            yield place
                elif self.pattern.fits(after) and self._counts(place, kind):
                    yield place
            pending += [item for item in reversed(below) if self.pattern.hopeful(item[1])]

    def _names(self, parts: tuple[str, ...]) -> list[tuple[str, Kind]]:
        names: list[tuple[str, Kind]] = []
        try:
            with self.opener.open(self._place(parts), LIST) as fd, os.scandir(fd) as scan:
                for item in scan:
                    self._seen += 1
                    if self._seen > MAX_SWEEP_ENTRIES or (self.stopped and self.stopped.is_set()):
                        self.truncated = True
                        break
                    names.append((item.name, _kind_of(item)))
        except (OSError, FileRefused):
            if parts == self.base.parts:
                raise
            # Beneath it, a directory that is closed to us or gone by now is passed over.
        return sorted(names)

    def _place(self, parts: tuple[str, ...]) -> Place:
        root: Root = self.base.root
        return Place(root, parts, self.opener.workspace.show(root, parts))

    def _counts(self, place: Place, kind: Kind) -> bool:
        """Whether something that is no directory is what was looked for. A link is what it leads to in the roots."""
        if kind == "link" and self.links:
            try:
                kind = entry(self.opener, place).kind
            except (OSError, FileRefused):
                return False
        return kind == ("directory" if self.pattern.directories else "file")


def _entry(path: str, info: os.stat_result) -> Entry:
    return Entry(path, _kind(info.st_mode), info.st_size, info.st_mtime)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def _kind_of(item: os.DirEntry[str]) -> Kind:
    if item.is_symlink():
        return "link"
    if item.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if item.is_file(follow_symlinks=False) else "other"
