"""Reads files: bytes, and text with an encoding, up to a limit.

Owns what is a readable file (a regular one; pipes and devices could block for ever), what is text, and how lines are
counted. Line ends come as they are in the file: what is read and written back unchanged is unchanged.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.errors import FileRefused, FileTooLarge, NotText, UsageError
from holdfast.workspace.safe_open import READ

if TYPE_CHECKING:
    from collections.abc import Generator

    from holdfast.workspace.roots import RootedPath
    from holdfast.workspace.safe_open import SafeOpener

MAX_READ_BYTES = 10 << 20
"""The most that is read, unless the caller says otherwise."""

HEAD_BYTES = 8192
"""So much of a file is looked at to tell what it is."""

# The longer marks first: UTF-32's begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@contextmanager
def open_regular(opener: SafeOpener, path: RootedPath) -> Generator[int]:
    """Open a regular file to be read."""
    try:
        with opener.open(path, READ) as fd:
            mode = os.fstat(fd).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path.original)
            if not stat.S_ISREG(mode):
                raise not_regular(path)
            yield fd
    except OSError as e:
        if e.errno == errno.ENXIO:  # a socket, or a device that is not there
            raise not_regular(path) from e
        raise


def not_regular(path: RootedPath) -> FileRefused:
    """Return the error which says that something is no regular file."""
    return FileRefused(path.original, "is a pipe, a socket or a device. Only regular files can be read and written.")


def read_bytes(opener: SafeOpener, path: RootedPath, max_bytes: int = MAX_READ_BYTES) -> bytes:
    """Return the content of a file. Raises `FileTooLarge`."""
    with open_regular(opener, path) as fd:
        size = os.fstat(fd).st_size
        if size > max_bytes:
            raise _too_large(path, f"has {size:,} bytes", max_bytes)
        chunks: list[bytes] = []
        room = max_bytes + 1  # a file may grow while we read it, and those of /proc say they are empty
        while room and (chunk := os.read(fd, min(room, max(size + 1, 64 << 10)))):
            chunks.append(chunk)
            room -= len(chunk)
    if not room:
        raise _too_large(path, "is growing", max_bytes)
    return b"".join(chunks)


def read_text(
    opener: SafeOpener,
    path: RootedPath,
    *,
    line: int | None = None,
    limit: int | None = None,
    encoding: str | None = None,
    max_bytes: int = MAX_READ_BYTES,
) -> str:
    """Return a file as text, whole or `limit` lines from line number `line` on, the first being 1."""
    if line is not None and line < 1:
        raise UsageError(f"lines are counted from 1, so there is no line {line}")
    if limit is not None and limit < 0:
        raise UsageError(f"the number of lines to read cannot be {limit}")
    if line is None and limit is None:
        data = read_bytes(opener, path, max_bytes)
        codec = _codec(path, data[:HEAD_BYTES], encoding)
        with _decoding(path, codec):
            return data.decode(codec)
    with open_regular(opener, path) as fd, io.FileIO(fd, closefd=False) as raw, io.BufferedReader(raw) as file:
        codec = _codec(path, file.read(HEAD_BYTES), encoding)
        file.seek(0)
        with _decoding(path, codec), io.TextIOWrapper(file, codec, newline="\n") as text:
            return _lines(path, text, (line or 1) - 1, limit, max_bytes)


def mark_of(opener: SafeOpener, path: RootedPath) -> tuple[bytes, str]:
    """Return the byte order mark that a file begins with, and its encoding; without one, UTF-8."""
    try:
        with open_regular(opener, path) as fd:
            head = os.read(fd, 4)
    except (OSError, FileRefused):
        return b"", "utf-8"
    return next(((mark, codec) for mark, codec in _MARKS if head.startswith(mark)), (b"", "utf-8"))


def _lines(path: RootedPath, text: io.TextIOWrapper, skip: int, limit: int | None, max_bytes: int) -> str:
    """Return lines of a file of any size; only those count against the limit."""
    while skip and (piece := text.readline(1 << 20)):
        skip -= piece.endswith("\n")
    taken: list[str] = []
    room = max_bytes
    while limit is None or limit > 0:
        piece = text.readline(room + 1)
        room -= len(piece.encode())
        if room < 0:
            raise _too_large(path, "has more in these lines", max_bytes)
        if not piece:
            break
        taken.append(piece)
        if limit is not None:
            limit -= piece.endswith("\n")
    return "".join(taken)


def _codec(path: RootedPath, head: bytes, asked: str | None) -> str:
    if asked is not None:
        try:
            codecs.lookup(asked)
        except LookupError:
            raise UsageError(f"there is no encoding {asked!r}; 'utf-8' and 'latin-1' are two that there are") from None
        return asked
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return codec
    if b"\0" in head:
        raise NotText(path.original, "is a binary file. Read it with read_bytes.")
    return "utf-8"


@contextmanager
def _decoding(path: RootedPath, codec: str) -> Generator[None]:
    try:
        yield
    except UnicodeDecodeError as e:
        at = f"byte 0x{e.object[e.start]:02x}" if e.start < len(e.object) else "its end"
        why = f"is not {codec} text ({at} does not fit). Name its encoding, or read it with read_bytes."
        raise NotText(path.original, why) from e


def _too_large(path: RootedPath, what: str, max_bytes: int) -> FileTooLarge:
    why = f"{what}; at most {max_bytes:,} may be read at once. Read some of its lines, or raise max_bytes."
    return FileTooLarge(path.original, why)
