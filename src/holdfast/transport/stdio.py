"""Our own stdin and stdout as a transport: what an editor talks to.

While it is open nothing else reaches the real stdout (A1): descriptor 1 leads to stderr, for Python code, for C code
and for child processes alike, and descriptor 0 to nothing, so that nobody steals the client's words. SIGTERM and
SIGINT end the input as if the client had closed it (A11).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from holdfast.transport.lines import MAX_LINE_BYTES
from holdfast.transport.pipes import PipeTransport


def open_stdio(*, limit: int = MAX_LINE_BYTES) -> StdioTransport:
    """Take over this process's stdin and stdout until the transport is closed."""
    return StdioTransport(os.dup(0), _own_output(), limit=limit)


class StdioTransport(PipeTransport):
    """See `open_stdio`."""

    def __init__(self, read_fd: int, write_fd: int, *, limit: int) -> None:
        super().__init__(read_fd, write_fd, limit=limit)
        self._real = (os.dup(0), os.dup(1))
        self._stdout = sys.stdout
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # started without a stderr
            os.dup2(nowhere, 1)
        os.close(nowhere)
        sys.stdout = sys.stderr
        with suppress(OSError, ValueError):
            self._stdout.flush()  # what was printed before, and not written yet, must not reach the client either
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().add_signal_handler(number, self.end_input)

    async def close(self, flush_for: float) -> None:
        """Flush, and give stdin and stdout back as they were."""
        await super().close(flush_for)
        if self._real:
            (stdin, stdout), self._real = self._real, ()
            with suppress(OSError, ValueError):
                self._stdout.flush()
            sys.stdout = self._stdout
            for real, fd in ((stdin, 0), (stdout, 1)):
                os.dup2(real, fd)
                os.close(real)
            for number in (signal.SIGTERM, signal.SIGINT):
                with suppress(NotImplementedError, RuntimeError, ValueError):
                    asyncio.get_running_loop().remove_signal_handler(number)


def _own_output() -> int:
    """Get a descriptor for stdout whose blocking mode is ours alone.

    A duplicate shares it with everyone who has the same pipe or terminal, stderr and the parent shell perhaps among
    them, and they would be surprised to find it non-blocking. Opened anew through /proc it is our own.
    """
    anew = Path("/proc/self/fd/1")
    with suppress(OSError):
        if anew.is_fifo() or anew.is_char_device():
            return os.open(anew, os.O_WRONLY | os.O_NONBLOCK)
    return os.dup(1)
