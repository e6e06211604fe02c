"""The files of a server, beside its store: tokens, the key of cookies, and the token of this machine's user."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import UsageError
from holdfast.model import LOCAL
from holdfast.secret_files import is_guessable, read_or_make
from holdfast.store.address import default_address, directory_beside

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from holdfast.server.remote import RemoteRequest, TokenFile
    from holdfast.server.remote.authentication import Credential


class ServerFiles(NamedTuple):
    """Where a server's files are."""

    tokens: Path
    cookie_key: Path
    connections: Path
    """Connections that outlive the process."""
    local_token: Path
    """The token of this machine's user; whoever can read it is that user."""
    workspaces: Path
    """Directories of principals that were given none."""
    shares: Path
    """Links with which others read a session."""
    homes: Path
    """Homes of agents behind a launcher."""
    audit: Path
    address: Path
    """The address of the server with a page that runs on the store, which holds a lock on it."""


def server_files(store: str | None = None) -> ServerFiles:
    """Return where the files of a server with that store are; of one in memory, where the usual ones are."""
    beside = directory_beside(store or default_address())
    return ServerFiles(
        beside / "tokens.toml", beside / "cookie.key", beside / "connections", beside / "local.token",
        beside / "workspaces", beside / "shares", beside / "homes", beside / "audit.jsonl",
        beside / "server.address",
    )  # fmt: skip


@contextmanager
def announced(files: ServerFiles, address: str) -> Generator[None]:
    """Let commands of this user find a server while it runs; the first one of a store, where there are several."""
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415  (there is none on Windows)

    files.address.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(files.address, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, address.encode())
        yield
    finally:
        os.close(descriptor)


def running_server(files: ServerFiles) -> str | None:
    """Return the address of the server that runs on a store; None if none does.

    An address that nobody holds a lock on may be another user's program by now, which must be shown no token.
    """
    if sys.platform == "win32" or not files.address.is_file():
        return None
    import fcntl  # noqa: PLC0415

    with files.address.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read().strip() or None
    return None


class LocalOrTokens:
    """Knows the token of this machine's user, and those in a file."""

    def __init__(self, local: str, tokens: TokenFile) -> None:
        from holdfast.server.remote.authentication import TokenEntry, hash_token  # noqa: PLC0415

        self._local = TokenEntry(LOCAL, hash_token(local))
        self._tokens = tokens

    @property
    def local(self) -> Credential:
        """The credential of this machine's user."""
        return self._local.credential

    async def principal(self, request: RemoteRequest) -> str | None:
        """Return whom the token of a request names."""
        credential = await self.credential(request)
        return None if credential is None else credential.principal

    async def credential(self, request: RemoteRequest) -> Credential | None:
        """Return the token of a request, without the secret."""
        import hmac  # noqa: PLC0415

        from holdfast.server.remote.authentication import hash_token  # noqa: PLC0415

        token = request.bearer
        if token is None or is_guessable(token):
            return None
        is_local = hmac.compare_digest(hash_token(token), self._local.sha256)
        found = self._tokens.find(token)
        return self.local if is_local else found

    def holds(self, credential: Credential) -> bool:
        """Return whether a credential is that of this machine's user, or its token is still there."""
        return credential == self.local or self._tokens.holds(credential)


def local_token(files: ServerFiles, tokens: TokenFile) -> LocalOrTokens:
    """Return an authenticator that knows the user of this machine, whose token is made if there is none."""
    return LocalOrTokens(read_or_make(files.local_token, _new_token).decode(errors="replace").strip(), tokens)


def _new_token() -> bytes:
    from holdfast.server.remote.authentication import new_token  # noqa: PLC0415

    return f"{new_token()}\n".encode()


def read_token(path: Path) -> str:
    """Return the token in a file; raise `UsageError` for a file that has none."""
    token = path.read_text().strip()
    if not token:
        raise UsageError(f"{path} is empty: it should hold a token. Make one with `holdfast token new NAME`")
    return token
