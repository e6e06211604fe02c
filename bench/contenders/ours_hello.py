"""Holdfast as the least agent there can be: it answers `initialize`."""

import asyncio

from msgspec import Raw

from holdfast.peer import Peer, Routes
from holdfast.transport import open_stdio


async def initialize(_params: Raw) -> object:
    return {"protocolVersion": 1, "agentCapabilities": {}}


async def main() -> None:
    routes = Routes()
    routes.request("initialize", initialize)
    await Peer(open_stdio(), routes).run()


if __name__ == "__main__":
    asyncio.run(main())
