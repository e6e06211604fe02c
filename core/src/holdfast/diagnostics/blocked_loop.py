"""Notices when the author's code blocks the event loop, and logs the line that does.

A handler that calls `time.sleep` or `requests.get` stops everything: other sessions, cancellation, even the answer to
its own client. A thread looks whether the loop still turns. Only what stands in the author's own code is reported: a
machine without time to spare is nobody's mistake.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from traceback import StackSummary, walk_stack
from typing import TYPE_CHECKING

from holdfast.diagnostics.tracebacks import author_frames

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

log: logging.Logger = logging.getLogger(__name__)

ADVICE = "Nothing else goes on meanwhile: await something, or give the work to `asyncio.to_thread`"


def watch_loop(loop: AbstractEventLoop, seconds: float) -> None:
    """Log a warning whenever the author's code keeps the loop, of this thread, busy for so many seconds.

    The thread that watches ends with the loop.
    """
    watched = threading.get_ident()
    threading.Thread(target=_watch, args=(loop, watched, seconds), name="loop watch", daemon=True).start()


def _watch(loop: AbstractEventLoop, watched: int, seconds: float) -> None:
    while not loop.is_closed():
        turned = threading.Event()
        asked = time.monotonic()
        try:
            loop.call_soon_threadsafe(turned.set)
        except RuntimeError:  # it was closed meanwhile
            return
        if not turned.wait(seconds) and (where := _where(watched)):
            log.warning("The event loop is blocked, here:\n%s\n%s", where, ADVICE)
            turned.wait()
            log.warning("The event loop was blocked for %.1f seconds", time.monotonic() - asked)
        time.sleep(seconds / 2)


def _where(thread: int) -> str:
    """Return what a thread does right now, as the author's own frames; empty where there are none."""
    frame = sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]
    if frame is None:
        return ""
    stack = StackSummary.extract(walk_stack(frame))
    stack.reverse()
    return "".join(StackSummary.from_list(author_frames(stack)).format()).rstrip("\n")
