"""A cancellation cancels the prompts that arrived before it, and no other, on every face (C6, P5)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.cancelling import FACES, FOR_EVER, end_of, face
from core.tests.support.acp import CWD, Refused, patiently, serving
from core.tests.support.relay_hosts import join
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C6")

CANCELLED = {1: {"cancelled"}, 2: {"cancelled", "dropped"}}

ON_EVERY_FACE = pytest.mark.parametrize("name", FACES)
VERSIONS = pytest.mark.parametrize("version", [1, 2])
ROUNDS = {
    "in process": 200,
    "relay": 200,
    "stdio": 60,
    "wrapped": 60,
    "websocket": 60,
    "asgi websocket": 30,
    "http": 30,
    "bridge": 60,
}


async def tick(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


@ON_EVERY_FACE
@VERSIONS
async def test_a_cancel_right_behind_a_prompt_is_not_lost(name: str, version: int, tmp_path: Path) -> None:
    """At every distance: in one write, a tick later, two, and so on until the turn is well under way."""
    async with face(name, version, tmp_path) as it:
        client, session = it.client, await it.new()
        for distance in range(ROUNDS[name]):
            answer = client.begin_prompt(session, FOR_EVER)
            await tick(distance)
            client.tell("session/cancel", {"sessionId": session})
            assert await end_of(client, session, answer) in CANCELLED[version], distance
        assert await client.prompt(session, "done") == "end_turn"


@ON_EVERY_FACE
@VERSIONS
async def test_exactly_the_prompts_before_a_cancel_are_cancelled(name: str, version: int, tmp_path: Path) -> None:
    """Some run, some wait, some were only just read; what comes behind the cancellation runs to its end."""
    async with face(name, version, tmp_path) as it:
        client, session = it.client, await it.new()
        for distance in range(ROUNDS[name] // 2):
            before = [client.begin_prompt(session, FOR_EVER)]
            await tick(distance)
            before += [client.begin_prompt(session, FOR_EVER) for _ in range(2)]
            client.tell("session/cancel", {"sessionId": session})
            after = client.begin_prompt(session, f"after {distance}")
            for answer in before:
                assert await end_of(client, session, answer) in CANCELLED[version], distance
            assert await end_of(client, session, after) == "end_turn", distance
            await client.until(lambda distance=distance: client.said().endswith(f"after {distance}"))
            client.forget()


@ON_EVERY_FACE
@VERSIONS
async def test_a_session_just_made_is_cancelled_like_any_other(name: str, version: int, tmp_path: Path) -> None:
    async with face(name, version, tmp_path) as it:
        for distance in range(24):
            session = await it.new()
            answer = it.client.begin_prompt(session, FOR_EVER)
            await tick(distance)
            it.client.tell("session/cancel", {"sessionId": session})
            assert await end_of(it.client, session, answer) in CANCELLED[version], distance
            await it.close(session)


@pytest.mark.parametrize("name", ["in process", "stdio", "websocket", "relay"])
@VERSIONS
async def test_a_cancel_in_one_batch_with_its_prompt_is_not_lost(name: str, version: int, tmp_path: Path) -> None:
    async with face(name, version, tmp_path) as it:
        client = it.client
        for number in range(20):
            session = await it.new()
            params: Any = {"sessionId": session, "prompt": [{"type": "text", "text": FOR_EVER}]}
            client.batches.clear()
            client.say(
                [
                    {"jsonrpc": "2.0", "id": f"a{number}", "method": "session/prompt", "params": params},
                    {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}},
                ]
            )
            await client.until(lambda: client.batches)
            ((answer,),) = client.batches
            if "error" in answer:
                assert (version, answer["error"]["code"]) == (2, -32800)
            elif version == 1:
                assert answer["result"] == {"stopReason": "cancelled"}
            else:
                assert (await client.end_of_turn(session, answer["result"]["messageId"])) == "cancelled"
            await it.close(session)


@VERSIONS
async def test_a_prompt_whose_session_is_brought_back_can_be_cancelled(version: int) -> None:
    """It was read, and is in no line yet: the session has left memory and has to be opened first."""
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        assert await client.prompt(session, "first") == "end_turn"
        assert host.host.opened is not None
        for distance in range(30):
            await host.host.opened.close(session)
            answers = [client.begin_prompt(session, FOR_EVER) for _ in range(2)]
            await tick(distance)
            client.tell("session/cancel", {"sessionId": session})
            after = client.begin_prompt(session, "after")
            for answer in answers:
                assert await end_of(client, session, answer) in CANCELLED[version], distance
            assert await end_of(client, session, after) == "end_turn"


@VERSIONS
async def test_a_cancel_while_its_session_is_loaded_again_is_not_lost(version: int, tmp_path: Path) -> None:
    async with serving(demo, tmp_path / "s.db") as host:
        client = await host.client(version)
        session = await client.new()
        method = "session/load" if version == 1 else "session/resume"
        for distance in range(30):
            running = client.begin_prompt(session, FOR_EVER)
            await client.until(lambda: "Good night" in client.said())
            loaded = client.begin(method, {"sessionId": session, "cwd": CWD, "mcpServers": []})
            await tick(distance)
            client.tell("session/cancel", {"sessionId": session})
            assert await end_of(client, session, running) == "cancelled", distance
            await patiently(loaded)
            client.forget()


@VERSIONS
async def test_a_prompt_of_a_session_that_closes_behind_it_is_cancelled(version: int) -> None:
    """`session/close` cancels what `session/cancel` would (B13), also what is in no line yet."""
    async with serving(demo) as host:
        client = await host.client(version)
        for distance in range(30):
            session = await client.new()
            assert host.host.opened is not None
            await host.host.opened.close(session)
            answer = client.begin_prompt(session, FOR_EVER)
            await tick(distance)
            assert await client.ask("session/close", {"sessionId": session}) == {}
            if version == 1:
                assert await patiently(answer) == {"stopReason": "cancelled"}
            else:
                await settled(answer)
            status = await client.ask("session/status", {"sessionId": session})
            assert status == {"status": "saved"}, distance


@pytest.mark.requirement("F4")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["one process", "two processes"])
@VERSIONS
async def test_a_cancel_leaves_the_waiting_prompts_of_other_clients(
    version: int, elsewhere: bool, tmp_path: Path
) -> None:
    async with serving(demo, tmp_path / "s.db") as near, serving(demo, tmp_path / "s.db") as far:
        mine, theirs = await near.client(version), await (far if elsewhere else near).client(version)
        session = await mine.new()
        await join(theirs, session)
        for canceller, other in ((mine, theirs), (theirs, mine)):
            running = mine.begin_prompt(session, FOR_EVER)
            await theirs.until(lambda: "Good night" in theirs.said())
            own = canceller.begin_prompt(session, FOR_EVER)
            waiting = other.begin_prompt(session, "waits")
            await other.settle()
            canceller.tell("session/cancel", {"sessionId": session})
            assert await end_of(mine, session, running) == "cancelled"
            assert await end_of(canceller, session, own) in CANCELLED[version]
            assert await end_of(other, session, waiting) == "end_turn"
            await theirs.until(lambda: "waits" in theirs.said())
            for client in (mine, theirs):
                client.forget()


async def settled(answer: asyncio.Future[Any]) -> None:
    with suppress(Refused):
        await patiently(answer)
