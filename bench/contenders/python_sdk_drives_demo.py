"""The official Python SDK's client starts our demo agent, storing at ``STORE``, and has it stream ``COUNT`` updates."""

# pyright: reportAbstractUsage=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from acp import spawn_agent_process, text_block
from meter import Meter
from python_sdk_client import BenchClient


def cpu_of(pid: int) -> float:
    """Seconds that a process was busy, by itself and for itself."""
    numbers = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


async def main(count: int, store: str) -> None:
    client, meter = BenchClient(), Meter()
    command = (sys.executable, "-m", "holdfast", "run", "demo", "--store", store)
    async with spawn_agent_process(client, *command, env=dict(os.environ)) as (agent, process):
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd="/", mcp_servers=[])
        for lap in ("warm up", "stream"):
            client.handled = 0
            before = cpu_of(process.pid)
            meter.lap(lap)
            await agent.prompt(session_id=session.session_id, prompt=[text_block(f"/stream {count}")])
            while client.handled < count:  # noqa: ASYNC110  (the answer may overtake what came before it)
                await asyncio.sleep(0)
            meter.lap(None)
            meter.more["agent cpu"] = cpu_of(process.pid) - before
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
