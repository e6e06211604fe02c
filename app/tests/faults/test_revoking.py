"""What is open ends with the credential it was let in with, and a name that is given again revives nothing (F3)."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.remote_process import ServeProcess
from core.tests.support.links import PATIENCE
from core.tests.support.remote import WAYS, Remote, served
from holdfast.server.remote import SignIn, TokenFile
from holdfast.server.remote.application import CLOSE_SECONDS
from holdfast.server.remote.authentication import Credential
from holdfast.server.remote.revocation import LOOK_SECONDS, Revocations, RevokedError
from holdfast.transport.websocket_client import connect_websocket
from holdfast_app.share_links import ShareLinks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from pathlib import Path

    from holdfast.transport import Line

pytestmark = pytest.mark.requirement("F3")

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


def test_all_ends_within_a_second() -> None:
    assert LOOK_SECONDS + CLOSE_SECONDS < 1.0


def holdfast(*words: str, status: int = 0) -> str:
    """Run a command; return what it says."""
    ran = subprocess.run(
        [sys.executable, "-m", "holdfast", *words], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert ran.returncode == status, ran.stderr
    return ran.stdout + ran.stderr


async def in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, lambda: work(*arguments))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


# Connections


@pytest.mark.requirement("H6")
@pytest.mark.parametrize("way", WAYS)
async def test_a_name_that_gets_a_new_token_does_not_keep_the_old_tokens_connection(way: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    old = TokenFile(file).add("bob")
    async with served(way=way, authenticator=TokenFile(file)) as remote:
        client = await remote.client(way, token=old)
        assert await client.prompt(await client.new(), "hello") == "end_turn"
        tokens = TokenFile(file)
        tokens.remove("bob")
        new = tokens.add("bob")
        other = await remote.client(way, token=new)
        await until(lambda: len(remote.server.connections) == 1)
        assert await other.prompt(await other.new(), "hello") == "end_turn"
        assert (await remote.ask("POST", body=INITIALIZE, token=old)).status == 401


@pytest.mark.requirement("H4")
async def test_a_new_token_does_not_find_the_connection_of_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    tokens = TokenFile(file)
    first, second = tokens.add("bob"), tokens.add("bob")
    listing: Any = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
    connection = ""
    for kept in (tmp_path / "kept", tmp_path / "kept"):  # the second server begins with what the first has kept
        async with served(authenticator=TokenFile(file), keep=kept, store=tmp_path / "s.db") as remote:
            if not connection:
                opened = await remote.ask("POST", body=INITIALIZE, token=first)
                connection = opened.headers["acp-connection-id"]
            foreign = await remote.ask("POST", body=listing, token=second, acp_connection_id=connection)
            assert foreign.status == 404
            own = await remote.ask("POST", body=listing, token=first, acp_connection_id=connection)
            assert own.status == 202


async def test_a_stream_of_events_ends_too(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    token = TokenFile(file).add("bob")
    async with served(authenticator=TokenFile(file)) as remote:
        connection = (await remote.ask("POST", body=INITIALIZE, token=token)).headers["acp-connection-id"]
        reader, writer = await asyncio.open_connection("127.0.0.1", remote.port, limit=1024)
        try:
            writer.write(
                f"GET /acp HTTP/1.1\r\nhost: 127.0.0.1:{remote.port}\r\nauthorization: Bearer {token}\r\n"
                f"acp-connection-id: {connection}\r\nconnection: close\r\n\r\n".encode()
            )
            await reader.readuntil(b"\r\n\r\n")
            TokenFile(file).remove("bob")
            async with asyncio.timeout(PATIENCE):
                while await _some(reader):
                    pass
        finally:
            writer.transport.abort()
        await until(lambda: len(remote.server.connections) == 0)


async def _some(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(1024)
    except ConnectionError:
        return b""


async def test_a_body_that_still_comes_is_not_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    token = TokenFile(file).add("bob")
    async with served(authenticator=TokenFile(file)) as remote:
        asking = asyncio.ensure_future(remote.ask("POST", body=b"{", token=token, content_length="1000"))
        await asyncio.sleep(0.1)
        TokenFile(file).remove("bob")
        assert (await asking).status == 401


# Browsers


async def test_a_link_and_a_cookie_end_with_the_token_they_were_made_for(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    tokens, sign_in = TokenFile(file), SignIn()
    credential = tokens.find(tokens.add("bob"))
    assert credential is not None
    async with served(authenticator=TokenFile(file), sign_in=sign_in) as remote:
        used, unused = (f"/link/{sign_in.new_link(credential)}" for _ in range(2))
        cookie = (await remote.ask("GET", path=used, token=None)).headers["set-cookie"].partition(";")[0]
        signed_in: dict[str, Any] = {"token": None, "cookie": cookie}
        assert (await remote.ask("GET", path="/metrics", **signed_in)).status == 200
        tokens.remove("bob")
        tokens.add("bob")
        assert (await remote.ask("GET", path="/metrics", **signed_in)).status == 401
        assert (await remote.ask("GET", path=unused, token=None)).status == 403


async def test_a_feed_whose_page_does_not_read_is_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    token = TokenFile(file).add("bob")
    stalled, left = asyncio.Event(), asyncio.Event()

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        assert scope["holdfast.credential"]
        await receive()
        await send({"type": "websocket.accept"})
        try:
            while True:
                sending = asyncio.ensure_future(send({"type": "websocket.send", "text": "x" * 65536}))
                if not (await asyncio.wait({sending}, timeout=0.2))[0]:
                    stalled.set()
                await sending
        finally:
            left.set()

    async with served(authenticator=TokenFile(file), pages=endless, send_buffer=4096) as remote:
        transport = await connect_websocket(
            remote.url.replace("/acp", "/live"), headers={"Authorization": f"Bearer {token}"}
        )
        await stalled.wait()
        TokenFile(file).remove("bob")
        async with asyncio.timeout(PATIENCE):
            await left.wait()
        tab = _Tab()
        transport.open(tab)
        async with asyncio.timeout(PATIENCE):
            await tab.ended.wait()
        await transport.close(0.0)


class _Tab:
    """A page of a browser that listens to a feed."""

    def __init__(self) -> None:
        self.heard: list[Line] = []
        self.ended = asyncio.Event()

    def lines_received(self, lines: Sequence[Line]) -> None:
        self.heard += lines

    def input_ended(self, reason: object) -> None:
        self.ended.set()


@asynccontextmanager
async def listening(server: ServeProcess, path: str, token: str) -> AsyncGenerator[_Tab]:
    tab = _Tab()
    transport = await connect_websocket(f"{server.base}{path}", headers={"Authorization": f"Bearer {token}"})
    transport.open(tab)
    try:
        yield tab
    finally:
        await transport.close(0.0)


class _Page:
    """What a page asks of the server."""

    def __init__(self, server: ServeProcess, token: str) -> None:
        self._server, self._token = server, token

    async def ask(self, path: str, body: object = None, *, signed_in: bool = True) -> tuple[int, bytes]:
        return await in_thread(self._ask, path, body, signed_in)

    def _ask(self, path: str, body: object, signed_in: bool) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {self._token}"} if signed_in else {}
        try:
            if body is None:
                connection.request("GET", path, headers=headers)
            else:
                sent = {**headers, "Content-Type": "application/json"}
                connection.request("POST", path, json.dumps(body), headers=sent)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    async def post(self, path: str, body: object) -> Any:
        status, said = await self.ask(path, body)
        assert status == 200, said
        return json.loads(said)


@pytest.mark.requirement("P12")
async def test_pages_that_listen_hear_no_more_of_a_principal_that_was_removed(tmp_path: Path) -> None:
    with ServeProcess(tmp_path, options=("--web",)) as server:
        bob, ada = server.token("bob"), server.token("ada")
        page = _Page(server, bob)
        session = (await page.post("/sessions", {"agent": "holdfast-demo", "cwd": str(tmp_path)}))["session"]
        async with AsyncExitStack() as tabs:
            of_bob = [
                await tabs.enter_async_context(listening(server, path, bob))
                for path in ("/live", f"/sessions/{session}/live?lines=0")
            ]
            of_ada = await tabs.enter_async_context(listening(server, "/live", ada))
            await until(lambda: all(tab.heard for tab in (*of_bob, of_ada)))
            holdfast("token", "remove", "bob", "--store", server.store)
            new = server.token("bob")
            for tab in of_bob:
                async with asyncio.timeout(PATIENCE):
                    await tab.ended.wait()
            heard = [len(tab.heard) for tab in of_bob]
            again = _Page(server, new)
            await again.post(f"/sessions/{session}/prompt", {"prompt": [{"type": "text", "text": "very secret"}]})
            async with listening(server, f"/sessions/{session}/live?lines=0", new) as renewed:
                await until(lambda: any(b"very secret" in line for line in renewed.heard if isinstance(line, bytes)))
            assert [len(tab.heard) for tab in of_bob] == heard
            assert not of_ada.ended.is_set()
        assert "Traceback" not in server.complaints()


# Shared sessions


@pytest.mark.requirement("P12")
@pytest.mark.parametrize("keeps", [False, True], ids=["revoked", "kept"])
async def test_links_of_a_removed_principal_lead_nowhere_unless_they_are_kept(keeps: bool, tmp_path: Path) -> None:
    with ServeProcess(tmp_path, options=("--web",)) as server:
        bob, ada = _Page(server, server.token("bob")), _Page(server, server.token("ada"))
        paths: dict[str, str] = {}
        for name, page in (("bob", bob), ("ada", ada)):
            session = (await page.post("/sessions", {"agent": "holdfast-demo", "cwd": str(tmp_path)}))["session"]
            paths[name] = (await page.post(f"/sessions/{session}/share", {"seconds": 3600}))["path"]
            made = holdfast("sessions", "share", session, "--store", server.store, "--json")
            paths[f"{name}, by the command line"] = f"/share/{json.loads(made)['link'].rpartition('/')[2]}"

        async def statuses() -> dict[str, int]:
            return {name: (await bob.ask(path, signed_in=False))[0] for name, path in paths.items()}

        assert set((await statuses()).values()) == {200}
        options = ("--keep-links",) if keeps else ()
        said = await in_thread(holdfast, "token", "remove", "bob", "--store", server.store, *options)
        assert ("2 share links still work" if keeps else "2 share links revoked") in said
        server.token("bob")
        left = 200 if keeps else 404
        assert await statuses() == dict(zip(paths, (left, left, 200, 200), strict=True))


async def test_a_link_ends_with_its_credential_also_where_the_file_of_tokens_is_edited(tmp_path: Path) -> None:
    with ServeProcess(tmp_path, options=("--web",)) as server:
        page = _Page(server, server.token("bob"))
        session = (await page.post("/sessions", {"agent": "holdfast-demo", "cwd": str(tmp_path)}))["session"]
        path = (await page.post(f"/sessions/{session}/share", {"seconds": 3600}))["path"]
        server.tokens.path.write_text("")
        assert (await page.ask(path, signed_in=False))[0] == 404
        server.token("bob")
        assert (await page.ask(path, signed_in=False))[0] == 404


async def test_a_shared_page_that_is_being_read_ends_when_its_link_is_revoked(tmp_path: Path) -> None:
    links = ShareLinks(tmp_path / "shares")
    secret, link = links.add("sess_1", "bob", 3600)
    sent = asyncio.Event()

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        del receive
        assert links.find(secret) is not None
        async with scope["holdfast.bound"](link.id, lambda: links.still(link)):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
                sent.set()
                await asyncio.sleep(0)

    async with served(shared=endless) as remote:
        reader, writer = await asyncio.open_connection("127.0.0.1", remote.port)
        try:
            writer.write(f"GET /share/{secret} HTTP/1.1\r\nhost: 127.0.0.1:{remote.port}\r\n\r\n".encode())
            await sent.wait()
            links.revoke(link)
            async with asyncio.timeout(PATIENCE):
                while await _some(reader):
                    pass
        finally:
            writer.transport.abort()


# The pieces


async def test_what_is_bound_is_cancelled_and_what_has_ended_is_let_alone() -> None:
    revocations, holds = Revocations(), True
    began = asyncio.Event()
    reached: list[str] = []

    async def stay(until_then: Awaitable[object]) -> None:
        async with revocations.bound("bob", lambda: holds):
            began.set()
            await until_then
            reached.append("the end")

    await stay(asyncio.sleep(0))
    staying = asyncio.ensure_future(stay(asyncio.Event().wait()))
    await began.wait()
    await asyncio.sleep(2 * LOOK_SECONDS)
    assert not staying.done()
    holds = False
    with pytest.raises(RevokedError):
        async with asyncio.timeout(PATIENCE):
            await staying
    assert reached == ["the end"]
    revocations.close()


async def test_a_cancel_and_a_timeout_of_ones_own_are_no_revocation() -> None:
    revocations = Revocations()
    with pytest.raises(TimeoutError):
        async with revocations.bound("bob", lambda: True):
            raise TimeoutError
    task = asyncio.ensure_future(_stay(revocations))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    revocations.close()


async def _stay(revocations: Revocations) -> None:
    async with revocations.bound("bob", lambda: True):
        await asyncio.Event().wait()


async def test_while_nobody_can_say_who_may_stay_all_stay(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    tokens = TokenFile(file)
    credential = tokens.find(tokens.add("bob"))
    assert credential is not None
    file.write_text("this is not TOML")
    assert tokens.holds(credential)
    assert not TokenFile(tmp_path / "none.toml").holds(credential)


def test_two_changes_within_a_tick_of_the_clock_are_both_seen(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    reading, writing = TokenFile(file), TokenFile(file)
    for _ in range(50):
        token = writing.add("bob")
        assert reading.find(token) is not None
        writing.remove("bob")
        again = writing.add("bob")
        assert reading.find(token) is None
        assert reading.find(again) is not None
        writing.remove("bob")


class OnlyNames:
    """An authenticator as somebody writes his own: it knows names."""

    def __init__(self) -> None:
        self.removed: set[str] = set()

    async def principal(self, request: Any) -> str | None:
        return request.bearer

    def knows(self, principal: str) -> bool:
        return principal not in self.removed


async def test_an_authenticator_that_knows_names_alone_turns_out_by_name() -> None:
    names = OnlyNames()
    async with served(authenticator=names) as remote:
        sign_in: SignIn = remote.server.sign_in
        link = sign_in.new_link(Credential("bob", "bob"))
        await remote.client(token="bob")
        other = await remote.client(token="ada")
        names.removed.add("bob")
        await until(lambda: len(remote.server.connections) == 1)
        assert (await _used(remote, link)) == 403
        assert await other.prompt(await other.new(), "hello") == "end_turn"


async def _used(remote: Remote, link: str) -> int:
    return (await remote.ask("GET", path=f"/link/{link}", token=None)).status
