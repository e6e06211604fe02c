"""Lists files: one entry, the entries of a directory, and every file beneath a directory that matches a pattern.

Owns the scan of a tree, which `glob` and `search` share. A scan follows no link to a directory, so it ends; opens each
directory anew from its root, so it holds few descriptors however deep it is; and looks at a bounded number of entries.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.errors import FileRefused, OutsideRoots, RootReplaced
from holdfast.workspace.results import Entry, Results
from holdfast.workspace.roots import DIRECTORY, RootedPath, escaped
from holdfast.workspace.safe_open import LIST

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Iterator

    from holdfast.workspace.glob_pattern import GlobPattern
    from holdfast.workspace.results import Kind
    from holdfast.workspace.safe_open import SafeOpener

MAX_SCANNED = 500_000
"""A scan ends when it has looked at so many names."""


def entry(opener: SafeOpener, path: RootedPath) -> Entry:
    """Return what is at a path; of a link, what it leads to."""
    shown = opener.workspace.show(path.root, path.parts)
    if path.directory or not path.parts:
        with opener.open(path, DIRECTORY) as fd:
            return _entry(shown, os.fstat(fd))
    try:
        with opener.parent(path) as (directory, name):
            return _entry(shown, os.lstat(name, dir_fd=directory))
    except FileRefused as e:
        if isinstance(e, OutsideRoots | RootReplaced):
            raise
        return entry(opener, path._replace(directory=True))  # a link to a root, which has no parent in it


def list_directory(opener: SafeOpener, path: RootedPath, limit: int) -> Results[Entry]:
    """Return the entries of a directory by name; of links, themselves."""
    entries: list[Entry] = []
    truncated = False
    with opener.open(path, LIST) as fd, os.scandir(fd) as found:
        for item in found:
            if len(entries) == limit:
                truncated = True
                break
            shown = opener.workspace.show(path.root, (*path.parts, item.name))
            with suppress(FileNotFoundError):  # gone since
                entries.append(_entry(shown, item.stat(follow_symlinks=False)))
    return Results(tuple(sorted(entries, key=lambda entry: entry.path)), truncated)


def glob(
    opener: SafeOpener,
    base: RootedPath,
    pattern: GlobPattern,
    limit: int,
    skip: Collection[str],
    stopped: threading.Event | None = None,
) -> Results[str]:
    """Return the paths beneath a directory that match a pattern."""
    scan = TreeScan(opener, base, pattern, skip, stopped)
    found: list[str] = []
    for path in scan:
        if len(found) == limit:
            return Results(tuple(found), truncated=True)
        found.append(path.original)
    return Results(tuple(found), scan.truncated)


@dataclass(slots=True)
class TreeScan:
    """Goes through a tree in order of names and yields the paths that match a pattern."""

    opener: SafeOpener
    base: RootedPath
    pattern: GlobPattern
    skip: Collection[str]
    """Names of directories that are skipped, unless the pattern itself names them."""
    stopped: threading.Event | None = None
    links: bool = True
    """Whether a link to a file is a file."""
    truncated: bool = field(default=False, init=False)
    """Whether it ended before it had seen everything."""
    _seen: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[RootedPath]:
        pending = [(self.base.parts, self.pattern.start)]
        while pending and not self.truncated:
            parts, state = pending.pop()
            below: list[tuple[tuple[str, ...], frozenset[int]]] = []
            for name, kind in self._names(parts):
                after = self.pattern.step(state, escaped(name))
                path = self._path((*parts, name))
                if kind == "directory":
                    if name not in self.skip or self.pattern.names(name):
                        below.append((path.parts, after))
                        if self.pattern.directories and self.pattern.matches(after):
                            yield path
                elif self.pattern.matches(after) and self._counts(path, kind):
                    yield path
            pending += [item for item in reversed(below) if self.pattern.can_match_below(item[1])]

    def _names(self, parts: tuple[str, ...]) -> list[tuple[str, Kind]]:
        names: list[tuple[str, Kind]] = []
        try:
            with self.opener.open(self._path(parts), LIST) as fd, os.scandir(fd) as found:
                for item in found:
                    self._seen += 1
                    if self._seen > MAX_SCANNED or (self.stopped and self.stopped.is_set()):
                        self.truncated = True
                        break
                    names.append((item.name, _kind_of(item)))
        except (OSError, FileRefused) as e:
            if parts == self.base.parts or isinstance(e, RootReplaced):
                raise
            # Beneath it, a directory that we may not read, or that is gone by now, is skipped.
        return sorted(names)

    def _path(self, parts: tuple[str, ...]) -> RootedPath:
        return RootedPath(self.base.root, parts, self.opener.workspace.show(self.base.root, parts))

    def _counts(self, path: RootedPath, kind: Kind) -> bool:
        """Return whether something that is no directory is what the scan looks for. A link is what it leads to."""
        if kind == "link" and self.links:
            try:
                kind = entry(self.opener, path).kind
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
