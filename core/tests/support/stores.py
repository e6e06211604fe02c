"""Stores of every kind, and short words for what tests do with sessions in them."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import msgspec

from holdfast.format import Line, fold, lines_of, updates_in
from holdfast.model import UNBOUND, Scope, SessionInfo, SessionState, new_session_id
from holdfast.store import Changes, open_store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from holdfast.model import ArchiveFilter
    from holdfast.store import Claim, SessionStore, Store, TurnLog

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false

CWD = "/work"
NOTHING = Changes()
ALL = Scope()
"""The sessions of the user of this machine with all agents."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is; what is in memory is gone when it is closed."""

    path: str

    @property
    def lasts(self) -> bool:
        return self.path != ":memory:"

    def beside(self, kind: str) -> list[Path]:
        """Find the files it keeps beside the database."""
        return list(Path(f"{self.path}.{kind}").iterdir())

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[SessionStore]:
        store = await open_store(self.path)
        try:
            yield store
        finally:
            await store.close()
            if self.lasts:
                self._check_references()

    @property
    def is_postgres(self) -> bool:
        return self.path.startswith("postgresql:")

    async def end_lease(self, session: str) -> None:
        """Let the lease of the dead process that had a session be over, where there are leases."""
        if self.is_postgres:
            from core.tests.support import postgres

            await postgres.end_lease(self.path, session)

    def _check_references(self) -> None:
        """Make sure that nothing in the database is about something that is not there."""
        if self.is_postgres:
            from core.tests.support.postgres import run_sql_now
            from holdfast.store.postgres.database import queries

            ((lost,),) = run_sql_now(self.path, queries()["lost_references"])
            assert lost == 0
            return
        with closing(apsw.Connection(self.path)) as db, suppress(apsw.Error):  # it may be a damaged one
            assert db.pragma("foreign_key_check") is None


def info(
    cwd: str = CWD, *, title: str | None = None, at: int = 1, messages: int = 0, agent: str = UNBOUND
) -> SessionInfo:
    """Make up a session."""
    return SessionInfo(new_session_id(), cwd, (), title, at, at, archived=False, messages=messages, agent=agent)


def message(said: str, key: str | None = None, kind: str = "agent_message") -> Line:
    """Make a line of something that was said."""
    key = key or f"msg_{next(_numbers)}"
    update = {"sessionUpdate": kind, "messageId": key, "content": [{"type": "text", "text": said}]}
    return lines(update)[0]


def lines(*updates: object) -> list[Line]:
    """Make lines of updates, as the end of a turn would."""
    return lines_of(fold(msgspec.json.encode(update) for update in updates))


def bodies(written: Iterable[Line]) -> list[bytes]:
    return [line.body for line in written]


def logged(line: Line) -> bytes:
    """Say what a line was before it was stored."""
    return updates_in(line.body)


async def new(store: Store, cwd: str = CWD, *, title: str | None = None) -> Claim:
    """Make a session nobody has said anything in."""
    return await store.create(info(cwd, title=title), SessionState())


async def turn(store: Store, claim: Claim, *said: Line, changes: Changes = NOTHING) -> None:
    """Let a turn begin and end."""
    await store.begin(claim, prompt("prompt"), changes)
    await store.seal(claim, said, NOTHING, messages=len(said))


async def talked(store: Store, cwd: str = CWD, *said: str, title: str | None = None) -> Claim:
    """Make a session in which something was said."""
    claim = await new(store, cwd, title=title)
    await turn(store, claim, *map(message, said))
    return claim


async def history(store: Store, session: str, count: int = 1 << 40, *, start: int = 0) -> list[bytes]:
    """Read the lines of a session."""
    blocks = [block async for some in store.read(session, start, count) for block in some]
    return [line for block in blocks for line in block.split(b"\n")]


async def walk(
    store: Store, scope: Scope = ALL, *, cwd: str | None = None, archived: ArchiveFilter = "exclude", limit: int = 50
) -> list[str]:
    """Go through a list page by page; give the ids in order."""
    found: list[str] = []
    cursor = None
    while True:
        page = await store.list(scope, cwd=cwd, archived=archived, cursor=cursor, limit=limit)
        found += [info.id for info in page.sessions]
        cursor = page.cursor
        if cursor is None:
            return found
        assert len(page.sessions) == limit


async def hits(
    store: SessionStore, words: str, cwd: str | None = None, limit: int = 100, *, scope: Scope = ALL
) -> list[str]:
    """Search; give the texts that were found, in order."""
    return [hit.text for hit in await store.search(words, scope, cwd=cwd, limit=limit)]


async def keep(log: TurnLog, *said: Line) -> None:
    """Append to a log, and wait until it is kept."""
    kept = log.append(b"".join(logged(line) + b"\n" for line in said))
    if kept is not None:
        await kept


async def died(store: SessionStore, session: str) -> None:
    """Wait until a process whose turn was running is known to be dead: on one machine at once, else by its lease."""
    async with asyncio.timeout(60):
        while True:
            unsealed = (await store.snapshot(session)).unsealed
            if unsealed is None or unsealed.running_in is None:
                return
            await asyncio.sleep(0.05)


def prompt(*said: str) -> Sequence[bytes]:
    return [logged(message(text, kind="user_message")) for text in said]
