"""Histories in the database: read in blocks, their tails made into one segment, cut and shared for forks.

What a turn adds is a segment; small ones at the end, the *tail*, are made into one before they would be too large
together, so each line is written at most twice. A tail is never shared: what a fork shares is never changed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.errors import InvalidParams, SessionNotFound
from holdfast.format import messages_in
from holdfast.format.segments import checksum, end_of_entry
from holdfast.store.history_blocks import FIRST_READ_BYTES, PART_BYTES, Segment, damaged

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from holdfast.format import Line
    from holdfast.format.segments import Cut
    from holdfast.store.history_blocks import BlockReader
    from holdfast.store.port import Claim, Shared
    from holdfast.store.postgres.claims import Held
    from holdfast.store.postgres.database import Database


async def read_blocks(database: Database, n: int, session: str, reader: BlockReader) -> AsyncGenerator[list[bytes]]:
    """Read a history as far as a reader wants it; while some blocks are sent the next are read."""
    if reader.is_done:
        return
    ahead = asyncio.ensure_future(_segments(database, n, reader.line, FIRST_READ_BYTES))
    try:
        while True:
            blocks = reader.blocks(await ahead, PART_BYTES)
            if not blocks:
                if await database.first("get_session", session) is None:  # it was deleted meanwhile
                    raise SessionNotFound(session)
                blocks = reader.missing()
            if reader.is_done:
                yield blocks
                return
            ahead = asyncio.ensure_future(_segments(database, n, reader.line, PART_BYTES))
            yield blocks
    finally:
        # What is on its way to a reader that leaves is waited for: to cancel it the driver would connect once more, and
        # over TCP leave an error behind that nobody sees to.
        await asyncio.wait({ahead})
        if not ahead.cancelled():
            ahead.exception()


async def _segments(database: Database, n: int, line: int, size: int) -> list[Segment]:
    return [Segment(*row) for row in await database.fetch("read_history", n, line, size)]


async def merge_tail(database: Database, claim: Claim, held: Held) -> None:
    """Make one segment of a history's tail. One that is damaged stays as it is: a new checksum would hide that."""
    small = [Segment(*row) for row in await database.fetch("read_tail", held.n, held.end.tail)]
    if len(small) < 2 or not all(segment.is_whole() for segment in small):
        return
    body = b"\n".join([segment.body for segment in small])
    places, at = list[int](), 0
    for segment in small:
        places.append(at)
        at += len(segment.body) + 1
    await database.fetch(
        "merge_tail", held.node.id, held.n, claim.epoch, held.end.lines, held.end.tail,
        small[0].segment, body, checksum(body), sum(segment.lines for segment in small),
        [segment.segment for segment in small[1:]], places[1:],
    )  # fmt: skip


async def find_cut(database: Database, session: str, n: int, up_to: str, lines: Sequence[Line]) -> tuple[Cut, int]:
    """Find where a fork ends that goes on with `lines`, and count the messages in it."""
    rows = [Segment(*row) for row in await database.fetch("read_tail", n, 0)]
    for row in rows:
        if not row.is_whole():
            raise damaged(session, row.position, row.end)
    cut = end_of_entry(((row.position, row.body) for row in rows), up_to)
    if cut is None:
        raise InvalidParams(f"The session has no message or tool call {up_to!r}")
    shared = sum(messages_in(row.body) for row in rows if row.position < cut.position)
    own = (b"\n".join(cut.lines), b"\n".join([line.body for line in lines]))
    return cut, shared + sum(map(messages_in, own))


async def share_tail(database: Database, shared: Shared) -> tuple[int, int]:
    """Let a session that nobody has share its beginning; return its number, and how many lines are in whole segments.

    Return zeros where somebody has it: what they know of its tail would not hold any more.
    """
    n = await database.value("share_tail", shared.session)
    return (0, 0) if n is None else (n, await database.value("whole_segments", n, shared.lines))
