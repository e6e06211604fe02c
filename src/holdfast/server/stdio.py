"""An agent on stdin and stdout: what an editor starts, talks to and ends."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.peer import Limits
from holdfast.server.connection import Connection
from holdfast.transport import open_stdio

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from holdfast.server.host import Host

log = logging.getLogger(__name__)

# Together with what the engine takes to commit, these keep the whole end within two seconds (A11).
LIMITS = Limits(linger=0.2, end_grace=0.4, flush=0.3)
GRACE = 0.4


async def serve_stdio(host: Host) -> None:
    """Serve one client until it closes our stdin or sends SIGTERM."""
    await Connection(host, open_stdio(), limits=LIMITS).run()
    with suppress(Exception):
        await host.shut_down(GRACE)


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
