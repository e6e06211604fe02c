"""Which paths lie inside a session's directories, and that these stay the directories they were (P9).

Owns the roots `[cwd, *additionalDirectories]`, the arithmetic of paths in them, and the descriptors of the roots while
somebody uses them. `..` in a path is taken by its letters (`a/../b` is `b`, whatever `a` is), so a path is inside or
outside before anything is touched. That it stays inside once links are followed is the business of `safe_open`.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from holdfast.errors import FileRefused, OutsideRoots, RootReplaced, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from holdfast.workspace.allowed import AllowedDirectories

AnyPath: TypeAlias = str | os.PathLike[str]

# A directory that is only passed through need not be readable, where the system can say so.
DIRECTORY: int = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


_MAKING_A_LOCK = threading.Lock()


class Root:
    """One directory of a session: how the client named it, where it really is, and which directory that is.

    A directory is identified by its device and inode, once, when it is first seen: when the session is opened, or,
    if it does not exist then, when it is first used. From then on another directory of that name is refused, and so is
    a link that leads to another one. It is open while somebody uses it; all share one descriptor.
    """

    __slots__ = ("_descriptor", "_identity", "_lock", "_users", "given", "real")

    def __init__(self, given: str, real: str) -> None:
        self.given: str = given
        self.real: str = real
        self._identity: tuple[int, int] | None = None
        with suppress(OSError):
            self._identity = _identity_at(real)
        self._lock: threading.Lock | None = None
        self._users = 0
        self._descriptor = -1

    @contextmanager
    def open(self) -> Generator[int]:
        """Yield a descriptor of the directory. Raises `RootReplaced` if it is no longer the same directory."""
        descriptor = self.acquire()
        try:
            yield descriptor
        finally:
            self.release()

    def acquire(self) -> int:
        """Return a descriptor of the directory, which stays open until `release`."""
        with self._locked():
            if self._users == 0:
                self._descriptor = self._open()
            elif not self._is_in_place():
                raise self._replaced()
            self._users += 1
            return self._descriptor

    def release(self) -> None:
        """Close the descriptor, unless somebody else uses it."""
        with self._locked():
            self._users -= 1
            if self._users == 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def _locked(self) -> threading.Lock:
        """Return its lock, which is made when it is first used: most directories of idle sessions never are."""
        with _MAKING_A_LOCK:
            if self._lock is None:
                self._lock = threading.Lock()
            return self._lock

    def _open(self) -> int:
        try:
            descriptor = self._open_directory()
        except OSError as e:
            raise self._lost(e) from e
        identity = _identity(os.fstat(descriptor))
        if self._identity is None:
            self._identity = identity
        elif self._identity != identity:
            os.close(descriptor)
            raise self._replaced()
        return descriptor

    def _open_directory(self) -> int:
        if self._identity is not None:
            try:
                return os.open(self.real, DIRECTORY)
            except OSError as e:
                if e.errno != errno.ENAMETOOLONG:
                    raise
        # Nobody knows yet which directory it is, so no link may have a say in it.
        return _open_without_links(self.real)

    def _is_in_place(self) -> bool:
        """Return whether the directory that is open is still found under its name."""
        try:
            return _identity_at(self.real) == self._identity
        except PermissionError:
            return True  # this thread is another user's, who cannot look: the directory that is open is the right one
        except OSError as e:
            raise self._lost(e) from e

    def _lost(self, error: OSError) -> Exception:
        if error.errno == errno.ENOENT:
            why = "This directory of the session is gone; load the session again when it is back"
            return FileNotFoundError(errno.ENOENT, why, self.given)
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}:
            return self._replaced()
        return error

    def _replaced(self) -> RootReplaced:
        return RootReplaced(
            self.given,
            "is no longer the directory it was when the session was opened: it was replaced by another one, by a link"
            " or by a file. Load the session again to work in what is there now.",
        )


class RootedPath(NamedTuple):
    """A path inside a root. `parts` holds no `.` and no empty name, and no `..` until a link brings one."""

    root: Root
    parts: tuple[str, ...]
    original: str
    """What the caller wrote, for messages."""
    directory: bool = False
    """Whether it was written as a directory, with a slash at its end."""


class Workspace:
    """The directories a session may touch; the first is `cwd`, against which relative paths are read.

    Made by `Workspace.resolve`, when a connection opens the session, and used as long as that connection uses it:
    `hold` keeps the directories open while a turn runs. Without it each file operation opens them anew, and refuses
    one that was replaced all the same.
    """

    __slots__ = ("_roots",)

    def __init__(self, roots: Sequence[Root]) -> None:
        self._roots = tuple(roots)

    @property
    def _cwd(self) -> str:
        return self._roots[0].given

    @classmethod
    def resolve(cls, cwd: AnyPath, additional: Iterable[AnyPath] = ()) -> Workspace:
        """Find out where a session's directories are, and which directories they are; the only look at their names.

        One that does not exist is allowed: commands may make it. Raises `UsageError` where a path is not absolute.
        """
        # B3: order kept, duplicates dropped
        named = dict.fromkeys(_root_names(path) for path in (cwd, *additional))
        return cls([Root(given, real) for given, real in named])

    @property
    def cwd(self) -> Path:
        """The working directory."""
        return Path(self._cwd)

    @property
    def roots(self) -> tuple[Path, ...]:
        """All directories, the working directory first."""
        return tuple(Path(root.given) for root in self._roots)

    @contextmanager
    def hold(self) -> Generator[None]:
        """Keep the directories open, as for the time of a turn.

        One that cannot be opened is left out: whoever wants something in it is told why.
        """
        held: list[Root] = []
        try:
            for root in self._roots if sys.platform != "win32" else ():
                with suppress(OSError, FileRefused):
                    root.acquire()
                    held.append(root)
            yield
        finally:
            for root in held:
                root.release()

    def lies_in(self, allowed: AllowedDirectories) -> bool:
        """Return whether all directories that are there lie in some others: those that are used from now on, not names.

        One that does not exist yet counts by its name.
        """
        for root in self._roots:
            try:
                with root.open() as descriptor:
                    if not allowed.holds(descriptor):
                        return False
            except FileNotFoundError:
                if not allowed.holds(root.real):
                    return False
        return True

    def absolute(self, path: AnyPath) -> Path:
        """Return the absolute form of a path inside the roots. Raises `OutsideRoots`; links are not looked at."""
        rooted = self.locate(path)
        return Path(rooted.root.given, *rooted.parts)

    def locate(self, path: AnyPath) -> RootedPath:
        """Return the root that a path is in, and the path there. Raises `OutsideRoots`."""
        original = _text(path)
        name = _unescaped(original)
        absolute = _normal(name if os.path.isabs(name) else f"{self._cwd}/{name}")  # noqa: PTH117  (pathlib is slow)
        found = self.find(absolute)
        if found is None:
            raise self.outside(original, "is outside")
        # A name that ends in these can only be a directory's.
        return RootedPath(*found, original, original.rpartition("/")[2] in {"", ".", ".."})

    def find(self, absolute: str) -> tuple[Root, tuple[str, ...]] | None:
        """Return the innermost root of an absolute, normal path, and its parts there."""
        whole, longest, found = f"{absolute}/", 0, None
        names = [(root.given, root) for root in self._roots] + [(root.real, root) for root in self._roots]
        for name, root in names:
            prefix = f"{name.rstrip('/')}/"
            if len(prefix) > longest and whole.startswith(prefix):
                longest, found = len(prefix), root
        return found and (found, tuple(absolute[longest:].split("/")) if len(absolute) > longest else ())

    def follow(self, path: RootedPath, link: str, rest: tuple[str, ...]) -> RootedPath:
        """Return the path that a link names which leaves the root that it is in. Raises `OutsideRoots`."""
        names = [name for name in (*link.split("/"), *rest) if name not in {"", "."}]
        reached: list[str] = []
        found = None
        while names:
            if names[0] == ".." and found is not None and found[1]:
                break  # what stands before it may be a link: where it leads is found out while it is opened
            if (name := names.pop(0)) == "..":
                del reached[-1:]
            else:
                reached.append(name)
            found = self.find(f"/{'/'.join(reached)}")
        if found is None:
            raise self.outside(path.original, f"leads, through a link to {link!r}, outside")
        return RootedPath(found[0], (*found[1], *names), path.original, path.directory)

    def show(self, root: Root, parts: tuple[str, ...]) -> str:
        """Return a path as people read it, and as `locate` takes it: short in cwd, absolute elsewhere."""
        shown = "/".join(parts) or "." if root.given == self._cwd else str(Path(root.given, *parts))
        return escaped(shown)

    def outside(self, original: str, how: str) -> OutsideRoots:
        """Return the error which says that a path is not in the roots, and what would be."""
        roots = ", ".join(root.given for root in self._roots)
        return OutsideRoots(
            original,
            f"{how} the session's directories ({roots}). Use a path inside one of them,"
            " or have its directory added to the session.",
        )


# To the system names are bytes. One that is not UTF-8 cannot be shown, sent or stored: each byte that does not fit is
# written like `\xe9`, and understood again where a path is given. A backslash that would be taken for the beginning of
# such a byte is written as `\x5c`.

_UNFIT = r"(?i)[\udc80-\udcff]|\\(?=x(?:5c|[89a-f][0-9a-f]))"
_ESCAPE = r"(?i)\\x(5c|[89a-f][0-9a-f])"


def escaped(name: str) -> str:
    """Return a name of the file system as text that can be shown, sent and stored."""
    if name.isascii() and "\\" not in name:
        return name
    return re.sub(_UNFIT, lambda found: f"\\x{ord(found[0]) & 0xFF:02x}", name)


def _unescaped(text: str) -> str:
    if "\\x" not in text or sys.platform == "win32":
        return text
    name = re.sub(_ESCAPE, lambda found: "\\" if found[1].lower() == "5c" else chr(0xDC00 + int(found[1], 16)), text)
    return os.fsdecode(os.fsencode(name))


def _root_names(path: AnyPath) -> tuple[str, str]:
    """Return how a root is named, and where it really is."""
    name = os.fspath(path)
    if not isinstance(name, str) or not os.path.isabs(name) or "\0" in name:  # noqa: PTH117  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"a session's directory must be an absolute path, not {name!r}")
    real = _normal(os.path.realpath(name))
    given = real if ".." in name.split("/") else _normal(name)
    # Mostly all three are equal: then they are kept as one string.
    return name if given == name else given, name if real == name else real


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _identity_at(path: str) -> tuple[int, int]:
    """Return which directory stands under a name."""
    try:
        return _identity(os.stat(path))  # noqa: PTH116  (pathlib is slow)
    except OSError as e:
        if e.errno != errno.ENAMETOOLONG:
            raise
    descriptor = _open_without_links(path)
    try:
        return _identity(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _open_without_links(path: str) -> int:
    """Open a directory in whose absolute path nothing is a link; ELOOP or ENOTDIR if something is."""
    here = os.open("/", DIRECTORY | NOFOLLOW)
    for name in filter(None, path.split("/")):
        try:
            there = os.open(name, DIRECTORY | NOFOLLOW, dir_fd=here)
        finally:
            os.close(here)
        here = there
    return here


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
