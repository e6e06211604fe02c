"""Our own stdin and stdout as a transport: what an editor talks to.

Once it is open nothing else reaches the real stdout (A1): descriptor 1 leads to stderr, for Python code, for C code
and for child processes alike, and descriptor 0 to nothing, so that nobody reads what the client sends. That stays so
after closing, because C code writes what it buffered when the process exits, and a handler left behind may print
still. SIGTERM and SIGINT end the input as if the client had closed it, and after that mean nothing more (A11).
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from contextlib import suppress

from holdfast.transport.descriptors import PipeTransport
from holdfast.transport.lines import MAX_LINE_BYTES

PIPE_BYTES = 256 << 10


def open_stdio(*, limit: int = MAX_LINE_BYTES) -> StdioTransport:
    """Take over this process's stdin and stdout for good."""
    return StdioTransport(_own_input(), _own_output(), limit=limit)


class StdioTransport(PipeTransport):
    """See `open_stdio`."""

    def __init__(self, read_fd: int, write_fd: int, *, limit: int) -> None:
        super().__init__(read_fd, write_fd, limit=limit)
        self._stdout, sys.stdout = sys.stdout, sys.stderr
        nowhere = os.open(os.devnull, os.O_RDWR)
        if sys.__stdin__ is not None:
            os.dup2(nowhere, 0)
        if sys.__stdout__ is not None:
            os.dup2(nowhere if sys.__stderr__ is None else 2, 1)
        os.close(nowhere)
        self._flush_python()  # what was printed before, and not written yet, must not reach the client either
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().add_signal_handler(number, self.end_input)

    async def close(self, flush_for: float) -> None:
        """Flush. The signal handlers stay: what is left to do may take a moment, and a signal must not cut it short."""
        await super().close(flush_for)
        self._flush_python()

    def _flush_python(self) -> None:
        with suppress(OSError, ValueError, AttributeError):  # there may be none
            self._stdout.flush()


# A process may be started without a stdin, stdout or stderr. Python has none of that name then, and the number may
# belong to anything by now: an event loop's own descriptor, for one.


def _own_input() -> int:
    return os.open(os.devnull, os.O_RDONLY) if sys.__stdin__ is None else os.dup(0)


def _own_output() -> int:
    """Return a descriptor for stdout whose blocking mode is ours alone.

    A duplicate shares it with everyone who has the same pipe or terminal, stderr and the parent shell perhaps among
    them, and they would be surprised to find it non-blocking. Opened anew through /proc it is our own.
    """
    if sys.__stdout__ is None:
        return os.open(os.devnull, os.O_WRONLY)
    if sys.platform != "linux":
        return os.dup(1)
    anew = "/proc/self/fd/1"
    with suppress(OSError):
        mode = os.stat(anew).st_mode  # noqa: PTH116  (pathlib takes as long to import as all our transports)
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
            fd = os.open(anew, os.O_WRONLY | os.O_NONBLOCK)
            _widen(fd)
            return fd
    return os.dup(1)


def _widen(fd: int) -> None:
    """Enlarge a pipe's buffer, so that a long history is not handed over in small pieces."""
    if sys.platform == "linux":
        import fcntl  # noqa: PLC0415  (there is none on Windows)

        with suppress(OSError):  # refused to whoever has much already
            if fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) < PIPE_BYTES:
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
