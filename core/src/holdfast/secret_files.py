"""Files that hold a secret: written whole or not at all, and never believed where they hold too little.

A file that was cut off while it was written (the disk was full, the process was killed, the power failed) would
otherwise be an empty secret, and an empty secret is one that everybody knows.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

LEAST = 16
"""A secret with fewer bytes can be guessed."""


def is_guessable(secret: bytes | str) -> bool:
    """Return whether a secret is empty or too short. A file system may have filled it up with zeros."""
    known = secret.encode(errors="replace") if isinstance(secret, str) else secret
    return len(known.strip(b"\0 \t\r\n")) < LEAST


def read_or_make(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return the secret in a file; one that is missing or can be guessed is made, once for all processes."""
    secret = _read(path)
    if is_guessable(secret):
        path.parent.mkdir(parents=True, exist_ok=True)
        with only_process(path.parent):
            secret = _read(path)
            if is_guessable(secret):
                secret = make()
                write_private(path, secret)
    return secret


def write_private(path: Path, content: bytes) -> None:
    """Write a file for its user alone. It has all of its new content or is as it was, also after a loss of power."""
    import tempfile  # noqa: PLC0415  (few commands write secrets)

    descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            _keep_owner(file.fileno(), path)
            os.fsync(file.fileno())
        os.replace(beside, path)  # noqa: PTH105  (a name, not a `Path`)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)  # noqa: PTH108
        raise
    _sync_directory(path.parent)


@contextmanager
def only_process(directory: Path) -> Generator[None]:
    """Keep out other processes that would change a file of secrets in a directory."""
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415  (there is none on Windows)

    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _keep_owner(descriptor: int, path: Path) -> None:
    """Leave a file to the user it belongs to where root replaces it, as `sudo holdfast token new` does."""
    if sys.platform != "win32" and os.geteuid() == 0:
        with suppress(FileNotFoundError):
            before = path.lstat()
            os.fchown(descriptor, before.st_uid, before.st_gid)


def _sync_directory(directory: Path) -> None:
    with suppress(OSError):  # not every system can
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
