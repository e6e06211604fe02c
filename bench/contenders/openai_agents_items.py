"""`openai-agents`: its `SQLiteSession` appends ``COUNT`` items, one by one, to a store at ``STORE``, and loads them."""

# pyright: basic, reportMissingImports=false
# It lives in an environment of its own: .venv-bench.

from __future__ import annotations

import asyncio
import sys

from agents import SQLiteSession
from meter import Meter

TEXT = "a few words of an answer, say 32"


async def main(count: int, store: str) -> None:
    meter = Meter()
    session = SQLiteSession("session", store)
    meter.lap("append")
    for n in range(count):
        await session.add_items([{"role": "assistant" if n % 2 else "user", "content": TEXT}])
    meter.lap("load")
    assert len(await session.get_items()) == count
    meter.lap(None)
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
