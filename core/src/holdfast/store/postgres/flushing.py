"""What running turns say, on its way into the database: flushed in groups, one statement for all sessions of a node.

While one flush is under way, what is said waits for the next, which begins as soon as the last has returned. So a flush
is as large as the database is slow. What a flush has written is durable, and only then shown (P1): a flush also finds
out whether the node still is one, and which of its sessions are still its own (P4).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import StoreError
from holdfast.store.postgres.database import PATIENCE, Retries, is_gone

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from holdfast.store.port import Claim
    from holdfast.store.postgres.database import Database
    from holdfast.store.postgres.nodes import Node, Nodes

log: logging.Logger = logging.getLogger(__name__)

FLUSH_BYTES = 4 << 20
"""A flush is no larger than this; what is beyond goes with the next."""

MOVED = "Another node has taken this session over; what was said here since could not be stored"
NOT_STORED = "What was said could not be stored; the log of this process says why"


class Beginning(NamedTuple):
    """What a log begins with."""

    prompt: bytes
    opening: bytes
    """The first lines that whoever reads the log again is told."""


class TurnRows:
    """The log of one turn: a row for each flush that has something of it."""

    __slots__ = (
        "_flushes", "_is_held", "_lines", "claim", "failure", "n", "node", "seq", "size", "turn", "unwritten", "waiting"
    )  # fmt: skip

    def __init__(self, flushes: Flushes, node: Node, claim: Claim, n: int, turn: int) -> None:
        self.claim: Claim = claim
        self.node: Node = node
        self.n: int = n
        self.turn: int = turn
        self.seq: int = 0
        """The number of its last row; the prompt is in row 0, what opens the log in row 1."""
        self.unwritten: Beginning | None = None
        """What it begins with, until that is on its way: with the first flush, or with the seal."""
        self.size: int = 0
        """How much was appended."""
        self.failure: StoreError | None = None
        """Why nothing more can be kept, if it cannot."""
        self._flushes = flushes
        self._lines: list[bytes] = []
        self._is_held = False
        self.waiting: asyncio.Future[None] | None = None
        """Completes when what waits is stored."""

    def append(self, lines: bytes) -> Awaitable[None] | None:
        """Keep encoded events with the next flush, and what the log begins with.

        With neither, find out whether the session is still ours.
        """
        if self.failure is not None:
            raise self.failure
        if not lines and self.unwritten is None and self._flushes.is_valid(self.node):
            return None
        if self.waiting is None or self.waiting.done():
            self.waiting = asyncio.get_running_loop().create_future()
            self.waiting.add_done_callback(_seen)
        if lines:
            self._lines.append(lines)
            self.size += len(lines)
        if not self._is_held:
            self._flushes.add(self)
        return self.waiting

    def hold(self) -> TurnRows | None:
        """Keep what waits, and all that is appended now, for the seal. None: nothing waits."""
        if not self._lines and self.unwritten is None:
            return None
        self._is_held = True
        self._flushes.forget(self)
        return self

    def take_held(self) -> bytes:
        """Return what was held, and forget it."""
        lines, self._lines = b"".join(self._lines), []
        self.waiting = None
        return lines

    def let_go(self) -> None:
        """Let what was held go with the next flush."""
        self._is_held = False
        if self._lines or self.unwritten is not None:
            self._flushes.add(self)

    async def sync(self) -> None:
        """Wait until all that was appended is stored: in a database that is durable."""
        await self._flushes.settle(self)
        if self.failure is not None:
            raise self.failure

    def take(self) -> _Row:
        """Return what waits, as the next row."""
        lines, self._lines = b"".join(self._lines), []
        beginning, self.unwritten = self.unwritten, None
        kept, self.waiting = self.waiting, None
        assert kept is not None
        if beginning is not None:
            lines = beginning.opening + lines
        if lines:
            self.seq += 1
        return _Row(self, self.seq, lines, kept, None if beginning is None else beginning.prompt)

    def fail(self, failure: StoreError) -> None:
        """Refuse what waits, and all that comes."""
        self.failure = failure
        self._lines.clear()
        self._flushes.forget(self)
        waiting, self.waiting = self.waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(failure)

    @property
    def waiting_bytes(self) -> int:
        """How much waits."""
        return sum(map(len, self._lines)) + sum(map(len, self.unwritten or ()))


class _Row:
    """What one turn has in a flush."""

    __slots__ = ("_kept", "is_over", "lines", "log", "prompt", "seq")

    def __init__(self, log: TurnRows, seq: int, lines: bytes, kept: asyncio.Future[None], prompt: bytes | None) -> None:
        self.log: TurnRows = log
        self.seq: int = seq
        self.lines: bytes = lines
        self.prompt: bytes | None = prompt
        """What the turn begins with, which has a row of its own; None where that is stored."""
        self._kept = kept
        self.is_over: bool = False
        """Whether those who wait were told how it went."""

    def columns(self) -> list[tuple[int, int, int, int, bytes]]:
        """Return the rows to be written: session, epoch, turn, number and lines of each."""
        log = self.log
        parts = [] if self.prompt is None else [(0, self.prompt)]
        if self.lines:
            parts.append((self.seq, self.lines))
        return [(log.n, log.claim.epoch, log.turn, seq, lines) for seq, lines in parts]

    def end(self, failure: StoreError | None) -> None:
        """Tell whoever waits how it went."""
        self.is_over = True
        if failure is not None:
            self.log.fail(failure)  # also where nobody waits any more: what comes later would follow a gap
        if self._kept.done():
            return
        if failure is None:
            self._kept.set_result(None)
        else:
            self._kept.set_exception(failure)


class Flushes:
    """The flushes of one process, one after the other, over a connection of their own."""

    def __init__(self, database: Database, nodes: Nodes) -> None:
        self._database = database
        self._nodes = nodes
        self._queue: dict[TurnRows, None] = {}
        self._flying: list[_Row] = []
        self._wake = asyncio.Event()
        self._flushed = asyncio.Event()  # set when the flush that is under way, or the next one, is over
        self._connection: Any = None
        self._flushing: asyncio.Task[None] | None = None

    def is_valid(self, node: Node) -> bool:
        """Return whether nobody can have taken over from a node, without asking the database."""
        return self._nodes.is_valid(node)

    def add(self, log: TurnRows) -> None:
        """Let what a turn has said go with the next flush."""
        if self._database.is_closed:
            raise StoreError("The session store is closed")
        self._queue[log] = None
        self._wake.set()
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._run(), name="flush turn logs")
            self._flushing.add_done_callback(self._flusher_ended)

    def forget(self, log: TurnRows) -> None:
        """Let nothing more of a turn go with any flush."""
        self._queue.pop(log, None)

    async def settle(self, log: TurnRows) -> None:
        """Wait until all that a turn has said is stored, or cannot be: also what nobody waits for any more."""
        while log in self._queue or any(row.log is log for row in self._flying):
            await self._flushed.wait()

    def node_fenced(self, node: Node) -> None:
        """Refuse all that turns of a node still want to store."""
        for log in [log for log in self._queue if log.node is node]:
            log.fail(StoreError(MOVED))

    async def close(self) -> None:
        """Store what waits, and stop."""
        while self._queue or self._flying:
            await self._flushed.wait()
        if (flusher := self._flushing) is not None:
            flusher.cancel()
            await asyncio.wait({flusher})
        self._drop_connection()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                try:
                    await self._flush_next()
                except Exception:
                    # Every turn of this process depends on this task: it tells those who wait, and goes on.
                    log.exception("What was said could not be stored")
                    self._refuse_all()

    def _flusher_ended(self, flusher: asyncio.Task[None]) -> None:
        """Leave nobody waiting for a flusher that was cancelled; whoever says something next starts another."""
        if self._flushing is flusher:
            self._flushing = None
        self._drop_connection()
        self._refuse_all()

    def _refuse_all(self) -> None:
        """Tell all who wait that what they said is not stored."""
        for row in self._flying:
            if not row.is_over:
                row.end(StoreError(NOT_STORED))
        for log in list(self._queue):
            log.fail(StoreError(NOT_STORED))
        self._landed()

    def _landed(self) -> None:
        """Let those go on who wait until a flush is over."""
        self._flying = []
        self._flushed.set()
        self._flushed = asyncio.Event()

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _flush_next(self) -> None:
        """Write what waits, all of it that fits, of one node."""
        self._take_rows()
        try:
            await self._flush(self._flying)
        except Exception as e:  # noqa: BLE001  (each of them is told)
            await self._flush_alone(self._flying, e)
        self._landed()

    def _take_rows(self) -> None:
        size = 0
        node = next(iter(self._queue)).node
        for log in list(self._queue):
            if log.node is node and (not self._flying or size + log.waiting_bytes <= FLUSH_BYTES):
                size += log.waiting_bytes
                self._flying.append(log.take())
                self.forget(log)

    async def _flush(self, rows: list[_Row]) -> None:
        """Write rows of one node, and tell those who wait; raise what went wrong where none could be written."""
        node = rows[0].log.node
        found = await self._write(node, rows)
        if not found["is_mine"]:
            for row in rows:
                row.end(StoreError(MOVED))
            self._nodes.fence(node)
            return
        lost = set(found["lost"])
        for row in rows:
            is_lost = row.log.n in lost and not await self._write_begun_again(row)
            row.end(StoreError(MOVED) if is_lost else None)

    async def _write_begun_again(self, row: _Row) -> bool:
        """Write a row once more whose turn the database had forgotten; return whether it is stored."""
        if row.prompt is None or not await begin_again(self._database, row.log, is_on_its_way=True):
            return False
        found = await self._write(row.log.node, [row])
        return found["is_mine"] and not found["lost"]

    async def _flush_alone(self, rows: list[_Row], failure: Exception) -> None:
        """Write rows one by one where they could not be written together, so that everyone gets his own answer."""
        for row in rows:
            if len(rows) == 1:
                row.end(_told(failure))
                continue
            try:
                await self._flush([row])
            except Exception as e:  # noqa: BLE001
                row.end(_told(e))

    async def _write(self, node: Node, rows: list[_Row]) -> Any:
        written = [column for row in rows for column in row.columns()]
        arguments = (node.id, *(map(list, zip(*written, strict=True)) if written else ([], [], [], [], [])))
        query = self._database.query("flush" if all(row.prompt is None for row in rows) else "flush_prompts")
        retries = Retries(self._database, PATIENCE)
        while True:
            try:
                if self._connection is None:
                    self._connection = await self._database.connect()
                (found,) = await self._connection.fetch(query, *arguments, timeout=PATIENCE)
            except Exception as e:  # noqa: BLE001  (what it means is found out there)
                if is_gone(e):
                    self._drop_connection()
                await retries.after(e)  # rows that are there already are written once more, the same
            else:
                return found


async def begin_again(database: Database, log: TurnRows, *, is_on_its_way: bool = False) -> bool:
    """Begin a turn once more that the database has forgotten in a crash; return whether it had, and it is begun now.

    That a turn runs is durable only with what it begins with: until then nobody has seen anything of it.
    """
    if log.unwritten is None and not is_on_its_way:
        return False
    return await database.first("reserve_turn", log.node.id, log.n, log.claim.epoch, log.turn) is not None


def _told(error: Exception) -> StoreError:
    """Return an error for whoever waits; one that nobody expected goes into the log, whole."""
    if isinstance(error, StoreError):
        return error
    log.error("What was said could not be stored", exc_info=error)
    return StoreError(NOT_STORED)


def _seen(kept: asyncio.Future[None]) -> None:
    """Take note of an error, though nobody may wait for it."""
    if not kept.cancelled():
        kept.exception()
