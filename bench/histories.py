"""Sessions with a long past, for benchmarks to find: made through the store, as a turn would have made them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.format import lines_of
from holdfast.model import History, SessionInfo, SessionState, event_from
from holdfast.store import Changes, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.model import Update

LONG = "sess_with_a_long_past"
ENTRIES = 100_000
WORDS = "The quick brown fox jumps over the lazy dog and the dog does not mind at all. "


def conversation(entries: int) -> Iterator[Update]:
    """Make up a conversation: a question, a tool call, an answer, and so on."""
    for n in range(entries):
        text = {"type": "text", "text": f"{n}: {WORDS * (n % 3 + 1)}"}
        if n % 3 == 1:
            yield {
                "sessionUpdate": "tool_call_update",
                "toolCallId": f"call_{n:016}",
                "title": f"Read file {n}",
                "kind": "read",
                "status": "completed",
                "content": [{"type": "content", "content": text}],
            }
        else:
            kind = "user_message" if n % 3 == 0 else "agent_message"
            yield {"sessionUpdate": kind, "messageId": f"msg_{n:016}", "content": [text]}


def build_long(path: Path) -> None:
    """Make a store with one session that has a long past."""
    asyncio.run(_build_long(path))


async def _build_long(path: Path) -> None:
    history = History()
    for update in conversation(ENTRIES):
        history.apply(event_from(update))
    store = await open_store(str(path))
    info = SessionInfo(LONG, "/", (), None, 1, 1, archived=False, messages=0)
    claim = await store.create(info, SessionState())
    await store.begin(claim, [b"{}"], Changes())
    await store.seal(claim, lines_of(history), Changes(), messages=len(history))
    await store.release(claim)
    await store.close()
