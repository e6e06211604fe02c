"""The MCP SDK by itself: ``mcp_sdk_connect.py COMMAND…`` connects the command whenever a line comes, until the next."""

from __future__ import annotations

import asyncio
import sys

from mcp import Client, StdioServerParameters, stdio_client


async def main(command: str, *arguments: str) -> None:
    server = StdioServerParameters(command=command, args=list(arguments))
    while sys.stdin.readline():  # nothing else is to be done meanwhile
        async with Client(stdio_client(server), mode="legacy"):  # the handshake that ours begins with
            print("connected", flush=True)
            sys.stdin.readline()
        print("closed", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
