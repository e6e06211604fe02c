"""Sessions added with all of their history: those that are copied in, and forks of what another process may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from holdfast.errors import SessionNotFound
from holdfast.format import with_texts
from holdfast.format.segments import Cut
from holdfast.store.history_blocks import Segment, damaged
from holdfast.store.port import PrivateEntry
from holdfast.store.postgres.histories import find_cut, share_tail
from holdfast.store.postgres.rows import HistoryEnd, info_columns
from holdfast.store.postgres.segments import NewSegments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.format import Line
    from holdfast.model import SessionInfo, SessionState
    from holdfast.store.port import Shared
    from holdfast.store.postgres.database import Database


class NewSession(NamedTuple):
    """A session to be added, and the number of its scope."""

    info: SessionInfo
    state: SessionState
    scope: int


async def add_copy(
    database: Database,
    new: NewSession,
    lines: Sequence[Line],
    private: Sequence[PrivateEntry],
    shared: Shared | None,
) -> None:
    """Add a session with its whole history; what it shares with another that is still there is stored once."""
    source, cut = (0, 0) if shared is None else await share_tail(database, shared)
    for n, begins in dict.fromkeys([(source, cut), (0, 0)]):
        if await _add(database, new, lines[begins:], private, (n, begins)):
            return


async def _add(
    database: Database,
    new: NewSession,
    lines: Sequence[Line],
    private: Sequence[PrivateEntry],
    shared: tuple[int, int],
) -> bool:
    """Add a session; before its `lines` come those `shared` with another: of that number, so many.

    Return whether that one was there.
    """
    remembered = [
        [entry.start for entry in private],
        [entry.position for entry in private],
        [entry.data for entry in private],
    ]
    segments = NewSegments(HistoryEnd(shared[1], shared[1], 0), lines, new.info.principal)
    arguments = (*info_columns(*new), *segments.end, *segments.columns, *remembered, *shared)
    return bool(await database.transact(("lock_deleting", ()), ("add_session", arguments)))


class AddedFork(NamedTuple):
    """What came of a fork."""

    lines: int
    cuts_private: bool
    is_earlier: bool


async def add_fork(
    database: Database, source: Any, new: NewSession, up_to: str | None, earlier: Sequence[Line] = ()
) -> AddedFork:
    """Fork a session whose writer may be another process, and goes on: nothing of it is changed.

    What is before the tail of its history is never changed by anybody, and is shared; the rest is stored anew.
    """
    cut, messages = Cut(source["lines"], []), new.info.messages
    if up_to is not None:
        cut, messages = await find_cut(database, source["id"], source["n"], up_to, [])
    shared = min(cut.position, source["tail"])
    lines = (await _lines_from(database, source, shared))[: cut.end - shared]
    private: list[PrivateEntry] = []
    if (source["principal"], source["agent"]) == (new.info.principal, new.info.agent):
        private = [PrivateEntry(*entry) for entry in await database.fetch("read_private", source["n"])]
    kept = [entry for entry in private if entry.position <= cut.end]
    new = new._replace(info=msgspec.structs.replace(new.info, messages=messages))
    is_earlier = cut.end < source["lines"]
    note = earlier if is_earlier else ()
    if not await _add(database, new, [*with_texts(lines), *note], kept, (source["n"], shared)):
        raise SessionNotFound(source["id"])
    cuts_private = any(entry.start < cut.end < entry.position for entry in private)
    return AddedFork(cut.end + len(note), cuts_private, is_earlier)


async def _lines_from(database: Database, source: Any, position: int) -> list[bytes]:
    segments = [Segment(*row) for row in await database.fetch("read_tail", source["n"], position)]
    for segment in segments:
        if not segment.is_whole():
            raise damaged(source["id"], segment.position, segment.end)
    return [line for segment in segments for line in segment.body.split(b"\n")]
