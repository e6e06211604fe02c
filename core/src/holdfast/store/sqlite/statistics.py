"""How much is in the store, and how much space that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.reports import Directory, Size, Stats
from holdfast.store.sqlite.rows import TotalRow
from holdfast.store.usage import UsageCount

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.store.reports import AgentUsage
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.files import StoreFiles

DIRECTORIES = 10
"""So many of the directories with most sessions are named."""

_NONE = TotalRow(0, 0, None, None)


def stats(db: Database, files: StoreFiles | None) -> Stats:
    """Count what is in the store: by its indexes where they have it, so that a million sessions take a moment."""
    with db.snapshot():
        recent, archived = (
            db.first(TotalRow, "sum_sessions", archived=is_archived) or _NONE for is_archived in (False, True)
        )
        ((entries, history_bytes),) = db.rows("sum_segments")
        directories = tuple(Directory(*row) for row in db.rows("busiest_directories", limit=DIRECTORIES))
        return Stats(
            sessions=recent.sessions + archived.sessions,
            archived=archived.sessions,
            blank=db.value("count_sessions") - recent.sessions - archived.sessions,
            messages=recent.messages + archived.messages,
            entries=entries,
            history_bytes=history_bytes,
            texts=db.value("count_docs"),
            oldest=min((at for at in (recent.oldest, archived.oldest) if at is not None), default=None),
            newest=max((at for at in (recent.newest, archived.newest) if at is not None), default=None),
            directories=directories,
            size=size(db, files),
            agents=_usage(db),
        )


def _usage(db: Database) -> tuple[AgentUsage, ...]:
    count = UsageCount()
    count.add(db.rows("states"))
    return count.total()


def size(db: Database, files: StoreFiles | None) -> Size:
    """Measure the space on disk; of a store in memory, the memory."""
    pages, free = db.pages()
    if files is None:
        return Size(pages, free)
    logs = files.turns.iterdir() if files.turns.is_dir() else ()
    return Size(sum(map(_size, (*files.of_database(), *logs))), free)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it came to an end just now
        return 0
