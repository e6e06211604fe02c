"""The file tools that agent code has as `turn.files`.

Owns how they look to an author and that none of them holds up the event loop: each runs in a thread. What they do is in
`reading`, `writing`, `listing` and `searching`; that none of them leaves the session's directories, in `opening`.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from holdfast.workspace import listing, reading, searching, writing
from holdfast.workspace.opening import Opener
from holdfast.workspace.patterns import Pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from holdfast.workspace.results import Entry, Match, Results
    from holdfast.workspace.roots import AnyPath, Place, Workspace

T = TypeVar("T")


class Files:
    """Reads and writes inside a session's directories, and nowhere else.

    A relative path is read against the session's `cwd`; an absolute one must lie in one of its directories. A path that
    leaves them, by `..` or through a link, raises `OutsideRoots`. What the system refuses comes as it is, as
    `FileNotFoundError` and the like.
    """

    __slots__ = ("_opener", "workspace")

    def __init__(self, workspace: Workspace, *, openat2: bool | None = None) -> None:
        """`openat2` forces or forbids the system call of that name; by default it is used where it is there."""
        self.workspace = workspace
        self._opener = Opener(workspace) if openat2 is None else Opener(workspace, openat2)

    async def read_text(
        self,
        path: AnyPath,
        *,
        line: int | None = None,
        limit: int | None = None,
        encoding: str | None = None,
        max_bytes: int = reading.MAX_READ_BYTES,
    ) -> str:
        """Read a file as text: whole, or `limit` lines from line number `line` on, the first being 1.

        It is taken for UTF-8 unless it begins with a byte order mark, which is left out, or `encoding` is given. Line
        ends stay as they are. Of a file larger than `max_bytes` only lines can be read.
        """
        place = self.workspace.locate(path)
        return await _read(
            place,
            lambda: reading.read_text(
                self._opener, place, line=line, limit=limit, encoding=encoding, max_bytes=max_bytes
            ),
        )

    async def read_bytes(self, path: AnyPath, *, max_bytes: int = reading.MAX_READ_BYTES) -> bytes:
        """Read a whole file."""
        place = self.workspace.locate(path)
        return await _read(place, lambda: reading.read_bytes(self._opener, place, max_bytes))

    async def write_text(self, path: AnyPath, text: str, *, encoding: str | None = None, sync: bool = False) -> None:
        """Write a whole file as text; readers see the old one or the new one, never half of it.

        Directories on the way are made. Without `encoding` it is UTF-8, or what the byte order mark of the file that is
        there says. `sync` waits until it would survive a power cut.
        """
        place = self.workspace.locate(path)
        await _change(place, lambda: writing.write_text(self._opener, place, text, encoding=encoding, sync=sync))

    async def write_bytes(self, path: AnyPath, data: bytes, *, sync: bool = False) -> None:
        """Write a whole file, as `write_text` does."""
        place = self.workspace.locate(path)
        await _change(place, lambda: writing.write_bytes(self._opener, place, data, sync=sync))

    async def stat(self, path: AnyPath) -> Entry:
        """Say what is at a path; of a link, what it leads to."""
        place = self.workspace.locate(path)
        return await _read(place, lambda: listing.entry(self._opener, place))

    async def exists(self, path: AnyPath) -> bool:
        """Say whether anything is at a path; of a link, at what it leads to."""
        try:
            await self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    async def list(self, path: AnyPath = ".", *, limit: int = 10_000) -> Results[Entry]:
        """List a directory, by name; of links, themselves."""
        place = self.workspace.locate(path)
        return await _read(place, lambda: listing.list_directory(self._opener, place, limit))

    async def glob(self, pattern: str, *, limit: int = 10_000, skip: Collection[str] = (".git",)) -> Results[str]:
        """Find files by name: `*.py` here, `**/*.py` at any depth, `{src,tests}/**/*.py`; `**/` finds directories.

        Links to directories are not gone through. Directories named in `skip` are passed over.
        """
        base, rest = Pattern.split(pattern)
        place = self.workspace.locate(base)
        return await _look(place, lambda stopped: listing.glob(self._opener, place, rest, limit, skip, stopped))

    async def search(
        self,
        text: str,
        path: AnyPath = ".",
        *,
        glob: str = "*",
        regex: bool = False,
        ignore_case: bool = False,
        limit: int = 1000,
        skip: Collection[str] = (".git",),
    ) -> Results[Match]:
        """Find the lines that hold `text`, in a file or in all text files beneath a directory whose names fit `glob`.

        Links and binary files are passed over. With `regex` the text is a regular expression of Python's `re`; one that
        repeats a repetition, as `(a+)+` does, may take for ever and hold up the whole process: do not take it from
        somebody you do not trust.
        """
        place = self.workspace.locate(path)
        return await _look(
            place,
            lambda stopped: searching.search(
                self._opener,
                text,
                place,
                glob=glob,
                regex=regex,
                ignore_case=ignore_case,
                limit=limit,
                skip=skip,
                stopped=stopped,
            ),
        )

    async def mkdir(self, path: AnyPath) -> None:
        """Make a directory and those it is in; one that is there is fine."""
        place = self.workspace.locate(path)
        await _change(place, lambda: writing.mkdir(self._opener, place))

    async def remove(self, path: AnyPath, *, recursive: bool = False) -> None:
        """Remove a file, a link (not what it leads to) or an empty directory; with `recursive` a full one too."""
        place = self.workspace.locate(path)
        await _change(place, lambda: writing.remove(self._opener, place, recursive=recursive))

    async def rename(self, old: AnyPath, new: AnyPath, *, replace: bool = False) -> None:
        """Give a file, link or directory another name, anywhere in the roots. What has that name goes if `replace`."""
        source, target = self.workspace.locate(old), self.workspace.locate(new)
        await _change(None, lambda: writing.rename(self._opener, source, target, replace=replace))


async def _read(place: Place, work: Callable[[], T]) -> T:
    """Read in a thread. Who is cancelled does not wait for it: nothing comes of it."""
    return await asyncio.to_thread(_named, place, work)


async def _look(place: Place, work: Callable[[threading.Event], T]) -> T:
    """Look around in a thread, which stops soon after whoever waits for it is cancelled."""
    stopped = threading.Event()
    try:
        return await asyncio.to_thread(_named, place, lambda: work(stopped))
    finally:
        stopped.set()


async def _change(place: Place | None, work: Callable[[], T]) -> T:
    """Change something in a thread. Who is cancelled hears of it when it is done: nothing changes afterwards."""
    done = asyncio.get_running_loop().run_in_executor(None, _named, place, work)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({done})
        if not done.cancelled():
            done.exception()  # looked at, so that nobody complains that nobody did
        raise


def _named(place: Place | None, work: Callable[[], T]) -> T:
    """Say in an error what the caller wrote, not the piece of it that we were at."""
    try:
        return work()
    except OSError as e:
        if place is not None and not (e.filename and str(e.filename).startswith("/")):
            e.filename = place.asked
        raise
