"""Reading and writing a file descriptor in a thread, where the event loop cannot watch it.

That is so for regular files, and for everything on Windows. `holdfast.transport.descriptors` chooses.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

READ_BYTES = 64 << 10
"""The most that is read by one system call."""


class ThreadInput:
    """Reads in a thread of its own, one chunk at a time: while the loop is busy none are heaped up for it."""

    def __init__(self, fd: int, on_chunk: Callable[[bytes], None]) -> None:
        self._fd = fd
        self._on_chunk = on_chunk
        self._loop = asyncio.get_running_loop()
        self._may_read = threading.Event()
        self._taken = threading.Event()
        self._closed = False
        # A daemon: a read that never returns must not keep the process.
        threading.Thread(target=self._run, name="holdfast-read", daemon=True).start()

    def resume(self) -> None:
        self._may_read.set()

    def pause(self) -> None:
        self._may_read.clear()

    def close(self) -> None:
        self._closed = True
        self._may_read.set()
        self._taken.set()

    def _run(self) -> None:
        chunk = b"-"
        while chunk and self._may_read.wait() and not self._closed:
            try:
                chunk = os.read(self._fd, READ_BYTES)
            except OSError:
                chunk = b""
            self._taken.clear()
            if self._closed or not _call_in_loop(self._loop, self._deliver, chunk):
                break
            self._taken.wait()
        os.close(self._fd)

    def _deliver(self, chunk: bytes) -> None:
        if not self._closed:
            self._on_chunk(chunk)
        self._taken.set()


class ThreadOutput:
    """Writes in a thread of its own."""

    def __init__(self, fd: int, on_progress: Callable[[], None]) -> None:
        self._fd = fd
        self._on_progress = on_progress
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[bytes | None] = SimpleQueue()
        self.unsent: int = 0
        self.broken: bool = False
        threading.Thread(target=self._run, name="holdfast-write", daemon=True).start()

    def write(self, *pieces: bytes) -> None:
        for piece in pieces if not self.broken else ():
            self.unsent += len(piece)
            self._work.put(piece)

    def close(self) -> None:
        self._drop()
        self._work.put(None)

    def _run(self) -> None:
        while (data := self._work.get()) is not None and not self.broken:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError:
                _call_in_loop(self._loop, self._wrote, -1)
                break
            if not _call_in_loop(self._loop, self._wrote, len(data)):
                break
        with suppress(OSError):
            os.close(self._fd)

    def _wrote(self, size: int) -> None:
        if size < 0:
            self._drop()
        elif not self.broken:
            self.unsent -= size
        self._on_progress()

    def _drop(self) -> None:
        self.broken = True
        self.unsent = 0


def _call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], argument: object) -> bool:
    """Call a function from the loop's thread; return whether there is still a loop."""
    try:
        loop.call_soon_threadsafe(callback, argument)
    except RuntimeError:
        return False
    return True
