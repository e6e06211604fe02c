"""Changes files: whole files at once, directories, names.

Owns the promise that a file is the old one or the new one at any instant, never half of it: what is written goes into a
new file in the same directory, which then takes the name. The new file keeps the permissions, and where the system
lets us the owner, of the old one; hard links to the old one keep the old content. Directories on the way are made.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.errors import UsageError
from holdfast.workspace.read_files import mark_of, not_regular
from holdfast.workspace.roots import NOFOLLOW

if TYPE_CHECKING:
    from holdfast.workspace.roots import RootedPath
    from holdfast.workspace.safe_open import SafeOpener


def write_text(
    opener: SafeOpener, path: RootedPath, text: str, *, encoding: str | None = None, sync: bool = False
) -> None:
    """Write a file as text. Without an encoding it keeps the byte order mark it has; a new one is UTF-8 without."""
    mark, codec = mark_of(opener, path) if encoding is None else (b"", encoding)
    try:
        if mark and codec != "utf-8-sig":  # the codec would put the mark of this machine, not the file's
            data = mark + text.encode(f"{codec}-{'le' if mark[0] == 0xFF else 'be'}")
        else:
            data = text.encode(codec)
    except LookupError:
        raise UsageError(f"there is no encoding {encoding!r}; 'utf-8' and 'latin-1' are two that there are") from None
    except UnicodeEncodeError as e:
        raise UsageError(
            f"{text[e.start : e.start + 1]!r} cannot be written as {codec}; choose another encoding"
        ) from e
    write_bytes(opener, path, data, sync=sync)


def write_bytes(opener: SafeOpener, path: RootedPath, data: bytes, *, sync: bool = False) -> None:
    """Write a whole file. With `sync` it is on the disk, not only on its way there, when this returns."""
    if path.directory:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path.original)
    with opener.parent(path, make=True) as (directory, name):
        old = _writable(path, directory, name)
        draft = f".holdfast-{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW
        fd = os.open(draft, flags, 0o666 if old is None else 0o600, dir_fd=directory)
        try:
            try:
                _fill(fd, data, old, sync=sync)
            finally:
                os.close(fd)
            os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=directory)
            raise
        if sync:
            _sync_directory(directory)


def mkdir(opener: SafeOpener, path: RootedPath) -> None:
    """Make a directory and those it is in; one that is there is fine."""
    opener.make(path)


def remove(opener: SafeOpener, path: RootedPath, *, recursive: bool = False) -> None:
    """Remove a file, a link (not what it leads to) or an empty directory; with `recursive` a full one too."""
    with opener.parent(path, follow=False) as (directory, name):
        mode = os.lstat(name, dir_fd=directory).st_mode
        if path.directory and not stat.S_ISDIR(mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path.original)
        if not stat.S_ISDIR(mode):
            os.unlink(name, dir_fd=directory)
        elif recursive:
            shutil.rmtree(name, dir_fd=directory)
        else:
            os.rmdir(name, dir_fd=directory)


def rename(opener: SafeOpener, old: RootedPath, new: RootedPath, *, replace: bool = False) -> None:
    """Give a file, link or directory another name, anywhere in the roots. What has that name goes only if `replace`."""
    with (
        opener.parent(old, follow=False) as (source, old_name),
        opener.parent(new, follow=False, make=True) as (target, new_name),
    ):
        if not replace and _exists(target, new_name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new.original)
        os.rename(old_name, new_name, src_dir_fd=source, dst_dir_fd=target)


def _writable(path: RootedPath, directory: int, name: str) -> os.stat_result | None:
    """Return the status of the file to be replaced. One that is write-protected is not, though the system would."""
    assert sys.platform != "win32"
    try:
        old = os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path.original)
    if stat.S_ISLNK(old.st_mode):
        return None  # put there this very moment: it will be replaced, not followed
    if not stat.S_ISREG(old.st_mode):
        raise not_regular(path)
    try:
        os.close(os.open(name, os.O_WRONLY | os.O_NONBLOCK | NOFOLLOW, dir_fd=directory))
    except OSError as e:
        if e.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise
    return old


def _fill(fd: int, data: bytes, old: os.stat_result | None, *, sync: bool) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    if old is not None and sys.platform != "win32":
        with suppress(OSError):
            os.fchown(fd, old.st_uid, old.st_gid)
        os.fchmod(fd, old.st_mode & 0o777)
    if sync:
        os.fsync(fd)


def _sync_directory(directory: int) -> None:
    assert sys.platform != "win32"
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | NOFOLLOW, dir_fd=directory)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _exists(directory: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True
