"""A connection to the database: what must hold before it is used, queries by their names, and what its errors mean."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from holdfast.errors import StoreDamaged, StoreError, StoreFull, StoreTooNew

if TYPE_CHECKING:
    import threading
    from collections.abc import Generator, Iterator
    from importlib.resources.abc import Traversable

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false

OLDEST_SQLITE = 3_051_003
"""Before it, resetting the write-ahead log while another process reads could corrupt the database."""

APPLICATION_ID = 0x484F4C44  # "HOLD"

BUSY_MS = 10_000

STOP_STEPS = 100_000
"""How often long work looks whether it should stop: every few milliseconds."""

_HERE: Traversable = resources.files(__package__ or "")


class Database:
    """A connection that may be used: checked, migrated, and set to lose nothing it has acknowledged."""

    def __init__(self, path: str, *, vfs: str | None = None) -> None:
        if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
            raise StoreError(f"SQLite {apsw.sqlite_lib_version()} is too old; install apsw 3.51.3 or newer")
        self._path = path
        self._queries = queries()
        with self.explained():
            self._db = apsw.Connection(path, vfs=vfs)
            try:
                self._db.set_busy_timeout(BUSY_MS)
                self._check()
                self._use_log()
                self._db.pragma("synchronous", "full")
                # References are declared for whoever examines a store. To have them enforced makes a fork much slower.
                self._db.pragma("foreign_keys", 0)
                self._migrate()
            except BaseException:
                self._db.close(force=True)
                raise

    def run(self, name: str, /, **bindings: object) -> None:
        """Run a query for what it does."""
        for _ in self.rows(name, **bindings):
            pass

    def row(self, name: str, /, **bindings: object) -> tuple[Any, ...] | None:
        """Run a query that gives at most one row."""
        found: tuple[Any, ...] | None = None
        for it in self.rows(name, **bindings):
            found = it
        return found

    def only(self, name: str, /, **bindings: object) -> tuple[Any, ...]:
        """Run a query that gives a row in every database that is not damaged."""
        found = self.row(name, **bindings)
        if found is None:
            raise apsw.CorruptError(f"nothing found: {name}")
        return found

    def rows(self, name: str, /, **bindings: Any) -> Iterator[tuple[Any, ...]]:
        """Run a query; its rows are read as they are asked for."""
        return self._db.execute(self._queries[name], bindings)

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Write: take the write lock at once, commit at the end, undo everything if anything fails."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if not self._db.get_autocommit():
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def snapshot(self) -> Generator[None]:
        """Read: all queries see the same moment."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            if not self._db.get_autocommit():
                self._db.execute("ROLLBACK")

    @contextmanager
    def explained(self) -> Generator[None]:
        """Say what a database error means for the user, and what to do about it."""
        try:
            yield
        except apsw.FullError as e:
            raise StoreFull("There is no space left for the sessions. Nothing was changed; free some, try again") from e
        except (apsw.CorruptError, apsw.NotADBError, msgspec.DecodeError, UnicodeDecodeError) as e:
            raise StoreDamaged(
                f"The session store {self._path} is damaged ({e}). Nothing was changed in it. Keep a copy of the file "
                "and of those beside it; restore a backup, or choose another place for the store"
            ) from e
        except apsw.BusyError as e:
            raise StoreError("The session store is locked by another process; try again") from e
        except (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError) as e:
            raise StoreError(f"The session store {self._path} cannot be opened for writing ({e})") from e
        except apsw.IOError as e:
            raise StoreError(f"The session store cannot be read or written ({e}). Nothing was changed") from e
        except apsw.Error as e:
            raise StoreError(f"The session store cannot do that ({e}). Nothing was changed") from e

    def vacuum(self) -> None:
        """Give back the space of what was deleted."""
        self._db.execute("INSERT INTO words (words) VALUES ('optimize')")
        self._db.execute("VACUUM")
        self._db.pragma("wal_checkpoint", "truncate")

    def pages(self) -> tuple[int, int]:
        """Measure the database: its bytes, and those of its empty pages."""
        page, count, free = (self._db.pragma(it) for it in ("page_size", "page_count", "freelist_count"))
        return page * count, page * free

    def format(self) -> int:
        """Say how many migrations it has seen."""
        return self._db.pragma("user_version")

    @contextmanager
    def unless(self, stop: threading.Event) -> Generator[None]:
        """Do something that takes long, and give up when told to."""
        self._db.set_progress_handler(stop.is_set, STOP_STEPS)
        try:
            yield
        finally:
            self._db.set_progress_handler(None)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _check(self) -> None:
        # In this order: another process may be making the store, and it writes both at once.
        has_schema = self._db.pragma("schema_version") != 0
        application = self._db.pragma("application_id")
        if application not in (0, APPLICATION_ID) or (application == 0 and has_schema):
            raise StoreError(f"{self._path} is a database, but not one of Holdfast's; choose another place")
        version, newest = self._db.pragma("user_version"), len(migrations())
        if version > newest:
            raise StoreTooNew(
                f"{self._path} was written by a newer Holdfast (format {version}, this one knows {newest}); "
                "upgrade Holdfast, or choose another place for the store"
            )

    def _use_log(self) -> None:
        """Have a write-ahead log. SQLite does not wait for others that make the same store just now, so we do."""
        deadline = time.monotonic() + BUSY_MS / 1_000
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
        scripts = migrations()
        if self._db.pragma("user_version") == len(scripts):
            return
        with self.transaction():
            for number, script in enumerate(scripts, start=1):
                if number > self._db.pragma("user_version"):  # another process may have been faster
                    self._db.execute(script)
                    self._db.pragma("user_version", number)
            self._db.pragma("application_id", APPLICATION_ID)


def migrations() -> list[str]:
    """Read the migrations, in order."""
    files = [it for it in (_HERE / "migrations").iterdir() if it.name.endswith(".sql")]
    return [it.read_text() for it in sorted(files, key=lambda it: it.name)]


def queries() -> dict[str, str]:
    """Read the queries, by name."""
    parts = re.split(r"^-- name: (\w+)$", (_HERE / "queries.sql").read_text(), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}
