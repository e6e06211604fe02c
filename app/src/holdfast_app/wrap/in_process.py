"""An agent of this process behind the proxy, reached over a socket pair as if it were a process of its own."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.transport.descriptors import PipeTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

ServeAgent: TypeAlias = "Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]"
"""Serves one connection until its input ends."""


class InProcessTransport(PipeTransport):
    """The way to an agent of this process; its task ends with the transport."""

    name: str = "the agent"
    stdout: str = ""
    stderr: str = ""

    def __init__(self, near: socket.socket, serving: asyncio.Task[None], limit: int) -> None:
        super().__init__(os.dup(near.fileno()), os.dup(near.fileno()), limit=limit)
        near.close()
        self._serving = serving

    @classmethod
    async def start(cls, serve: ServeAgent, limit: int) -> InProcessTransport:
        """Let an agent serve one end of a line; return the other end."""
        near, far = socket.socketpair()
        near.setblocking(False)  # noqa: FBT003
        reader, writer = await asyncio.open_connection(sock=far, limit=limit)
        serving = asyncio.get_running_loop().create_task(serve(reader, writer), name="agent of this process")
        return cls(near, serving, limit)

    @property
    def is_ending(self) -> bool:
        """Whether the agent serves no longer."""
        return self._serving.done()

    def keep_output(self, line: bytes) -> None:
        """Forget a line that is no message: an agent of this process prints to stderr."""

    async def close(self, flush_for: float) -> None:
        """Flush, and end the agent's task."""
        await super().close(flush_for)
        self._serving.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await self._serving
