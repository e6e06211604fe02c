"""`google-adk`: its `DatabaseSessionService` appends ``COUNT`` events, one by one, to ``STORE``, and loads them."""

# pyright: basic, reportMissingImports=false
# It lives in an environment of its own: .venv-bench.

from __future__ import annotations

import asyncio
import sys

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService, Session
from google.genai.types import Content, Part
from meter import WARM_UP, Meter

TEXT = "a few words of an answer, say 32"
NAMES = {"app_name": "bench", "user_id": "somebody"}


async def append(service: DatabaseSessionService, session: Session, count: int) -> None:
    """Append so many events to a session."""
    for n in range(count):
        role = "model" if n % 2 else "user"
        await service.append_event(session, Event(author=role, content=Content(role=role, parts=[Part(text=TEXT)])))


async def main(count: int, store: str) -> None:
    meter = Meter()
    scheme = "postgresql+asyncpg" if store.startswith("postgresql:") else "sqlite+aiosqlite"
    service = DatabaseSessionService(f"{scheme}:{store.partition(':')[2]}" if ":" in store else f"{scheme}:///{store}")
    await append(service, await service.create_session(**NAMES, session_id="warm up"), WARM_UP)
    session = await service.create_session(**NAMES, session_id="session")
    meter.lap("append")
    await append(service, session, count)
    meter.lap("load")
    loaded = await service.get_session(**NAMES, session_id="session")
    assert loaded is not None and len(loaded.events) == count
    meter.lap(None)
    await service.close()
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
