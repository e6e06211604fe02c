"""Connections to the database: what must hold before it is used, queries by their names, what its errors mean.

A connection that breaks is replaced, and what was asked for is asked again: the store's queries are written so that one
that was done already, without our hearing of it, can be told from one that was not.
"""

from __future__ import annotations

import asyncio
import re
import socket
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg
import msgspec

from holdfast.errors import HoldfastError, StoreDamaged, StoreError, StoreFull, StoreTooNew, UsageError
from holdfast.store.postgres.connections import CONNECT_SECONDS, Connections

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

# asyncpg has no types that strict checking can see through.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

OLDEST_SERVER = 15
PATIENCE = 30.0
"""So many seconds a database that is not there is waited for: a restart or a failover is a pause, not an error."""

PAUSES = 0.05, 1.0
"""The shortest and the longest pause before it is tried again."""

SILENCE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 30_000}
"""How a connection finds out, within 30 seconds, that the other end is gone without a word."""

IDLE_TRANSACTION = "10s"
"""After so long the database ends a transaction whose process was stopped; nearly all of ours are single statements."""

LOCK = 1215261764, 1
"""The advisory lock under which the schema is changed."""

_HERE: Traversable = resources.files(__package__ or "")

GONE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,  # what used to be the primary is a standby now
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # what a connection says that breaks while it is between two states
)
"""How one finds out that a connection, or the database behind it, is gone."""


def is_gone(error: BaseException) -> bool:
    """Return whether an error says that a connection, or the database behind it, is gone."""
    return isinstance(error, GONE) and not isinstance(error, asyncpg.DataError)  # a value of ours that it cannot take


class Address(NamedTuple):
    """Where a database is, and what was asked for in its address besides."""

    dsn: str
    lease: float
    prepares: bool
    """Whether statements are prepared once and used again. Some poolers cannot do that."""

    @property
    def shown(self) -> str:
        """The address without a user's name, password or options (P10)."""
        parts = urlsplit(self.dsn)
        host = parts.netloc.rpartition("@")[2] or "(local)"
        return f"postgresql://{host}{parts.path}"


