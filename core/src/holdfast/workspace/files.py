"""The file tools that agent code has as `turn.files`.

Owns how they look to an author, and that none of them blocks the event loop: each runs in a thread. What they do is in
`read_files`, `write_files`, `list_files` and `search_files`; that none of them leaves the session's directories is
seen to by `safe_open`.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from holdfast.await_guard import awaited
from holdfast.workspace import list_files, read_files, search_files, write_files
from holdfast.workspace.glob_pattern import GlobPattern
from holdfast.workspace.safe_open import SafeOpener

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from concurrent.futures import ThreadPoolExecutor

    from holdfast.workspace.results import Entry, Match, Results
    from holdfast.workspace.roots import AnyPath, RootedPath, Workspace

T = TypeVar("T")


class Files:
    """Reads and writes files inside a session's directories, and nowhere else.

    A relative path is read against the session's `cwd`; an absolute one must lie in one of its directories. A path that
    leaves them, by `..` or through a link, raises `OutsideRoots`; a directory of the session that is no longer the one
    it was raises `RootReplaced`. What the system refuses is raised as it is, as `FileNotFoundError` and the like.

    Attributes:
        workspace: the directories.

    """

    __slots__ = ("_opener", "_threads", "workspace")

    def __init__(
        self, workspace: Workspace, *, openat2: bool | None = None, threads: ThreadPoolExecutor | None = None
    ) -> None:
        """Use the files of a workspace.

        `openat2` forces or forbids the system call of that name, for tests. `threads` are those that files are
        touched in, as of another user; by default any.
        """
        self._threads = threads
        self.workspace: Workspace = workspace
        self._opener = SafeOpener(workspace) if openat2 is None else SafeOpener(workspace, openat2)

    async def read_text(
        self,
        path: AnyPath,
        *,
        line: int | None = None,
        limit: int | None = None,
        encoding: str | None = None,
        max_bytes: int = read_files.MAX_READ_BYTES,
    ) -> str:
        """Return a file as text: whole, or some lines of it. Line ends stay as they are.

        Args:
            path: the file.
            line: the number of the first line; the first of the file is 1.
            limit: how many lines.
            encoding: by default UTF-8, unless the file begins with a byte order mark, which is left out.
            max_bytes: how large the file may be.

        Returns:
            The text.

        Raises:
            NotText: the file is not in this encoding.
            FileTooLarge: the file is larger than `max_bytes`.

        """
        rooted = self.workspace.locate(path)
        return await _read(
            self._threads,
            rooted,
            lambda: read_files.read_text(
                self._opener, rooted, line=line, limit=limit, encoding=encoding, max_bytes=max_bytes
            ),
        )

    async def read_bytes(self, path: AnyPath, *, max_bytes: int = read_files.MAX_READ_BYTES) -> bytes:
        """Return the content of a file.

        Args:
            path: the file.
            max_bytes: how large it may be.

        Returns:
            The content.

        Raises:
            FileTooLarge: the file is larger than `max_bytes`.

        """
        rooted = self.workspace.locate(path)
        return await _read(self._threads, rooted, lambda: read_files.read_bytes(self._opener, rooted, max_bytes))

    async def write_text(self, path: AnyPath, text: str, *, encoding: str | None = None, sync: bool = False) -> None:
        """Write a whole file as text; readers see the old one or the new one, never half of it.

        Args:
            path: the file. Directories on the way are made.
            text: the whole text of it.
            encoding: by default UTF-8, or what the byte order mark of the file that is there says.
            sync: whether it survives a power cut when this returns.

        """
        rooted = self.workspace.locate(path)
        work = lambda: write_files.write_text(self._opener, rooted, text, encoding=encoding, sync=sync)  # noqa: E731
        await _change(self._threads, rooted, work)

    async def write_bytes(self, path: AnyPath, data: bytes, *, sync: bool = False) -> None:
        """Write a whole file, as `write_text` does.

        Args:
            path: the file. Directories on the way are made.
            data: the whole content of it.
            sync: whether it survives a power cut when this returns.

        """
        rooted = self.workspace.locate(path)
        await _change(self._threads, rooted, lambda: write_files.write_bytes(self._opener, rooted, data, sync=sync))

    async def stat(self, path: AnyPath) -> Entry:
        """Return what is at a path; of a link, what it leads to.

        Args:
            path: where to look.

        Returns:
            What is there, with its kind and size.

        Raises:
            FileNotFoundError: nothing is there.

        """
        rooted = self.workspace.locate(path)
        return await _read(self._threads, rooted, lambda: list_files.entry(self._opener, rooted))

    @awaited
    async def exists(self, path: AnyPath) -> bool:
        """Return whether anything is at a path; of a link, where it leads to.

        Args:
            path: where to look.

        Returns:
            Whether something is there.

        """
        try:
            await self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    async def list(self, path: AnyPath = ".", *, limit: int = 10_000) -> Results[Entry]:
        """Return the entries of a directory; of links, themselves.

        Args:
            path: the directory.
            limit: how many entries at most.

        Returns:
            The entries, by name.

        """
        rooted = self.workspace.locate(path)
        return await _read(self._threads, rooted, lambda: list_files.list_directory(self._opener, rooted, limit))

    async def glob(self, pattern: str, *, limit: int = 10_000, skip: Collection[str] = (".git",)) -> Results[str]:
        """Return the paths that match a pattern. Links to directories are not followed.

        Args:
            pattern: ``*.py`` here, ``**/*.py`` at any depth, ``{src,tests}/**/*.py``; ``**/`` is directories.
            limit: how many paths at most.
            skip: the names of directories that are not entered.

        Returns:
            The paths, in order.

        """
        base, rest = GlobPattern.split(pattern)
        rooted = self.workspace.locate(base)
        return await _scan(
            self._threads, rooted, lambda stopped: list_files.glob(self._opener, rooted, rest, limit, skip, stopped)
        )

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
        """Return the lines that hold a text, in a file or in all text files beneath a directory. Links are skipped.

        Args:
            text: what to look for.
            path: the file or directory.
            glob: the names of files that are looked into.
            regex: whether `text` is a regular expression of Python's `re`. One that repeats a repetition, as ``(a+)+``
                does, may take for ever and block the whole process; do not take it from somebody you do not trust.
            ignore_case: whether capitals and small letters are the same.
            limit: how many lines at most.
            skip: the names of directories that are not entered.

        Returns:
            The lines, by file and number.

        Raises:
            UsageError: the regular expression is none.

        """
        rooted = self.workspace.locate(path)
        return await _scan(
            self._threads,
            rooted,
            lambda stopped: search_files.search(
                self._opener,
                text,
                rooted,
                glob=glob,
                regex=regex,
                ignore_case=ignore_case,
                limit=limit,
                skip=skip,
                stopped=stopped,
            ),
        )

    async def mkdir(self, path: AnyPath) -> None:
        """Make a directory and those it is in; one that is there is fine.

        Args:
            path: the directory.

        """
        rooted = self.workspace.locate(path)
        await _change(self._threads, rooted, lambda: write_files.mkdir(self._opener, rooted))

    async def remove(self, path: AnyPath, *, recursive: bool = False) -> None:
        """Remove a file, a link (not what it leads to) or a directory.

        Args:
            path: what to remove.
            recursive: whether a directory that is not empty is removed too, with all that is in it.

        """
        rooted = self.workspace.locate(path)
        await _change(self._threads, rooted, lambda: write_files.remove(self._opener, rooted, recursive=recursive))

    async def rename(self, old: AnyPath, new: AnyPath, *, replace: bool = False) -> None:
        """Give a file, link or directory another name, anywhere in the roots.

        Args:
            old: what to rename.
            new: its new name.
            replace: whether what has that name already goes.

        Raises:
            FileExistsError: something has that name, and `replace` is not set.

        """
        source, target = self.workspace.locate(old), self.workspace.locate(new)
        await _change(self._threads, None, lambda: write_files.rename(self._opener, source, target, replace=replace))


async def _read(threads: ThreadPoolExecutor | None, path: RootedPath, work: Callable[[], T]) -> T:
    """Read in a thread. A caller that is cancelled does not wait for it: it changes nothing."""
    return await asyncio.get_running_loop().run_in_executor(threads, _with_path, path, work)


async def _scan(threads: ThreadPoolExecutor | None, path: RootedPath, work: Callable[[threading.Event], T]) -> T:
    """Scan in a thread, which stops soon after its caller is cancelled."""
    stopped = threading.Event()
    try:
        return await asyncio.get_running_loop().run_in_executor(threads, _with_path, path, lambda: work(stopped))
    finally:
        stopped.set()


async def _change(threads: ThreadPoolExecutor | None, path: RootedPath | None, work: Callable[[], T]) -> T:
    """Change something in a thread. A caller that is cancelled waits for the end: nothing changes afterwards."""
    done = asyncio.get_running_loop().run_in_executor(threads, _with_path, path, work)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({done})
        if not done.cancelled():
            done.exception()  # retrieved, or asyncio would log that it was not
        raise


def _with_path(path: RootedPath | None, work: Callable[[], T]) -> T:
    """Put what the caller wrote into an error, not the part of it that was being opened."""
    try:
        return work()
    except OSError as e:
        if path is not None and not (e.filename and str(e.filename).startswith("/")):
            e.filename = path.original
        raise
