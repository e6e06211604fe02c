"""Disks that are full when a test says so, without anybody pretending: the system itself refuses to write.

`LimitedDisk` forbids files to grow (`RLIMIT_FSIZE`: the write that crosses the limit is cut short, the next fails).
`SmallDisk` is a file system of its own, which is filled; it needs the right to mount.
"""

from __future__ import annotations

import resource
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

CAPACITY = 8 << 20


class LimitedDisk:
    """Files may not grow while it is full."""

    def __init__(self, directory: Path) -> None:
        self.place = directory / "sessions.db"

    @property
    def wal(self) -> Path:
        return self.place.with_name(f"{self.place.name}-wal")

    def log(self) -> Path:
        """The log of the only turn that runs."""
        (log,) = self.logs()
        return log

    def logs(self) -> list[Path]:
        """The logs of turns that run or are left behind."""
        directory = self.place.with_name(f"{self.place.name}.turns")
        return [log for log in directory.iterdir() if log.read_bytes().strip(b"\0")]  # an empty one may keep its room

    def fill(self, *files: Path) -> None:
        """Let none of these grow, nor anything that is as large."""
        limit = min(it.stat().st_size for it in files or (self.wal, self.log()))
        assert limit > 64 << 10, "whatever else this process writes must fit"
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class SmallDisk(LimitedDisk):
    """No block is left while it is full."""

    def fill(self, *_files: Path) -> None:
        with (self.place.parent / "filler").open("ab", buffering=0) as filler:
            for size in (1 << 16, 1 << 10, 1):
                with suppress(OSError):
                    while filler.write(bytes(size)) == size:
                        pass

    def free(self) -> None:
        (self.place.parent / "filler").unlink(missing_ok=True)


@contextmanager
def disk_at(directory: Path, kind: str) -> Generator[LimitedDisk]:
    """Give a disk of that kind; skip the test where it cannot be had."""
    directory.mkdir()
    if kind == "limited":
        disk = LimitedDisk(directory)
        try:
            yield disk
        finally:
            disk.free()
        return
    mount = ["mount", "-t", "tmpfs", "-o", f"size={CAPACITY}", "tmpfs", str(directory)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a file system of its own can be mounted by root only")
    try:
        yield SmallDisk(directory)
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)
