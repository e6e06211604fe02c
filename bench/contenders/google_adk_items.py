"""`google-adk`: its `DatabaseSessionService` appends ``COUNT`` events, one by one, to ``STORE``, and loads them."""

# pyright: basic, reportMissingImports=false
# It lives in an environment of its own: .venv-bench.

from __future__ import annotations

import asyncio
import sys

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService
from google.genai.types import Content, Part
from meter import Meter

TEXT = "a few words of an answer, say 32"
NAMES = {"app_name": "bench", "user_id": "somebody", "session_id": "session"}


async def main(count: int, store: str) -> None:
    meter = Meter()
    scheme = "postgresql+asyncpg" if store.startswith("postgresql:") else "sqlite+aiosqlite"
    service = DatabaseSessionService(f"{scheme}:{store.partition(':')[2]}" if ":" in store else f"{scheme}:///{store}")
    session = await service.create_session(**NAMES)
    meter.lap("append")
    for n in range(count):
        role = "model" if n % 2 else "user"
        await service.append_event(session, Event(author=role, content=Content(role=role, parts=[Part(text=TEXT)])))
    meter.lap("load")
    loaded = await service.get_session(**NAMES)
    assert loaded is not None and len(loaded.events) == count
    meter.lap(None)
    await service.close()
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