def parse_address(address: str, lease: float) -> Address:
    """Split an address into what the driver understands and what is ours: ``lease`` and ``prepare``.

    Raise `UsageError` where one of ours makes no sense.
    """
    parts = urlsplit(address)
    hosts = parts.netloc.rpartition("@")[2].split(",")
    if not all(re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?", host) for host in hosts):
        raise UsageError("the port in the address of a store must be a number: postgresql://user@host:5432/database")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    prepares = options.pop("prepare", "yes")
    if prepares not in ("yes", "no"):
        raise UsageError("prepare= in the address of a store must be yes or no")
    try:
        lease = float(options.pop("lease", lease))
    except ValueError:
        lease = 0
    if not 0.5 <= lease <= 300:
        raise UsageError("lease= in the address of a store must be a number of seconds, from 0.5 to 300")
    dsn = urlunsplit(parts._replace(query=urlencode(options)))
    return Address(dsn, lease, prepares == "yes")


class Database:
    """A database that may be used: its version is checked, its schema up to date, and it loses nothing acknowledged."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._queries = queries()
        self._options: dict[str, Any] = {
            "server_settings": {"application_name": "holdfast"},
            "statement_cache_size": 200 if address.prepares else 0,
            "timeout": CONNECT_SECONDS,
        }
        self._connections: Connections = Connections()
        self._closed = False

    @classmethod
    async def open(cls, address: Address) -> Database:
        """Connect, check what must hold, and bring the schema up to date."""
        database = cls(address)
        try:
            await database._open()
        except BaseException:
            await database.close()
            raise
        return database

    async def _open(self) -> None:
        try:
            await (await self.connect()).close()  # whoever names a wrong address should not wait to hear of it
            await self._connections.open(self.address.dsn, init=_break_when_silent, **self._options)
        except Exception as e:
            raise self.plain_error(e) from e
        await self._check_server()
        await self._migrate()

    async def fetch(self, name: str, /, *arguments: Any) -> list[Any]:
        """Run a query; return its rows. Where the database went away, run it again when it is back.

        Raise `StoreError` where it does not come back, or cannot do it.
        """
        return await self._fetch(self._queries[name], arguments)

    async def fetch_rows(self, name: str, rows: int, /, *arguments: Any) -> list[Any]:
        """Run a query that has so many `rows` at most, a number that is part of its text; see `fetch`."""
        return await self._fetch(self._queries[name].replace(":rows", str(rows)), arguments)

    async def _fetch(self, text: str, arguments: tuple[Any, ...]) -> list[Any]:
        retries = Retries(self)
        while True:
            try:
                async with self._connections.take() as connection:
                    return await connection.fetch(text, *arguments)
            except Exception as e:  # noqa: BLE001  (what it means is found out there)
                await retries.after(e)

    async def first(self, name: str, /, *arguments: Any) -> Any:
        """Run a query; return its first row, or None."""
        rows = await self.fetch(name, *arguments)
        return rows[0] if rows else None

    async def value(self, name: str, /, *arguments: Any) -> Any:
        """Run a query; return its first value, or None where there is no row."""
        row = await self.first(name, *arguments)
        return None if row is None else row[0]

    async def transact(self, *statements: tuple[str, tuple[Any, ...]]) -> list[Any]:
        """Run several queries in one transaction; return the rows of the last.

        Each sees all that those before it have waited for.
        """
        retries = Retries(self)
        while True:
            try:
                async with self._connections.take() as connection, connection.transaction():
                    await connection.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE_TRANSACTION}'")
                    rows: list[Any] = []
                    for name, arguments in statements:
                        rows = await connection.fetch(self._queries[name], *arguments)
                    return rows
            except Exception as e:  # noqa: BLE001
                await retries.after(e)

    async def run_alone(self, *statements: str) -> None:
        """Run statements that take long and cannot be in a transaction."""
        try:
            async with self._connections.take() as connection:
                for statement in statements:
                    await connection.execute(statement)
        except Exception as e:
            raise self.plain_error(e) from e

    def query(self, name: str) -> str:
        """Return the text of a query, for whoever has a connection of its own."""
        return self._queries[name]

    async def connect(self) -> Any:
        """Open a connection that is the caller's own; raise what the driver raises."""
        connection = await asyncpg.connect(self.address.dsn, **self._options)
        await _break_when_silent(connection)
        return connection

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    async def close(self) -> None:
        """Close all connections; whoever still uses one has a moment to end."""
        self._closed = True
        await self._connections.close()

    def plain_error(self, error: BaseException) -> Exception:
        """Return what an error of the database means for the user, and what to do about it."""
        where = self.address.shown
        match error:
            case HoldfastError():
                return error
            case asyncpg.DiskFullError():
                return StoreFull("There is no space left for the sessions in the database. Free some and try again")
            case asyncpg.DataCorruptedError() | asyncpg.IndexCorruptedError() | msgspec.DecodeError():
                return StoreDamaged(f"The database {where} is damaged ({error}); restore a backup of it")
            case asyncpg.InvalidCatalogNameError():
                return StoreError(f"There is no database at {where}; create it with `createdb`, or name another")
            case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
                return StoreError(f"The database {where} refuses this user; name another user, or the right password")
            case asyncpg.InsufficientPrivilegeError():
                return StoreError(
                    f"The role of this process may not do that in {where} ({error}). Let the database's owner open the "
                    "store once, or `GRANT ALL ON SCHEMA holdfast` and on all tables in it to that role"
                )
            case asyncpg.ReadOnlySQLTransactionError():
                return StoreError(f"The database {where} is read-only: it is a standby. Name the primary")
            case asyncpg.DuplicatePreparedStatementError() | asyncpg.InvalidSQLStatementNameError():
                return StoreError(
                    f"A pooler between this process and the database {where} mixes up prepared statements; add "
                    "prepare=no to the address: postgresql://…/database?prepare=no"
                )
            case _ if is_gone(error):
                return StoreError(f"The database {where} cannot be reached ({_reason(error)}); try again in a moment")
            case asyncpg.PostgresError() | asyncpg.DataError():
                return StoreError(f"The database cannot do that ({error}). Nothing was changed")
            case Exception():
                return error
            case _:
                raise error

    async def _check_server(self) -> None:
        found = await self.first("server_version")
        if found["number"] < OLDEST_SERVER * 10_000:
            raise StoreError(
                f"PostgreSQL {found['text']} is too old for Holdfast; it needs version {OLDEST_SERVER} or newer"
            )
        if found["is_standby"]:
            raise StoreError(f"The database {self.address.shown} is read-only: it is a standby. Name the primary")
        if found["synchronous_commit"] == "off":
            raise StoreError(
                "The database acknowledges what it has not stored yet (synchronous_commit is off), so turns that "
                "clients have seen could be lost. Set it on: ALTER ROLE CURRENT_USER SET synchronous_commit = on"
            )

    async def _migrate(self) -> None:
        """Bring the schema up to date, one numbered file after the other, all of them or none."""
        scripts = migrations()
        if await self._format() == len(scripts):
            return
        try:
            async with self._connections.take() as connection, connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock($1, $2)", *LOCK)
                await connection.execute("CREATE SCHEMA IF NOT EXISTS holdfast")
                done = await self._format_in(connection)  # another process may have been faster
                for number, script in enumerate(scripts[done:], start=done + 1):
                    await connection.execute(script)
                    await connection.execute(self._queries["set_setting"], "format", str(number).encode())
        except Exception as e:
            raise self.plain_error(e) from e

    async def _format(self) -> int:
        retries = Retries(self)  # it was there a moment ago: it may be restarting
        while True:
            try:
                async with self._connections.take() as connection:
                    return await self._format_in(connection)
            except Exception as e:  # noqa: BLE001
                await retries.after(e)

    async def _format_in(self, connection: Any) -> int:
        """Return how many migrations were done; raise `StoreTooNew` where a newer Holdfast did more."""
        if await connection.fetchval("SELECT to_regclass('holdfast.setting')") is None:
            return 0
        number = await connection.fetchval(self._queries["get_format"]) or 0
        if number > (known := len(migrations())):
            raise StoreTooNew(
                f"{self.address.shown} was written by a newer Holdfast (schema {number}, this one knows {known}); "
                "upgrade Holdfast, or name another database"
            )
        return number


class Retries:
    """How often something is tried again after its connection broke."""

    def __init__(self, database: Database, patience: float = PATIENCE) -> None:
        self._database = database
        self._until = asyncio.get_running_loop().time() + patience
        self._pause = PAUSES[0]

    async def after(self, error: Exception) -> None:
        """Wait a little after an error; raise it, in words for the user, where another attempt would not help."""
        if not is_gone(error) or self._database.is_closed or asyncio.get_running_loop().time() > self._until:
            plain = self._database.plain_error(error)
            raise plain from (None if plain is error else error)
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, PAUSES[1])


async def _break_when_silent(connection: Any) -> None:
    """Let a connection break when its server's machine does not answer any more: nobody may ever say so otherwise."""
    transport: asyncio.Transport | None = getattr(connection, "_transport", None)  # the driver has no option for it
    connected: socket.socket | None = None if transport is None else transport.get_extra_info("socket")
    if connected is None or connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in SILENCE.items():
        if (option := getattr(socket, name, None)) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


def migrations() -> list[str]:
    """Read the migrations, in order."""
    files = [file for file in (_HERE / "migrations").iterdir() if file.name.endswith(".sql")]
    return [file.read_text() for file in sorted(files, key=lambda file: file.name)]


def queries() -> dict[str, str]:
    """Read the queries, by name."""
    parts = re.split(r"^-- name: (\w+)$", (_HERE / "queries.sql").read_text(), flags=re.MULTILINE)
    return {name: text.strip().removesuffix(";") for name, text in zip(parts[1::2], parts[2::2], strict=True)}
