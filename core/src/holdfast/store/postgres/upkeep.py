"""How much is in the store, how much space that takes, and giving some of it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.postgres.rows import text_of
from holdfast.store.reports import Directory, Size, Stats
from holdfast.store.usage import UsageCount

if TYPE_CHECKING:
    from holdfast.store.postgres.database import Database
    from holdfast.store.reports import AgentUsage

DIRECTORIES = 10
"""So many of the directories with most sessions are named."""

TABLES = ("session", "segment", "history_segment", "doc", "private", "turn_log", "node", "scope")

LONG_DEAD = 3600.0
"""A node whose lease was over so many seconds ago is forgotten."""


async def vacuum(database: Database) -> None:
    """Remove what nobody needs, and let the space of what was deleted be used again; nobody has to wait for it."""
    await database.fetch("delete_left_over")
    await database.fetch("fence_expired_nodes", LONG_DEAD)
    await database.run_alone(*(f"VACUUM (ANALYZE) holdfast.{table}" for table in TABLES))


async def stats(database: Database) -> Stats:
    """Count what is in the store."""
    sessions = await database.first("sum_sessions")
    segments = await database.first("sum_segments")
    directories = await database.fetch("busiest_directories", DIRECTORIES)
    return Stats(
        sessions=sessions["sessions"],
        archived=sessions["archived"],
        blank=sessions["blank"],
        messages=sessions["messages"],
        entries=segments["lines"],
        history_bytes=segments["bytes"],
        texts=await database.value("count_docs"),
        oldest=sessions["oldest"],
        newest=sessions["newest"],
        directories=tuple(Directory(text_of(cwd), *row) for cwd, *row in directories),
        size=await size(database),
        agents=await _usage(database),
    )


async def _usage(database: Database) -> tuple[AgentUsage, ...]:
    count, last = UsageCount(), 0
    while rows := await database.fetch("some_states", last):
        count.add((row["agent"], row["messages"], row["state"]) for row in rows)
        last = rows[-1]["n"]
    return count.total()


async def size(database: Database) -> Size:
    """Measure the space in the database. How much of it is free is what the database has counted, not measured."""
    row = await database.first("size")
    return Size(row["used"], row["free"], shrinks=False)
