"""`holdfast connect`: the editor sees a pause, nothing twice, nothing missing (H9)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

import holdfast
from app.tests.support.bridges import bridged
from core.tests.support.acp import Client, patiently
from core.tests.support.links import PATIENCE
from core.tests.support.remote import served
from holdfast.errors import ConnectionRefused, UsageError
from holdfast.transport import memory_pair
from holdfast.transport.websocket_client import connect_websocket
from holdfast_app.bridge import Bridge, PathMap

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.transport import Transport

pytestmark = pytest.mark.requirement("H9")


@pytest.mark.parametrize("version", [1, 2])
async def test_a_turn_whose_connection_is_cut_again_and_again_is_whole(version: int, place: Path) -> None:
    async with served(store=place) as remote, bridged(remote, version) as bridge:
        editor = bridge.editor
        await editor.initialize()
        session = await editor.new()
        turn = editor.begin_prompt(session, "/stream 3000")
        for times, part in enumerate((200, 700, 1_500), start=1):
            await bridge.until(lambda part=part: f" {part} " in editor.said())
            await bridge.connected(times)  # or the same connection would be cut twice
            bridge.cut()
        await patiently(turn)
        await bridge.until(lambda: "2999 " in editor.said())
        assert editor.said() == "".join(f"{n} " for n in range(3_000))
        await bridge.connected(4)
        assert len(bridge.made) == 4
        if version == 2:
            await editor.until(lambda: "end_turn" in editor.states() or editor.states()[-1] == "idle")
        editor.forget()
        assert await editor.prompt(session, "and now?") == "end_turn"


@pytest.mark.requirement("F5")
async def test_a_question_is_asked_once_though_the_connection_is_cut(place: Path) -> None:
    async with served(store=place) as remote, bridged(remote) as bridge:
        editor = bridge.editor
        await editor.initialize()
        session = await editor.new()
        turn = editor.begin_prompt(session, "/ask")
        question = await editor.question()
        bridge.cut()
        question.select(question.params["options"][0]["optionId"])  # while nobody is there to hear it
        assert (await patiently(turn))["stopReason"] == "end_turn"
        assert len(editor.asked) == 1


async def test_what_the_editor_sends_while_the_connection_is_cut_waits(place: Path) -> None:
    async with served(store=place) as remote, bridged(remote) as bridge:
        await bridge.editor.initialize()
        session = await bridge.editor.new()
        bridge.cut()
        turn = bridge.editor.begin_prompt(session, "in the dark")
        listing = bridge.editor.begin("session/list")
        assert (await patiently(turn))["stopReason"] == "end_turn"
        assert isinstance((await patiently(listing))["sessions"], list)


@pytest.mark.requirement("B16")
async def test_a_session_that_was_archived_and_unarchived_goes_on_after_a_cut(place: Path) -> None:
    async with served(store=place) as remote, bridged(remote) as bridge:
        editor = bridge.editor
        await editor.initialize()
        session = await editor.new()
        await editor.prompt(session, "hello")
        for method in ("session/archive", "session/unarchive"):
            await editor.ask(method, {"sessionId": session})
        bridge.cut()
        await bridge.connected(2)
        editor.forget()
        assert await editor.prompt(session, "once more") == "end_turn"
        assert editor.said() == "once more"


@pytest.mark.requirement("H6")
async def test_a_server_that_does_not_let_us_in_is_told_of_and_not_asked_again(tmp_path: Path) -> None:
    from holdfast.server.remote import TokenFile

    tokens = TokenFile(tmp_path / "none.toml")
    async with served(authenticator=tokens) as remote, bridged(remote, token="wrong") as bridge:
        first = await bridge.editor.refusal("initialize", {"protocolVersion": 1})
        assert "401" in first.message
        await asyncio.wait({bridge.running})
        assert isinstance(bridge.running.exception(), ConnectionRefused)


async def test_a_server_that_is_not_there_is_told_of_as_soon_as_the_patience_ends() -> None:
    near, far = memory_pair()
    editor = Client(far, 1)

    async def connect() -> Transport:
        return await connect_websocket("http://localhost:1/acp")  # where nobody listens

    running = asyncio.ensure_future(Bridge(near, connect, patience=0).run())
    refused = await editor.refusal("initialize", {"protocolVersion": 1})
    assert refused.message == (
        "localhost:1 cannot be reached: nothing listens there. Start the server (`holdfast serve`), or mend the address"
    )
    await asyncio.wait({running})
    assert isinstance(running.exception(), ConnectionRefused)
    await editor.transport.close(0.1)


INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
LIST = b'{"jsonrpc":"2.0","id":"two","method":"session/list","params":{}}\n'


async def piped(url: str, lines: bytes) -> tuple[int | None, list[Any], str]:
    """Give `holdfast connect` lines and the end of its input at once; return its status, its answers, and stderr."""
    command = [sys.executable, "-m", "holdfast", "connect", url]
    pipe = asyncio.subprocess.PIPE
    environment = {**os.environ, "HOLDFAST_TOKEN": "ada"}
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
    async with asyncio.timeout(2 * PATIENCE):
        said, complaints = await process.communicate(lines)
    return process.returncode, [json.loads(line) for line in said.splitlines()], complaints.decode()


@pytest.mark.requirement("P6")
async def test_what_was_asked_before_the_end_of_the_input_is_answered() -> None:
    async with served() as remote:
        status, answers, _ = await piped(remote.url, INITIALIZE + b"nonsense\n" + LIST)
    assert status == 0
    assert {answer["id"] for answer in answers} == {1, None, "two"}
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id[1]["result"]["protocolVersion"] == 1 and "sessions" in by_id["two"]["result"]
    assert by_id[None]["error"]["code"] == -32700


@pytest.mark.requirement("P6")
async def test_where_there_is_no_server_what_was_asked_before_the_end_of_the_input_is_answered_too() -> None:
    status, answers, complaints = await piped("http://127.0.0.1:1/acp", INITIALIZE)
    assert status == 1 and "cannot be reached" in complaints
    assert [answer["id"] for answer in answers] == [1] and "cannot be reached" in answers[0]["error"]["message"]


async def test_a_turn_is_not_waited_for_when_the_input_has_ended(place: Path) -> None:
    async with served(store=place) as remote, bridged(remote) as bridge:
        await bridge.editor.initialize()
        session = await bridge.editor.new()
        turn = bridge.editor.begin_prompt(session, "/ask")
        await bridge.editor.question()
        await bridge.editor.transport.close(0.1)
        async with asyncio.timeout(PATIENCE):
            await bridge.running
        turn.cancel()


@pytest.mark.requirement("H10")
async def test_paths_have_one_name_here_and_another_one_there(place: Path, tmp_path: Path) -> None:
    paths = PathMap.parse([f"/home/ada/project={tmp_path}"])
    async with served(store=place) as remote, bridged(remote, paths=paths) as bridge:
        await bridge.editor.initialize()
        session = await bridge.editor.new("/home/ada/project")
        await bridge.editor.prompt(session, "/diff")
        (listed,) = (await bridge.editor.ask("session/list", {"cwd": "/home/ada/project"}))["sessions"]
        assert listed["cwd"] == "/home/ada/project"
        told = json.dumps(bridge.editor.heard)
        assert str(tmp_path) not in told
        assert "/home/ada/project/" in told


def test_paths_are_rewritten_whole_and_only_where_paths_stand() -> None:
    paths = PathMap.parse(["/a=/srv/a", "/a/b=/srv/b"])
    out = json.loads(paths.outgoing(json.dumps({
        "params": {"cwd": "/a/b/c", "additionalDirectories": ["/a", "/ab"], "prompt": [
            {"type": "text", "text": "/a/b stays"}, {"type": "resource_link", "uri": "file:///a/x", "name": "/a"}]},
    }).encode()))  # fmt: skip
    assert out["params"]["cwd"] == "/srv/b/c"
    assert out["params"]["additionalDirectories"] == ["/srv/a", "/ab"]
    assert out["params"]["prompt"][0]["text"] == "/a/b stays"
    assert out["params"]["prompt"][1] == {"type": "resource_link", "uri": "file:///srv/a/x", "name": "/a"}
    patch = json.dumps({"patch": "diff --git /srv/b/x /srv/b/x\n--- /srv/b/x\n+/srv/b/x stays\n"}).encode()
    assert json.loads(paths.incoming(patch))["patch"] == "diff --git /a/b/x /a/b/x\n--- /a/b/x\n+/srv/b/x stays\n"
    with pytest.raises(UsageError):
        PathMap.parse(["relative=/x"])


@pytest.mark.parametrize("over", ["websocket", "http"])
async def test_the_client_library_talks_to_a_server(over: Any, place: Path) -> None:
    async with served(store=place) as remote:
        async with holdfast.connect(remote.url, token="ada", over=over) as connection:
            session = await connection.new_session("/project")
            assert await session.ask_text("Hello, world") == "Hello, world"
            again = await connection.load(session.id, "/project")
            assert "Hello, world" in str(list(again.history.updates()))
        with pytest.raises(ConnectionRefused):
            async with holdfast.connect(f"http://127.0.0.1:{remote.port}/elsewhere", token="ada", over=over):
                pass
