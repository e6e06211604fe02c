"""The official Python SDK as a client. Each argument is the text of a prompt, as in `ours_client.py`."""

# pyright: reportAbstractUsage=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

import asyncio
import sys
from typing import Any

from acp import Client, connect_to_agent, stdio_streams, text_block
from acp.schema import AgentMessageChunk
from meter import Meter


class BenchClient(Client):
    def __init__(self) -> None:
        self.handled = 0

    async def session_update(self, update: object, **_others: Any) -> None:
        if isinstance(update, AgentMessageChunk):
            self.handled += 1


async def main(prompts: list[str]) -> None:
    client, meter = BenchClient(), Meter()
    reader, writer = await stdio_streams()
    async with connect_to_agent(client, writer, reader) as agent:
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd="/", mcp_servers=[])
        for prompt in prompts:
            client.handled = 0
            meter.lap(prompt)
            await agent.prompt(session_id=session.session_id, prompt=[text_block(prompt)])
            # The answer may overtake what came before it.
            while client.handled < int(prompt.partition(" ")[2]):  # noqa: ASYNC110
                await asyncio.sleep(0)
            meter.lap(None)
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
