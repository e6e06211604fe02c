"""An editor behind `holdfast connect`: its bridge, and the connections that it has made."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from core.tests.support.acp import Client
from core.tests.support.links import PATIENCE
from holdfast.transport import memory_pair
from holdfast.transport.websocket_client import connect_websocket
from holdfast_app.bridge import Bridge, PathMap

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from core.tests.support.remote import Remote
    from holdfast.transport import Transport


class Bridged:
    """An editor, a bridge, and the connections it has made so far."""

    def __init__(self, remote: Remote, version: int, paths: PathMap | None, token: str) -> None:
        self.made: list[Any] = []
        near, far = memory_pair()
        self.editor = Client(far, version)
        headers = {"Authorization": f"Bearer {token}"}

        async def connect() -> Transport:
            made = await connect_websocket(remote.url, headers=headers)
            self.made.append(made)
            return made

        self.running = asyncio.ensure_future(Bridge(near, connect, paths).run())

    def cut(self) -> None:
        """Cut the connection, as a network does."""
        self.made[-1]._stream.abort()

    async def connected(self, times: int) -> None:
        """Wait until it has connected so often."""
        await self.until(lambda: len(self.made) >= times)

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait, not for ever, and look now and then: at every one of thousands of updates it would take long."""
        async with asyncio.timeout(PATIENCE):
            while not happened():  # noqa: ASYNC110  (what is looked at tells nobody)
                await asyncio.sleep(0.01)


@asynccontextmanager
async def bridged(
    remote: Remote, version: int = 1, paths: PathMap | None = None, token: str = "ada"
) -> AsyncGenerator[Bridged]:
    bridge = Bridged(remote, version, paths, token)
    try:
        yield bridge
    finally:
        await bridge.editor.transport.close(0.1)
        await asyncio.wait({bridge.running})
