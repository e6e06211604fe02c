"""Reading and writing a file descriptor beside an event loop.

Where the loop can watch the descriptor it does; where it cannot (regular files, anything on Windows) a thread reads or
writes instead. Whoever calls `open_input` and `open_output` does not know which.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
from collections import deque
from contextlib import suppress
from itertools import islice
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

READ_BYTES = 64 << 10

AT_ONCE = 64
"""So many pieces are written by one system call; systems take 1,024."""

HANGUP_SECONDS = 0.1
"""While reading is paused, this often a look is taken whether anybody is left who could write."""


class Input(Protocol):
    """Reads chunks from a descriptor it owns. Starts paused; an empty chunk is the end."""

    def resume(self) -> None:
        """Read, from now on."""
        ...

    def pause(self) -> None:
        """Do not read until resumed."""
        ...

    def close(self) -> None:
        """Stop for good and close the descriptor."""
        ...


class Output(Protocol):
    """Writes chunks to a descriptor it owns, and tells of progress while anything waits."""

    unsent: int
    broken: bool

    def write(self, *pieces: bytes) -> None:
        """Write, now or as soon as there is room."""
        ...

    def close(self) -> None:
        """Stop for good and close the descriptor."""
        ...


def open_input(fd: int, on_chunk: Callable[[bytes], None], *, threads: bool = False) -> Input:
    """Read a descriptor by the event loop where it can, by a thread where it cannot."""
    if threads or not _watchable(fd):
        return ThreadInput(fd, on_chunk)
    return LoopInput(fd, on_chunk)


def open_output(fd: int, on_progress: Callable[[], None], *, threads: bool = False) -> Output:
    """Write a descriptor from the event loop where it can be told not to block, from a thread where it cannot."""
    if threads or sys.platform == "win32":
        return ThreadOutput(fd, on_progress)
    return LoopOutput(fd, on_progress)


def _watchable(fd: int) -> bool:
    loop = asyncio.get_running_loop()
    try:
        loop.add_reader(fd, _nothing)
        loop.remove_reader(fd)
    except (OSError, NotImplementedError):
        return False
    return True


def _nothing() -> None: ...


class LoopInput:
    """Reads when the loop says that reading will not block.

    A writer that hangs up is noticed even while reading is paused, or a process whose client neither reads nor writes
    any more would wait for it for ever (A11). What it left unread is no more than a pipe holds, so it is read then.
    """

    def __init__(self, fd: int, on_chunk: Callable[[bytes], None]) -> None:
        self._fd = fd
        self._on_chunk = on_chunk
        self._loop = asyncio.get_running_loop()
        self._hung_up = False
        self._look: asyncio.TimerHandle | None = None

    def resume(self) -> None:
        if self._fd >= 0:
            self._stop_looking()
            self._loop.add_reader(self._fd, self._readable)

    def pause(self) -> None:
        if self._fd >= 0 and not self._hung_up:
            self._stop()
            self._look = self._loop.call_later(HANGUP_SECONDS, self._look_for_hangup)

    def close(self) -> None:
        if self._fd >= 0:
            self._stop()
            os.close(self._fd)
            self._fd = -1

    def _stop(self) -> None:
        self._stop_looking()
        self._loop.remove_reader(self._fd)

    def _stop_looking(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _look_for_hangup(self) -> None:
        watch = select.poll()
        watch.register(self._fd, getattr(select, "POLLRDHUP", 0))
        if watch.poll(0):
            self._hung_up = True
            self.resume()
        else:
            self.pause()

    def _readable(self) -> None:
        try:
            chunk = os.read(self._fd, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # a terminal that went away says EIO
            chunk = b""
        if not chunk:
            self._stop()
        self._on_chunk(chunk)


class LoopOutput:
    """Writes at once what the descriptor takes, and the rest when the loop says there is room."""

    def __init__(self, fd: int, on_progress: Callable[[], None]) -> None:
        self._was_blocking = os.get_blocking(fd)
        os.set_blocking(fd, False)
        self._fd = fd
        self._on_progress = on_progress
        self._loop = asyncio.get_running_loop()
        self._backlog: deque[memoryview] = deque()
        self.unsent = 0
        self.broken = False

    def write(self, *pieces: bytes) -> None:
        unsent = sum(map(len, pieces))
        written = 0
        if not self._backlog:
            written = self._try(*pieces[:AT_ONCE])
            if written == unsent or self.broken:
                return
            self._loop.add_writer(self._fd, self._writable)
        self.unsent += unsent - written
        for piece in pieces:
            if written < len(piece):
                self._backlog.append(memoryview(piece)[written:])
            written = max(0, written - len(piece))

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_writer(self._fd)
            os.set_blocking(self._fd, self._was_blocking)  # others may share what is behind it
            os.close(self._fd)
            self._fd = -1
            self._drop()

    def _writable(self) -> None:
        written = self._try(*islice(self._backlog, AT_ONCE))
        self.unsent -= written
        while self._backlog and written >= len(self._backlog[0]):
            written -= len(self._backlog.popleft())
        if self._backlog:
            self._backlog[0] = self._backlog[0][written:]
        elif not self.broken:
            self._loop.remove_writer(self._fd)
        self._on_progress()

    def _try(self, *pieces: bytes | memoryview) -> int:
        """Write what goes in now. An output nobody will read any more is broken from then on."""
        try:
            return os.write(self._fd, *pieces) if len(pieces) == 1 else os.writev(self._fd, pieces)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            if self._backlog:
                self._loop.remove_writer(self._fd)
            self._drop()
            self._loop.call_soon(self._on_progress)
            return 0

    def _drop(self) -> None:
        self.broken = True
        self._backlog.clear()
        self.unsent = 0


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
            if self._closed or not _tell(self._loop, self._deliver, chunk):
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
        self.unsent = 0
        self.broken = False
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
                _tell(self._loop, self._wrote, -1)
                break
            if not _tell(self._loop, self._wrote, len(data)):
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


def _tell(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], argument: object) -> bool:
    try:
        loop.call_soon_threadsafe(callback, argument)
    except RuntimeError:  # the loop is gone, and with it everyone who would listen
        return False
    return True
