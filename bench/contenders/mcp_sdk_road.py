"""The `mcp` SDK calls a tool, client and server in one process; what it calls on the way is printed on stderr."""

from __future__ import annotations

import asyncio
import sys

from mcp.client import Client
from mcp.server.mcpserver import MCPServer
from road_recorder import Recorder

SETTLES = 0.1
server = MCPServer("echo")


@server.tool()
def echo(text: str) -> str:
    return text


async def main() -> None:
    recorder = Recorder("mcp")
    recorder.watch_threads()
    async with Client(server) as client:
        await client.call_tool("echo", {"text": "hello"})
        recorder.start("mcp")
        await client.call_tool("echo", {"text": "hello"})
        await asyncio.sleep(SETTLES)
        recorder.stop()
    print(recorder.report(), file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main())
