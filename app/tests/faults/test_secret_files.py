"""A secret that was cut off while it was written lets nobody in, and the next start makes a whole one (H6)."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import tempfile
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from app.tests.support.remote_process import ServeProcess
from core.tests.support.remote import served
from core.tests.support.users import USERS, run_as
from holdfast.cluster import NodeSecret
from holdfast.errors import ConnectionLost, UsageError
from holdfast.secret_files import LEAST, is_guessable, read_or_make, write_private
from holdfast.server.remote import SignIn, TokenFile
from holdfast.server.remote.authentication import TokenEntry, hash_token
from holdfast.server.remote.requests import RemoteRequest
from holdfast.transport.websocket_client import connect_websocket
from holdfast_app.cli import connect as connect_module
from holdfast_app.cli import server_files as server_files_module
from holdfast_app.share_links import ShareLink, ShareLinks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.requirement("H6")

CUT_OFF = [b"", b"\n", b"hf_short", b"\0" * 64]
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


@pytest.mark.parametrize("left", CUT_OFF)
async def test_a_local_token_that_was_cut_off_lets_nobody_in_and_is_made_anew(left: bytes, tmp_path: Path) -> None:
    local = tmp_path / "local.token"
    local.write_bytes(left)
    with ServeProcess(tmp_path) as server:
        for guess in ("", left.decode().strip("\0\n")):
            for headers, subprotocols in (
                ({"Authorization": f"Bearer {guess}"}, ()),
                ({}, ("acp.v1", f"bearer.{guess}")),
            ):
                offered = {"Sec-WebSocket-Protocol": ", ".join(subprotocols)} if subprotocols else {}
                with pytest.raises(ConnectionLost, match="401"):
                    await connect_websocket(server.url, headers={**headers, **offered})
        token = local.read_text().strip()
        assert not is_guessable(token)
        whole = await connect_websocket(server.url, headers={"Authorization": f"Bearer {token}"})
        await whole.close(0.0)


@pytest.mark.parametrize("left", CUT_OFF)
def test_a_key_of_cookies_that_was_cut_off_is_made_anew(left: bytes, tmp_path: Path) -> None:
    key = tmp_path / "cookie.key"
    key.write_bytes(left)
    sign_in = SignIn(key)
    assert not is_guessable(key.read_bytes())
    assert sign_in.credential_of("") is None


@pytest.mark.parametrize("left", CUT_OFF)
def test_a_short_secret_of_the_nodes_is_refused(left: bytes) -> None:
    with pytest.raises(ValueError, match="at least"):
        NodeSecret(left)


@pytest.mark.parametrize("presented", ["", "   ", "short", "\0" * 40])
def test_a_short_token_is_refused_though_its_hash_is_stored(presented: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    entry = TokenEntry("ada", hash_token(presented))
    file.write_text(f'[[token]]\nname = "{entry.name}"\nsha256 = "{entry.sha256}"\n')
    assert TokenFile(file).find(presented) is None


@pytest.mark.parametrize("presented", ["", "short"])
def test_a_short_secret_of_a_link_is_refused_though_its_hash_is_stored(presented: str, tmp_path: Path) -> None:
    hashed = hashlib.sha256(presented.encode()).hexdigest()
    link = ShareLink(hashed, "sess_1", "ada", 0, 1 << 40, redacts=True)
    (tmp_path / f"{hashed}.json").write_bytes(msgspec.json.encode(link))
    assert ShareLinks(tmp_path).find(presented) is None
    assert SignIn().use_link(presented) is None


def test_a_subprotocol_without_a_token_is_no_token() -> None:
    request = RemoteRequest("WEBSOCKET", "/acp", {}, ("acp.v1", "bearer."), "127.0.0.1", secure=False)
    assert request.bearer is None


async def test_an_empty_subprotocol_is_answered_as_no_token_at_all(tmp_path: Path) -> None:
    async with served(authenticator=TokenFile(tmp_path / "tokens.toml")) as remote:
        reply = await remote.ask("POST", body=INITIALIZE, token=None, sec_websocket_protocol="bearer.")
        assert (reply.status, "Send a token" in reply.json()["error"]) == (401, True)


def test_an_empty_file_of_a_token_is_named_before_anything_is_sent(tmp_path: Path) -> None:
    empty = tmp_path / "bob.tok"
    empty.write_text("\n")
    with pytest.raises(UsageError, match=r"bob\.tok is empty"):
        connect_module.find_token("http://127.0.0.1:1/acp", empty)


def _local_token(directory: Path) -> Any:
    return server_files_module.local_token(
        server_files_module.server_files(str(directory / "s.db")), TokenFile(directory / "tokens.toml")
    )


MAKERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "local token": ("local.token", _local_token),
    "key of cookies": ("cookie.key", lambda directory: SignIn(directory / "cookie.key")),
    "tokens": ("tokens.toml", lambda directory: TokenFile(directory / "tokens.toml").add("ada")),
    "link": ("shares", lambda directory: ShareLinks(directory / "shares").add("sess_1", "ada", 3600)),
}


@pytest.mark.requirement("P12")
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("kind", MAKERS)
def test_a_full_disk_leaves_no_piece_of_a_secret(kind: str, user: str, tmp_path: Path) -> None:
    name, make = MAKERS[kind]
    directory = tmp_path / "store"
    directory.mkdir()
    tempfile.gettempdir()  # asks by writing a file

    def on_a_full_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))
        with pytest.raises(OSError, match="too large"):
            make(directory)

    run_as(user, directory, on_a_full_disk)
    assert [path for path in directory.rglob("*") if path.is_file()] == [], name
    run_as(user, directory, lambda: make(directory))
    for path in directory.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0 or path.is_dir()


def test_a_write_that_fails_leaves_the_tokens_that_were_there(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.toml")
    ada = tokens.add("ada")

    def on_a_full_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))
        with pytest.raises(OSError, match="too large"):
            tokens.add("bob")

    run_as("this user", tmp_path, on_a_full_disk)
    assert TokenFile(tmp_path / "tokens.toml").find(ada) is not None
    assert [path.name for path in tmp_path.iterdir()] == ["tokens.toml"]


def test_processes_that_start_together_have_one_secret(tmp_path: Path) -> None:
    path = tmp_path / "local.token"
    path.write_bytes(b"")
    read, write = os.pipe()
    children: list[int] = []
    for _ in range(12):
        if (child := os.fork()) == 0:
            try:
                os.write(write, read_or_make(path, lambda: os.urandom(8).hex().encode()) + b"\n")
            finally:
                os._exit(0)
        children.append(child)
    os.close(write)
    for child in children:
        os.waitpid(child, 0)
    with os.fdopen(read, "rb") as said:
        assert len(set(said.read().split())) == 1


def test_two_changes_of_the_tokens_at_once_are_both_there(tmp_path: Path) -> None:
    """Or a removal would be undone by somebody else's new token."""
    path = tmp_path / "tokens.toml"
    removed = TokenFile(path).add("bob")
    children: list[int] = []
    for number in range(12):
        if (child := os.fork()) == 0:
            try:
                if number == 5:
                    TokenFile(path).remove("bob")
                else:
                    TokenFile(path).add(f"ada{number}")
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    assert len(TokenFile(path).entries()) == 11
    assert TokenFile(path).find(removed) is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root writes the files of others")
def test_a_file_that_root_changes_still_belongs_to_the_servers_user(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    TokenFile(path).add("ada")
    os.chown(path, 65534, 65534)
    TokenFile(path).add("bob")
    assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (65534, 0o600)


def test_what_is_written_follows_no_link_that_somebody_laid(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("theirs")
    path = tmp_path / "secret"
    path.symlink_to(target)
    write_private(path, b"s" * LEAST)
    assert (target.read_text(), path.is_symlink()) == ("theirs", False)
