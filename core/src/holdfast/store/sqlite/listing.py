"""Lists of sessions, newest activity first: a walk along an index for each scope, merged as far as a page needs."""

from __future__ import annotations

import heapq
import os
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.model import Page
from holdfast.store.sqlite.rows import ListedRow
from holdfast.store.sqlite.scopes import scope_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model import ArchiveFilter, Scope, SessionInfo
    from holdfast.store.cursors import Cursor
    from holdfast.store.sqlite.database import Database

_ARCHIVED: dict[ArchiveFilter, tuple[bool, ...]] = {"exclude": (False,), "only": (True,), "include": (False, True)}


def cursor_key(db: Database) -> bytes:
    """Return what cursors are signed with; the first to ask makes it."""
    for (key,) in db.rows("get_setting", name="cursor key"):
        return key
    with db.transaction():
        db.run("add_setting", name="cursor key", value=os.urandom(32))
    return db.value("get_setting", name="cursor key")


def list_page(
    db: Database, key: bytes, scope: Scope, cwd: str | None, archived: ArchiveFilter, cursor: str | None, limit: int
) -> Page:
    """Return a page of the sessions of a scope; `key` is what cursors are signed with."""
    from holdfast.store import cursors  # noqa: PLC0415  (a session is begun without what signs them)

    filters = cursors.filters_of(scope, cwd, archived)
    after = cursors.verify(cursor, key, filters)
    with db.snapshot():
        walks = [
            _walk(db, number, agent, scope.principal, after, limit + 1, is_archived=is_archived)
            for number, agent in scope_numbers(db, scope).items()
            for is_archived in _ARCHIVED[archived]
        ]
        newest_first = heapq.merge(*walks, key=lambda found: found[0], reverse=True)
        page = list(islice(newest_first, limit + 1))
    sessions = tuple(info for _, info in page[:limit])
    if len(page) <= limit:
        return Page(sessions, None)
    return Page(sessions, cursors.sign(cursors.Cursor(*page[limit - 1][0], filters), key))


def _walk(
    db: Database, number: int, agent: str, principal: str, after: Cursor, limit: int, *, is_archived: bool
) -> Iterator[tuple[tuple[int, int], SessionInfo]]:
    cwd = after.filters.cwd
    found = db.rows(
        "list_in_scope" if cwd is None else "list_in_directory",
        scope=number,
        archived=is_archived,
        updated_at=after.updated_at,
        n=after.n,
        limit=limit,
        **({} if cwd is None else {"cwd": cwd}),
    )
    for row in (ListedRow(*columns) for columns in found):
        yield (row.updated_at, row.n), row.info(principal, agent)
