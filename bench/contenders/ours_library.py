"""Holdfast's client library on stdio: what comes of a prompt is folded and iterated over. As `ours_client.py` else."""

from __future__ import annotations

import asyncio
import sys

from meter import Meter

from holdfast.client.agent_link import AgentLink
from holdfast.client.handshake import ClientInfo, negotiate
from holdfast.client.services import Services
from holdfast.peer import Peer, Routes
from holdfast.transport import open_stdio


async def main(prompts: list[str]) -> None:
    meter, services = Meter(), Services()
    async with Peer(open_stdio(), Routes()) as peer:
        agent = AgentLink(peer, await negotiate(peer, services, ClientInfo(), 1), services).public
        session = await agent.new_session("/")
        for prompt in prompts:
            handled = 0
            meter.lap(prompt)
            async for update in session.prompt(prompt):
                handled += update.kind == "agent_message_chunk"
            meter.lap(None)
            assert handled == int(prompt.partition(" ")[2])
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
