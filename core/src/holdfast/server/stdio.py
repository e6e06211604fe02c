"""An agent on stdin and stdout: what an editor starts, talks to and ends."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.peer import PeerLimits
from holdfast.server.connection import ClientConnection
from holdfast.transport import open_stdio

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from holdfast.peer import Observer
    from holdfast.server.host import Host

log: logging.Logger = logging.getLogger(__name__)

# These and the rest, one after the other, stay below two seconds (A11).
LIMITS = PeerLimits(linger=0.2, end_grace=0.3, flush=0.3)
REST = 0.95
"""How long it may take then to end and store turns, to call hooks and to stop MCP servers."""
GRACE = 0.4
"""What a turn may take of it."""


async def serve_stdio(host: Host, *, on_frame: Observer | None = None) -> None:
    """Serve one client until it closes our stdin or sends SIGTERM; `on_frame` is shown every message.

    Whatever has not ended then within its time ends with the process: what was said is in the logs of its turns, and
    our children are under guard.
    """
    await ClientConnection(host, open_stdio(), limits=LIMITS, is_only=True, on_frame=on_frame).run()
    ending = asyncio.get_running_loop().create_task(host.shut_down(GRACE), name="shut down")
    await asyncio.wait({ending}, timeout=REST)
    if not ending.done():
        log.warning("Not everything has ended in time; it is left behind")
    elif not ending.cancelled() and (failure := ending.exception()) is not None:
        log.warning("Shutting down failed", exc_info=failure)


def run_to_the_end(serving: Coroutine[Any, Any, None]) -> NoReturn:
    """Serve, and then leave, even if somebody's code does not want to."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(serving)
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # started without one, there is none
            stream.flush()
    # Tasks that refuse to be cancelled, threads that never return: everything that matters is stored by now.
    os._exit(0)
