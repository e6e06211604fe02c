"""A connection to the database: what must hold before it is used, queries by their names, and what its errors mean."""

from __future__ import annotations

import logging
import re
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw
import msgspec

from holdfast.errors import HoldfastError, StoreDamaged, StoreError, StoreFull, StoreTooNew
from holdfast.format import FORMAT
from holdfast.store.sqlite.commit_count import CommitCount

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Generator, Iterator

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

log: logging.Logger = logging.getLogger(__name__)

RowT = TypeVar("RowT")

OLDEST_SQLITE = 3_051_003
"""Before it, resetting the write-ahead log while another process reads could corrupt the database."""

APPLICATION_ID = 0x484F4C44  # "HOLD"

BUSY_SECONDS = 10.0
"""So long one waits for another process that writes."""

BUSY_PAUSES = 0.002, 0.02
"""The shortest and the longest pause before it is tried again.

SQLite's own grow to 100 ms: of twelve processes that write, the unluckiest waited more than twice as long. Shorter ones
cost more processor time than they save.
"""

STOP_STEPS = 100_000
"""How often long work looks whether it should stop: every few milliseconds."""

_HERE = Path(__file__).parent  # `importlib.resources` is for packages in archives, and takes 4 ms to import


class Database:
    """A connection that may be used: checked, migrated, and set to lose nothing it has acknowledged."""

    def __init__(self, path: str, *, vfs: str | None = None, count: Path | None = None) -> None:
        """Open it; `count` is the file in which the changes are counted that this connection commits."""
        if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
            raise StoreError(f"SQLite {apsw.sqlite_lib_version()} is too old; install apsw 3.51.3 or newer")
        self._path = path
        self._queries = queries()
        self._count: CommitCount | None = None
        self._changes_before = 0
        self._busy_until = 0.0
        self.new_texts: dict[tuple[int, int], list[tuple[int, str]]] = {}
        """By id and checksum of a segment, the texts of its lines that this connection has stored and not indexed."""
        with self.plain_errors():
            self._db = apsw.Connection(path, vfs=vfs)
            self._cursor = self._db.cursor()  # for all that is read at once; to make one each time takes longer
            try:
                self._db.set_busy_handler(self._wait)
                self._check()
                self._use_log()
                self._db.pragma("synchronous", "full")
                self._db.pragma("fullfsync", 1)  # on macOS; see `sync_file`
                # References are declared for whoever examines a store. To have them enforced makes a fork much slower.
                self._db.pragma("foreign_keys", 0)
                # What was deleted is overwritten: that costs nothing with a turn, and 0.3 s with a session of 27 MB.
                self._db.pragma("secure_delete", 1)
                self._migrate()
                if count is not None:
                    self._count = CommitCount(count)
                    self._notice_loss(self._count.read())
            except BaseException:
                self._db.close(force=True)
                if self._count is not None:
                    self._count.close()
                raise

    def run(self, name: str, /, **bindings: Any) -> None:
        """Run a query for what it does."""
        self._cursor.execute(self._queries[name], bindings).fetchall()

    def rows(self, name: str, /, **bindings: Any) -> Iterator[tuple[Any, ...]]:
        """Run a query; its rows are read as they are asked for."""
        return self._db.execute(self._queries[name], bindings)

    def first(self, row: Callable[..., RowT], name: str, /, **bindings: Any) -> RowT | None:
        """Run a query; return its first row as a value of that type, or None where there is none."""
        found: list[Any] = self._cursor.execute(self._queries[name], bindings).fetchall()
        return row(*found[0]) if found else None

    def change(self, name: str, /, **bindings: Any) -> int:
        """Run a query of one statement; return how many rows it changed.

        SQL's `changes()`, asked by the next statement, is another number: as that one begins, the index writes what it
        has gathered in the same transaction.
        """
        self._cursor.execute(self._queries[name], bindings).fetchall()
        return self._db.changes()

    def insert(self, name: str, /, **bindings: Any) -> int:
        """Run a query that inserts something; return its id. `RETURNING` would cost a table in memory."""
        self._cursor.execute(self._queries[name], bindings).fetchall()
        return self._db.last_insert_rowid()

    def value(self, name: str, /, **bindings: Any) -> Any:
        """Run a query that gives one value in every database that is not damaged."""
        found: list[Any] = self._cursor.execute(self._queries[name], bindings).fetchall()
        if not found:
            raise apsw.CorruptError(f"nothing found: {name}")
        return found[0][0]

    def begin(self) -> None:
        """Open a transaction that may write: take the write lock at once."""
        self._cursor.execute("BEGIN IMMEDIATE")
        self._changes_before = self._db.total_changes()

    def commit(self) -> None:
        """Make what a transaction changed durable, and count it."""
        if self._count is None or self._db.total_changes() == self._changes_before:
            self._cursor.execute("COMMIT")
            return
        self.run("count_commit")
        number: int = self.value("count_of_commits")
        self._cursor.execute("COMMIT")
        self._count.note(number)

    def roll_back(self) -> None:
        """Undo what a transaction changed. After some errors SQLite has done so by itself."""
        self.new_texts.clear()  # they may be among it
        if not self._db.get_autocommit():
            self._cursor.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Write: commit at the end, undo everything if anything fails."""
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            self.roll_back()
            raise

    @contextmanager
    def snapshot(self) -> Generator[None]:
        """Read: all queries see the same moment."""
        self._cursor.execute("BEGIN")
        try:
            yield
        finally:
            self.roll_back()

    @property
    def changes(self) -> int:
        """How many rows this connection has ever changed."""
        return self._db.total_changes()

    @contextmanager
    def plain_errors(self) -> Generator[None]:
        """Raise `StoreError` for an error of the database, in words for the user."""
        try:
            yield
        except HoldfastError:
            raise
        except Exception as e:
            raise self.plain_error(e) from e

    def plain_error(self, error: Exception) -> Exception:
        """Return what an error of the database means for the user, and what to do about it."""
        meaning = self._meaning(error)
        if meaning is not error:
            meaning.__cause__ = error
        return meaning

    def _meaning(self, error: Exception) -> Exception:
        match error:
            case apsw.FullError():
                return StoreFull("There is no space left for the sessions. Nothing was changed; free some, try again")
            case apsw.CorruptError() | apsw.NotADBError() | msgspec.DecodeError() | UnicodeDecodeError():
                return StoreDamaged(
                    f"The session store {self._path} is damaged ({error}). Nothing was changed in it. Keep a copy of "
                    "the file and of those beside it; restore a backup, or choose another place for the store"
                )
            case apsw.BusyError():
                return StoreError("The session store is locked by another process; try again")
            case apsw.CantOpenError() | apsw.PermissionsError() | apsw.ReadOnlyError():
                return StoreError(f"The session store {self._path} cannot be opened for writing ({error})")
            case apsw.IOError():
                return StoreError(f"The session store cannot be read or written ({error}). Nothing was changed")
            case apsw.Error():
                return StoreError(f"The session store cannot do that ({error}). Nothing was changed")
            case _:
                return error

    def vacuum(self) -> None:
        """Give back the space of what was deleted."""
        self._db.execute("INSERT INTO words (words) VALUES ('optimize')")
        self._db.execute("VACUUM")
        self._db.pragma("wal_checkpoint", "truncate")

    def pages(self) -> tuple[int, int]:
        """Return the bytes of the database, and those of its empty pages."""
        page, count, free = (self._db.pragma(name) for name in ("page_size", "page_count", "freelist_count"))
        return page * count, page * free

    def format(self) -> int:
        """Return the number of its format."""
        return self._db.pragma("user_version")

    @contextmanager
    def stopped_by(self, stop: threading.Event) -> Generator[None]:
        """Do something that takes long, and give up when the event is set."""
        self._db.set_progress_handler(stop.is_set, STOP_STEPS)
        try:
            yield
        finally:
            self._db.set_progress_handler(None)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()
        if self._count is not None:
            self._count.close()

    def _wait(self, attempts: int) -> bool:
        """Wait a little for another process that writes; return whether to try again."""
        now = time.monotonic()
        if attempts == 0:
            self._busy_until = now + BUSY_SECONDS
        if now >= self._busy_until:
            return False
        from random import uniform  # noqa: PLC0415  (who is alone with a store never waits)

        shortest, longest = BUSY_PAUSES
        # At random, so that those who wait do not all try at the same moment.
        time.sleep(uniform(0.5, 1.0) * min(longest, shortest * 2 ** min(attempts, 10)))  # noqa: S311
        return True

    def _check(self) -> None:
        # In this order: another process may be making the store, and it writes both at once.
        has_schema = self._db.pragma("schema_version") != 0
        application = self._db.pragma("application_id")
        if application not in (0, APPLICATION_ID) or (application == 0 and has_schema):
            raise StoreError(f"{self._path} is a database, but not one of Holdfast's; choose another place")
        version = self._db.pragma("user_version")
        if version > FORMAT:
            raise StoreTooNew(
                f"{self._path} was written by a newer Holdfast (format {version}, this one knows {FORMAT}); "
                "upgrade Holdfast, or choose another place for the store"
            )

    def _use_log(self) -> None:
        """Switch to a write-ahead log. SQLite does not wait for others that make the same store just now, so we do."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._db.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
            else:
                return

    def _migrate(self) -> None:
        """Bring the schema up to date, one numbered file after the other, all of them or none."""
        if self._db.pragma("user_version") == FORMAT:
            return
        with self.transaction():
            for number, script in enumerate(migrations(), start=1):
                if number > self._db.pragma("user_version"):  # another process may have been faster
                    self._db.execute(script)
                    self._db.pragma("user_version", number)
            self._db.pragma("application_id", APPLICATION_ID)

    def _notice_loss(self, known: int) -> None:
        """Note how many of the `known` changes the database has lost, so that the doctor can tell (P11).

        What is known was read before: a process that commits meanwhile counts here first.
        """
        if known <= self.value("count_of_commits"):
            return
        with self.transaction():
            if (lost := known - self.value("count_of_commits")) > 0:
                self.run("note_lost_commits", lost=lost)
                self.run("set_count_of_commits", count=known)
                log.error("%s: %s", self._path, lost_changes(lost))


def lost_changes(lost: int) -> str:
    """Return what is said of a database that is older than it was."""
    changes = "change that was" if lost == 1 else "changes that were"
    return (
        f"{lost} {changes} acknowledged are not in the session store any more: its write-ahead log was damaged, or an "
        "older copy was put in its place. Sessions may end earlier than they did; `holdfast sessions doctor` says more"
    )


def migrations() -> list[str]:
    """Read the migrations, in order. There are as many as the format has numbers."""
    return [file.read_text() for file in sorted((_HERE / "migrations").glob("*.sql"))]


@cache
def queries() -> dict[str, str]:
    """Read the queries, by name; once, for all connections of the process."""
    parts = re.split(r"^-- name: (\w+)$", (_HERE / "queries.sql").read_text(), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}
