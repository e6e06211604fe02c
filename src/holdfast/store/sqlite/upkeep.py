"""How much is in the store, and how much space that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.reports import Directory, Size, Stats

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.store.sqlite.database import Database

DIRECTORIES = 10
"""So many of the directories with most sessions are named."""


def stats(db: Database, size: Size) -> Stats:
    """Count what is in the store: by its indexes where they have it, so that a million sessions take a moment."""
    with db.snapshot():
        recent, archived = db.only("sum_recent"), db.only("sum_archived")
        total, segments, docs = db.only("count_sessions"), db.only("sum_segments"), db.only("count_docs")
        directories = tuple(Directory(*row) for row in db.rows("busiest_directories", limit=DIRECTORIES))
    return Stats(
        sessions=recent[0] + archived[0],
        archived=archived[0],
        blank=total[0] - recent[0] - archived[0],
        messages=recent[1] + archived[1],
        entries=segments[0],
        history_bytes=segments[1],
        texts=docs[0],
        oldest=min((it for it in (recent[2], archived[2]) if it is not None), default=None),
        newest=max((it for it in (recent[3], archived[3]) if it is not None), default=None),
        directories=directories,
        size=size,
    )


def size(db: Database, path: Path, turns: Path | None) -> Size:
    """Measure the space on disk; of a store in memory, the memory."""
    pages, free = db.pages()
    if turns is None:
        return Size(pages, free)
    files = [path, *(path.with_name(f"{path.name}-{it}") for it in ("wal", "shm"))]
    files += turns.iterdir() if turns.is_dir() else ()
    return Size(sum(map(_size, files)), free)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it came to an end just now
        return 0
