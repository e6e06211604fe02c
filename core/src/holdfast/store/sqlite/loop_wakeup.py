"""How another thread makes the event loop call a function.

`loop.call_soon_threadsafe` sends a byte through a pair of sockets, which the loop reads until there is no more. On
Linux a counter in the kernel does that with two cheap system calls: a twentieth of a short turn (docs/decisions/014).
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class LoopWakeup:
    """Calls a function in the event loop, some time after it was asked to; once for all that asked meanwhile."""

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        self._loop = loop
        self._call = call
        self._counter = -1
        if sys.platform == "linux":
            self._counter = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            loop.add_reader(self._counter, self._called)

    def wake(self) -> None:
        """Ask for the call, from any thread. Where the loop is closed nobody is called."""
        if sys.platform == "linux":
            os.eventfd_write(self._counter, 1)
            return
        try:
            self._loop.call_soon_threadsafe(self._call)
        except RuntimeError:
            return

    def close(self) -> None:
        """Give the counter back, in the event loop; nobody may `wake` it any more."""
        if self._counter >= 0:
            self._loop.remove_reader(self._counter)
            os.close(self._counter)
            self._counter = -1

    def _called(self) -> None:
        if sys.platform == "linux":
            os.eventfd_read(self._counter)
        self._call()
