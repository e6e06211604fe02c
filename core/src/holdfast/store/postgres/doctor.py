"""What may be wrong with a store, one check after the other. Each says what it found, in words for the user.

Nothing is changed by looking. What can be put right without losing anything is told by name, and done by `repair`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from holdfast.errors import StoreError
from holdfast.format import with_texts
from holdfast.format.segments import is_whole
from holdfast.store.history_blocks import Segment
from holdfast.store.postgres.database import migrations
from holdfast.store.postgres.rows import title_of
from holdfast.store.postgres.search_words import indexed_words
from holdfast.store.postgres.segments import texts_in
from holdfast.store.reports import Finding

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from holdfast.store.postgres.database import Database

BACKUP = "Export what can still be read, and restore a backup of the database"
SHOWN = 3
"""So many examples are named."""

Check: TypeAlias = "Callable[[Database], Coroutine[Any, Any, Finding]]"


async def check_server(database: Database) -> Finding:
    """Find out whether the server keeps what it acknowledges."""
    settings = {row["name"]: row["setting"] for row in await database.fetch("server_settings")}
    unsafe = [name for name in ("fsync", "full_page_writes", "synchronous_commit") if settings.get(name) == "off"]
    says = f"PostgreSQL {settings['server_version']}, schema {len(migrations())}"
    if unsafe:
        return Finding(
            "server",
            "problem",
            f"{says}; {' and '.join(unsafe)} is off",
            "What clients were shown may be lost when the server or its machine fails. Set it on",
        )
    if settings.get("data_checksums") == "off":
        return Finding("server", "ok", f"{says}; its pages have no checksums (`pg_checksums --enable` adds them)")
    return Finding("server", "ok", says)


async def check_references(database: Database) -> Finding:
    """Find out whether every row that refers to another finds it."""
    if lost := await database.value("lost_references"):
        return Finding("database", "problem", f"{lost} rows refer to others that are not there", BACKUP)
    return Finding("database", "ok", "Every row finds those it refers to")


async def check_histories(database: Database) -> Finding:
    """Find out whether every history has the lines it should have, as they were written."""
    if missing := [row["id"] for row in await database.fetch("miscounted_sessions", SHOWN)]:
        return Finding("histories", "problem", f"Parts of histories are missing, as of {', '.join(missing)}", BACKUP)
    if damaged := await _damaged(database):
        return Finding("histories", "problem", f"Parts of histories are damaged, as {', '.join(damaged)}", BACKUP)
    if unused := await database.value("count_unused_segments"):
        return Finding("histories", "note", f"{unused} parts of histories belong to no session; they only take space")
    return Finding("histories", "ok", "Every history has all of its parts")


async def _damaged(database: Database) -> list[str]:
    found: list[str] = []
    last = 0
    while len(found) < SHOWN and (rows := await database.fetch("some_segments", last)):
        last = rows[-1]["id"]
        for row in rows:
            if not is_whole(row["body"], row["lines"], row["checksum"]):
                place = await database.first("place_of_segment", row["id"])
                if place is not None:
                    first = place["position"]
                    found.append(f"lines {first + 1} to {first + row['lines']} of {place['id']}")
    return found[:SHOWN]


async def check_search_index(database: Database) -> Finding:
    """Find out whether a search finds what it should."""
    wrong = await database.value("lost_docs") + await database.value("untitled_docs")
    async for segment, texts in _texts(database):
        known = {row["at"]: row["words"] for row in await database.fetch("segment_texts", segment)}
        wrong += len(known.keys() ^ texts.keys())
        wrong += sum(_as_set(known[at]) != _as_set(texts[at].words) for at in known.keys() & texts.keys())
    if wrong:
        return Finding(
            "search index",
            "problem",
            f"The index of words and the texts differ in {wrong} places",
            "A search may miss something. Repairing makes the index anew; the sessions are not touched",
            repair="words",
        )
    return Finding("search index", "ok", "The index of words is whole")


async def check_turns(database: Database) -> Finding:
    """Find out which turns run, and which broke."""
    unsealed = await database.fetch("unsealed_turns")
    broken = [row["id"] for row in unsealed if not row["is_alive"]]
    running = f"{len(unsealed) - len(broken)} running"
    if broken:
        return Finding(
            "turns",
            "note",
            f"{running}; {len(broken)} broken off by the death of their node, as in {', '.join(broken[:SHOWN])}",
            "Nothing was lost: what they had said is stored, and they are closed when their session is opened next",
        )
    return Finding("turns", "ok", running)


async def check_logs(database: Database) -> Finding:
    """Find out whether the logs of turns are those of turns that are not stored yet."""
    if left := await database.value("count_left_over"):
        return Finding(
            "turn logs",
            "note",
            f"{left} were left over by turns that are stored, or whose session was deleted",
            "They only take space. Repairing removes them",
            repair="logs",
        )
    return Finding("turn logs", "ok", "None was left over")


async def check_nodes(database: Database) -> Finding:
    """Find out which nodes use it."""
    nodes = await database.fetch("every_node")
    alive = [f"{row['name']} with {row['sessions']} sessions" for row in nodes if row["is_alive"]]
    dead = sum(row["sessions"] for row in nodes if not row["is_alive"])
    says = f"In use by {', '.join(alive)}" if alive else "No other process uses it"
    if dead:
        says += f"; {dead} sessions were last used by processes that died, and can be opened by any other"
    return Finding("processes", "ok", says)


CHECKS: dict[str, Check] = {
    "server": check_server,
    "database": check_references,
    "histories": check_histories,
    "search index": check_search_index,
    "turns": check_turns,
    "turn logs": check_logs,
    "processes": check_nodes,
}


async def examine(database: Database) -> AsyncIterator[Finding]:
    """Look for damage and leftovers, one thing after the other."""
    for about, check in CHECKS.items():
        try:
            yield await check(database)
        except StoreError as e:
            yield Finding(about, "problem", str(e))


async def repair(database: Database, name: str) -> str:
    """Put something right; return what was done."""
    match name:
        case "words":
            return f"The index of words was made anew from {await _rebuild(database)} texts"
        case "logs":
            await database.fetch("delete_left_over")
            return "The logs of turns that are stored were removed"
        case _:
            return "There was nothing to do"


async def _rebuild(database: Database) -> int:
    """Read all texts again; return how many there were."""
    await database.fetch("delete_lost_docs")
    count = 0
    async for segment, texts in _texts(database):
        count += len(texts)
        places = list(texts)
        sizes, words = [text.size for text in texts.values()], [text.words for text in texts.values()]
        await database.fetch("replace_texts", segment, places, sizes, words)
    for row in await database.fetch("every_title"):
        title = title_of(row["title"])
        await database.fetch("replace_title", row["n"], indexed_words(title, row["principal"]) if title else None)
        count += bool(title)
    return count


class _Text(NamedTuple):
    """A text as the index should have it."""

    size: int
    words: str


async def _texts(database: Database) -> AsyncIterator[tuple[int, dict[int, _Text]]]:
    """Go through all segments once; give each with its texts, by their first byte."""
    done: set[int] = set()
    last = ""
    while sessions := await database.fetch("some_sessions", last):
        last = sessions[-1]["id"]
        for session in sessions:
            async for segment, texts in _texts_of(database, session, done):
                yield segment, texts


async def _texts_of(database: Database, session: Any, done: set[int]) -> AsyncIterator[tuple[int, dict[int, _Text]]]:
    """Go through the segments of a session that no other session had; an entry may go on in the next segment."""
    rows = [Segment(*row) for row in await database.fetch("read_tail", session["n"], 0)]
    rows = [row for row in rows if row.is_whole()]  # of one that is damaged nothing is found
    lines = with_texts([line for row in rows for line in row.body.split(b"\n")])
    for row in rows:
        run, lines = lines[: row.lines], lines[row.lines :]
        if row.segment not in done:
            done.add(row.segment)
            found = texts_in(run)
            yield (
                row.segment,
                {at: _Text(size, indexed_words(text, session["principal"])) for (at, size), text in found},
            )


def _as_set(words: str) -> set[str]:
    return set(words.split())
