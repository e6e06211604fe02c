"""Finding words, newest first, without looking at all hits or putting them into an order.

The newest texts are walked through one by one: a common word is found there soon. What is older is found by the index,
which is quick for words that are not common. Asked for both at once, the database would choose the slower way for one
or the other.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from holdfast.format import event_in, searchable
from holdfast.model import UNBOUND
from holdfast.store.port import Hit
from holdfast.store.postgres.rows import encode, info_of
from holdfast.store.postgres.search_words import MANY_BYTES, asked_owner, asked_words
from holdfast.store.words import parse_query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.model import Event, SessionInfo
    from holdfast.store.port import SearchArea
    from holdfast.store.postgres.database import Database
    from holdfast.store.words import Query

WALKED = 10_000
"""So many of the newest texts are walked through: a word that is too rare for that is quickly found by the index."""

FEW = 2_000
"""Where no more texts of all principals than these have the words, each is looked at: whose it is says the text itself.
With more, the index puts the texts of the principal and those with the words together, which reads through both."""

PAGE = 200
"""So many hits are taken at a time, at least…"""

MOST_AT_A_TIME = 500
"""…and at most: their texts are in memory together."""


async def find(database: Database, text: str, area: SearchArea, limit: int) -> list[Hit]:
    """Find the newest texts of an area that have all that is asked for."""
    return [hit async for hits in _found(database, text, area, limit) for hit in hits]


async def count(database: Database, text: str, area: SearchArea, most: int) -> int:
    """Count the texts of an area that have all that is asked for, but only to `most`."""
    return sum([len(hits) async for hits in _found(database, text, area, most)])


async def _found(database: Database, text: str, area: SearchArea, limit: int) -> AsyncIterator[list[Hit]]:
    """Find the newest texts of an area that have all that is asked for, a page at a time."""
    query = parse_query(text)
    if not query.terms:
        return
    search = _Search(database, query, area, min(limit, MOST_AT_A_TIME))
    async for page in search.pages():
        hits = await search.hits(page, limit)
        yield hits
        limit -= len(hits)
        if limit <= 0:
            return


class _Search:
    """One search: what is asked for, and where."""

    def __init__(self, database: Database, query: Query, area: SearchArea, limit: int) -> None:
        self._database = database
        self._asked = query
        self._in_a_row = any(len(term.words) > 1 for term in query.terms)
        self._words = asked_words(query)
        self._owner = asked_owner(area.scope.principal)
        self._query = f"{self._owner} & {self._words}"
        self._are_few = True
        self._area = (
            area.scope.principal,
            None if area.scope.agent is None else [area.scope.agent, UNBOUND],
            None if area.cwd is None else encode(area.cwd),
            list(area.archived_values),
            area.since,
        )
        self._is_part = area.scope.agent is not None or area.is_part
        self._limit = limit
        self._page = max(limit, PAGE)

    async def pages(self) -> AsyncIterator[list[Any]]:
        """Find what has all of the words, newest first, a page at a time."""
        newest = await self._database.value("newest_doc")
        floor, before = max(newest - WALKED, 0), newest
        found: list[Any] = []
        while before > floor:
            found = await self._database.fetch("walk_words", floor, before, self._query, self._page)
            before = found[-1]["id"] - 1 if len(found) == self._page else floor
            if found and (before > floor or len(found) >= self._limit):
                yield found
                found = []
        while before > 0:
            older = await self._older(before)
            before = older[-1]["id"] - 1 if len(older) == self._page else 0
            found += older  # with the last of those that were walked through
            if found:
                yield found
                found = []
        if found:
            yield found

    async def _older(self, before: int) -> list[Any]:
        if not self._is_part:
            if self._are_few:
                asked = (before, self._words, self._owner, FEW + 1, self._page)
                found = await self._database.fetch("find_few_words", *asked)
                if found[0]["total"] <= FEW:
                    return [row for row in found if row["id"] is not None]
                self._are_few = False
            return await self._database.fetch("find_words", before, self._query, self._page)
        # Hits of others would otherwise be passed over one by one.
        return await self._database.fetch("find_words_of_sessions", before, self._query, self._page, *self._area)

    async def hits(self, docs: list[Any], limit: int) -> list[Hit]:
        """Return the first hits among texts that are in sessions of the area."""
        found: list[Hit] = []
        size = limit
        while docs and len(found) < limit:
            part, docs = docs[:size], docs[size:]
            found += await self._hits_in(part)
            size *= 2  # most of them are elsewhere, or not what was asked for
        return found[:limit]

    async def _hits_in(self, docs: list[Any]) -> list[Hit]:
        columns = ([doc[name] for doc in docs] for name in ("id", "segment", "session"))
        rows = await self._database.fetch("sessions_of_docs", *columns, *self._area)
        sessions = {row["doc"]: info_of(row) for row in rows}
        docs = [doc for doc in docs if doc["id"] in sessions]
        bodies = await self._excerpts(docs)
        hits = (self._hit(doc, sessions[doc["id"]], bodies.get(doc["id"])) for doc in docs)
        return [hit for hit in hits if hit is not None]

    async def _excerpts(self, docs: list[Any]) -> dict[int, bytes]:
        docs = [doc for doc in docs if doc["segment"] is not None]
        columns = ([doc[name] for doc in docs] for name in ("id", "segment", "at", "size"))
        return {row["doc"]: row["body"] for row in await self._database.fetch("excerpts", *columns)} if docs else {}

    def _hit(self, doc: Any, info: SessionInfo, body: bytes | None) -> Hit | None:
        if doc["segment"] is None:
            kind, key, text, is_long = "title", "", info.title or "", False
        elif not body:  # it was made into one with others just now, or deleted
            return None
        else:
            lines, is_long = body.split(b"\n"), len(body) > MANY_BYTES
            first = event_in(lines[0])
            kind, key = first.rule.entity or first.kind, first.key
            text = searchable(takewhile(lambda line: _is_same(event_in(line), first), lines))
        # The index knows not which words are in a row, and a long text by digests only.
        if (self._in_a_row or is_long) and not self._asked.is_in(text):
            return None
        return Hit(info, kind, key, text, self._asked.marks(text))


def _is_same(event: Event, other: Event) -> bool:
    """Return whether two events are about the same entry: one may be stored on several lines, one after the other."""
    return (event.rule.entity, event.key) == (other.rule.entity, other.key)
