"""Which store an address names: a path, ``:memory:``, ``sqlite:///path``, ``postgresql://…``; and the default one."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.store.port import SessionStore

MEMORY = ":memory:"

_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]+)://"


def default_address() -> str:
    """Return where sessions are kept: what `HOLDFAST_STORE` says, or a file in the user's data directory."""
    return os.environ.get("HOLDFAST_STORE") or str(data_directory() / "sessions.db")


def data_directory() -> Path:
    """Return where the user's own data of Holdfast lie, unless something else is said."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return base / "holdfast"


def file_of(address: str) -> Path | None:
    """Return the file that an address names, or None for a store in memory; raise `UsageError` for any other."""
    scheme = re.match(_SCHEME, address)
    if scheme is None:
        return None if address == MEMORY else Path(address)
    match scheme[1].lower():
        case "sqlite":
            return _file_of_url(address, address[scheme.end() :])
        case "postgresql" | "postgres":
            raise UsageError("A PostgreSQL database is no file; name a file for this")
        case other:
            raise UsageError(
                f"{other}:// is no address of a session store; name a file, sqlite:///path/to/file, or postgresql://…"
            )


def _file_of_url(address: str, rest: str) -> Path | None:
    if not rest.startswith("/") or rest == "/":
        raise UsageError(f"{address} names no file; write sqlite:///path/to/file")
    path = unquote(rest)
    if path == f"/{MEMORY}":
        return None
    return Path(path[1:] if re.match(r"/[A-Za-z]:[/\\]", path) else path)  # a drive of Windows


def is_postgres(address: str) -> bool:
    """Return whether an address names a PostgreSQL database."""
    return address.lower().startswith(("postgresql://", "postgres://"))


def directory_beside(address: str) -> Path:
    """Return where files are kept that go with a store: beside its file, else in the user's data directory."""
    file = None if is_postgres(address) else file_of(address)
    return data_directory() if file is None else file.absolute().parent


def store_mark(address: str | None = None) -> str | None:
    """Return a text that is the same for all addresses of one store, and tells nothing of it; None for one in memory.

    Two programs that stand one behind the other recognise by it that they would keep the same sessions twice.
    """
    from hashlib import sha256  # noqa: PLC0415  (few processes have another behind them)

    address = address or default_address()
    if is_postgres(address):
        place = re.sub(r"^[^/]*//([^/@]*@)?|[?].*$", "", address)
    elif (file := file_of(address)) is None:
        return None
    else:
        place = f"{_machine()}\0{os.path.realpath(file)}"
    return sha256(place.encode(errors="surrogateescape")).hexdigest()[:32]


def _machine() -> str:
    """Return what tells this machine from another one that has the same paths."""
    import socket  # noqa: PLC0415

    try:
        return f"{socket.gethostname()}\0{Path('/etc/machine-id').read_text()}"
    except OSError:
        return socket.gethostname()


def shown_address(address: str) -> str:
    """Return an address as it may be shown: without a password (P10)."""
    return re.sub(r"(?<=://)([^/@:]*):[^/@]*@", r"\1@", re.sub(r"([?&]password=)[^&]*", r"\1…", address))


async def open_store(address: str | None = None, *, node_url: str | None = None) -> SessionStore:
    """Open the store at an address, or make it where there is none. One in memory is gone when it is closed.

    `node_url` is where other nodes on a PostgreSQL database reach this one; raise `UsageError` for another store.
    """
    address = address or default_address()
    if is_postgres(address):
        return await _open_postgres(address, node_url)
    if node_url is not None:
        raise UsageError("A node's address is for sessions in PostgreSQL; on one machine nothing has to be set up")
    file = file_of(address)
    from holdfast.store.sqlite import SqliteStore  # noqa: PLC0415  (whoever never stores never loads it)

    return await SqliteStore.open(MEMORY if file is None else str(file))


async def _open_postgres(address: str, node_url: str | None) -> SessionStore:
    try:
        from holdfast.store.postgres import PostgresStore  # noqa: PLC0415
    except ModuleNotFoundError as e:
        if e.name != "asyncpg":
            raise
        raise UsageError("For PostgreSQL install what speaks to it: pip install 'holdfast-core[postgres]'") from None
    return await PostgresStore.open(address, node_url=node_url)
