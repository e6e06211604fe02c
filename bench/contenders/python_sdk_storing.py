"""The official Python SDK as an agent that stores each update before it sends it, in the way one would first think of.

``STORE`` is where: SQLite from the standard library, WAL, synchronous=NORMAL, a commit for each update. That survives
the death of the process, as ours does.
"""

# pyright: reportAbstractUsage=false

from __future__ import annotations

import asyncio
import sqlite3
import sys

from acp import run_agent, update_agent_message_text
from meter import Meter
from python_sdk_agent import BURST, TEXT, BenchAgent


class StoringAgent(BenchAgent):
    def __init__(self, meter: Meter, path: str) -> None:
        super().__init__(meter)
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = NORMAL")
        self.db.execute("CREATE TABLE event (n INTEGER PRIMARY KEY, session TEXT NOT NULL, body TEXT NOT NULL)")

    async def say(self, session: str) -> None:
        update = update_agent_message_text(TEXT)
        body = update.model_dump_json(by_alias=True, exclude_none=True)
        self.db.execute("INSERT INTO event (session, body) VALUES (?, ?)", (session, body))
        await self.client.session_update(session, update)

    async def burst(self, session: str, count: int) -> None:
        for _ in range(count // BURST):
            await asyncio.gather(*(self.say(session) for _ in range(BURST)))

    async def tick(self, session: str, count: int) -> None:
        for _ in range(count):
            await self.say(session)


async def main(path: str) -> None:
    meter = Meter()
    await run_agent(StoringAgent(meter, path))
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
