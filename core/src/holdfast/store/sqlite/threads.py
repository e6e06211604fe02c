"""The two threads of a store: one reads, one writes, each with a connection of its own, and the event loop goes on.

The writer commits in groups: all that waits goes into one transaction and one sync, and what comes meanwhile is the
next group. Where a job of a group fails, the whole group is undone and each job is done alone, so that every caller
gets its own answer.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from holdfast.errors import HoldfastError, StoreError
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.loop_wakeup import LoopWakeup

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

log: logging.Logger = logging.getLogger(__name__)

T = TypeVar("T")

UNKNOWN = "The session store met an error that it does not know; the log of this process has it"


class Transaction:
    """What one job of a transaction works with: the database, and what is to be done when the transaction has ended.

    A job may run twice: once with others, and alone when they were undone. What it changes besides the database it
    changes after the commit, or takes back after a rollback.
    """

    __slots__ = ("_committed", "_rolled_back", "db")

    def __init__(self, db: Database) -> None:
        self.db: Database = db
        self._committed: list[Callable[[], object]] = []
        self._rolled_back: list[Callable[[], object]] = []

    def after_commit(self, action: Callable[[], object]) -> None:
        """Do something once all of it is durable. It must not raise."""
        self._committed.append(action)

    def after_rollback(self, action: Callable[[], object]) -> None:
        """Take something back if nothing of it becomes durable. It must not raise."""
        self._rolled_back.append(action)

    def has_committed(self) -> None:
        """Do what was to be done after the commit."""
        for action in self._committed:
            action()

    def was_rolled_back(self) -> None:
        """Take back what was to be taken back, the latest first."""
        for action in reversed(self._rolled_back):
            action()


class _Answer(msgspec.Struct, frozen=True):
    future: asyncio.Future[Any]
    result: object
    error: Exception | None


class _Job(msgspec.Struct, frozen=True):
    """Something to be done: inside a transaction that others may share, or outside of any."""

    future: asyncio.Future[Any]
    session: str | None
    inside: Callable[[Transaction], object] | None
    outside: Callable[[Database], object] | None
    alone: Callable[[], object | None] | None = None
    """What is tried first where nothing else waits, without a transaction; it returns None where it did nothing."""


class DatabaseThread:
    """A thread with the only use of a connection. It does one thing after the other, in the order they were asked for.

    Once something has begun it is finished, even if its caller waits no longer.
    """

    def __init__(self, path: str, vfs: str | None, name: str, count: Path | None = None) -> None:
        """Begin to serve; a thread that writes is told where the changes are counted."""
        self._path = path
        self._vfs = vfs
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._waiting: SimpleQueue[_Job | None] = SimpleQueue()
        self._db: Database | None = None
        self._ended: asyncio.Future[None] | None = None
        self._answered: deque[list[_Answer]] = deque()
        self._wakeup = LoopWakeup(self._loop, self._resolve)
        # A daemon: whoever ends without closing the store does not wait for it.
        self._thread = threading.Thread(target=self._serve, name=f"holdfast-store-{name}", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[Database], T]) -> asyncio.Future[T]:
        """Do something outside of any transaction of ours."""
        return self._ask(_Job(self._loop.create_future(), None, None, work))

    def write(
        self, session: str, work: Callable[[Transaction], T], alone: Callable[[], T | None] | None = None
    ) -> asyncio.Future[T]:
        """Do something with a session inside a transaction; the result is there when it is durable.

        Where nothing else waits, `alone` is tried first, which does the same without a transaction or returns None.
        """
        return self._ask(_Job(self._loop.create_future(), session, work, None, alone))

    async def close(self) -> None:
        """Finish what is in hand, close the connection and end the thread."""
        if self._ended is None:
            self._ended = self._loop.create_future()
            self._ended.add_done_callback(self._forget_wakeup)
            self._waiting.put(None)
        await asyncio.shield(self._ended)

    def _forget_wakeup(self, _: asyncio.Future[None]) -> None:
        self._thread.join()  # it has answered, and may not have returned from that
        self._wakeup.close()

    def _ask(self, job: _Job) -> asyncio.Future[Any]:
        if self._ended is not None:
            raise StoreError("The session store is closed")
        self._waiting.put(job)
        return job.future

    def _serve(self) -> None:
        is_open = True
        while is_open:
            jobs, is_open = self._next()
            while jobs:
                count = _group_size(jobs)
                self._deliver(self._answers(jobs[:count]))
                jobs = jobs[count:]
        assert self._ended is not None
        self._deliver([_run_outside(self._db, _Job(self._ended, None, None, Database.close))])

    def _next(self) -> tuple[list[_Job], bool]:
        """Wait for something to do; return all that waits, and whether more may come."""
        jobs: list[_Job] = []
        waiting = self._waiting
        while (job := waiting.get()) is not None:
            if not job.future.cancelled():  # otherwise nobody wants it any more
                jobs.append(job)
            if waiting.empty():
                return jobs, True
        return jobs, False

    def _answers(self, jobs: Sequence[_Job]) -> list[_Answer]:
        """Do what belongs together. The thread goes on whatever happens: all that is ever asked for depends on it."""
        try:
            return self._run(jobs)
        except Exception:
            log.exception("The session store met an error that it does not know")
            return [_Answer(job.future, None, StoreError(UNKNOWN)) for job in jobs]

    def _run(self, jobs: Sequence[_Job]) -> list[_Answer]:
        """Do what belongs together; return the answers."""
        job = jobs[0]
        try:
            if job.alone is not None and len(jobs) == 1 and (result := job.alone()) is not None:
                return [_Answer(job.future, result, None)]
            if self._db is None:
                self._db = Database(self._path, vfs=self._vfs, count=self._count)
        except Exception as e:  # noqa: BLE001  (whatever it is, it is the caller's to know)
            return [_Answer(job.future, None, e) for job in jobs]
        if job.outside is not None:
            return [_run_outside(self._db, job) for job in jobs]
        return [_run_alone(self._db, job)] if len(jobs) == 1 else _run_group(self._db, jobs)

    def _deliver(self, answers: list[_Answer]) -> None:
        self._answered.append(answers)
        self._wakeup.wake()

    def _resolve(self) -> None:
        """Give the answers to those who wait for them, in the event loop."""
        while self._answered:
            for answer in self._answered.popleft():
                if answer.future.cancelled():
                    continue
                if answer.error is None:
                    answer.future.set_result(answer.result)
                else:
                    answer.future.set_exception(answer.error)


def _group_size(jobs: Sequence[_Job]) -> int:
    """Count the jobs that can be done together, from the first on.

    A session has only one of them, so that none depends on what another does besides the database, as with logs.
    """
    if len(jobs) == 1:
        return 1
    seen: set[str] = set()
    for job in jobs:
        if job.session is None or job.session in seen:
            break
        seen.add(job.session)
    return max(len(seen), 1)


def _run_outside(db: Database | None, job: _Job) -> _Answer:
    if db is None or job.outside is None:
        return _Answer(job.future, None, None)
    try:
        return _Answer(job.future, job.outside(db), None)
    except Exception as e:  # noqa: BLE001
        return _Answer(job.future, None, db.plain_error(e))


def _run_alone(db: Database, job: _Job) -> _Answer:
    """Do a job in a transaction of its own."""
    assert job.inside is not None
    transaction = Transaction(db)
    try:
        db.begin()
        result = job.inside(transaction)
        db.commit()
    except Exception as e:  # noqa: BLE001
        _roll_back(db)
        transaction.was_rolled_back()
        return _Answer(job.future, None, db.plain_error(e))
    transaction.has_committed()
    return _Answer(job.future, result, None)


def _run_group(db: Database, jobs: Sequence[_Job]) -> list[_Answer]:
    """Do jobs in one transaction; where that fails, each in one of its own."""
    transactions: list[Transaction] = []
    answers: list[_Answer] = []
    try:
        db.begin()
    except Exception as e:  # noqa: BLE001  (the database is locked, or worse: trying each alone would take as long)
        error = db.plain_error(e)
        return [_Answer(job.future, None, error) for job in jobs]
    try:
        for job in jobs:
            assert job.inside is not None
            transaction = Transaction(db)
            transactions.append(transaction)
            changes = db.changes
            try:
                answers.append(_Answer(job.future, job.inside(transaction), None))
            except HoldfastError as e:
                if db.changes != changes:
                    raise
                # It was refused before it changed anything, so the others need not be undone.
                transactions.pop().was_rolled_back()
                answers.append(_Answer(job.future, None, e))
        db.commit()
    except Exception:  # noqa: BLE001
        _roll_back(db)
        for transaction in reversed(transactions):
            transaction.was_rolled_back()
        return [_run_alone(db, job) for job in jobs]  # each will meet its own error
    for transaction in transactions:
        transaction.has_committed()
    return answers


def _roll_back(db: Database) -> None:
    """Undo a transaction. Where even that fails, the next one says why."""
    try:
        db.roll_back()
    except Exception:  # noqa: BLE001
        return
