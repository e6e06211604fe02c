"""What a client sees over a WebSocket and over HTTP is what it sees over stdio."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from core.tests.support.acp import CWD, Client
from core.tests.support.links import PATIENCE, Collector
from core.tests.support.remote import WAYS, served
from holdfast.transport.websocket_client import connect_websocket
from holdfast.transport.websocket_frames import BINARY, frame

if TYPE_CHECKING:
    from pathlib import Path

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


@pytest.mark.requirement("H1", "H2", "H3")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("way", WAYS)
async def test_a_session_goes_through_its_whole_life(way: str, version: int, place: Path) -> None:
    async with served(store=place, way=way) as remote:
        client = await remote.client(way, version)
        client.answers["session/request_permission"] = lambda params: {
            "outcome": {"outcome": "selected", "optionId": params["options"][0]["optionId"]}
        }
        session = await client.new()
        assert await client.prompt(session, "/stream 50") == "end_turn"
        assert client.said() == "".join(f"{n} " for n in range(50))
        assert await client.prompt(session, "/ask") == "end_turn"
        turn = client.begin_prompt(session, "/stream 1000000")
        await client.until(lambda: " 60 " in client.said())
        client.tell("session/cancel", {"sessionId": session})
        async with asyncio.timeout(PATIENCE):
            await turn
        if version == 2:
            await client.until(lambda: client.states()[-1:] == ["cancelled"])

        other = await remote.client(way, version)
        replay = await other.replayed(session)
        assert "49 " in json.dumps(replay)
        fork = (await other.ask("session/fork", {"sessionId": session, "cwd": CWD}))["sessionId"]
        assert await other.prompt(fork, "in the fork") == "end_turn"
        assert [it["sessionId"] for it in (await other.ask("session/list"))["sessions"]] == [fork, session]
        await other.ask("session/close", {"sessionId": fork})
        await other.resume(fork)
        await other.ask("session/delete", {"sessionId": session})
        assert await client.refusal("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "?"}]})


@pytest.mark.requirement("H1")
async def test_a_websocket_has_an_id_and_the_subprotocol_it_offers() -> None:
    async with served() as remote:
        offered = {"Sec-WebSocket-Protocol": "acp.v1, bearer.ada"}
        transport = await connect_websocket(remote.url, headers=offered)
        assert len(transport.headers["acp-connection-id"]) >= 22
        assert transport.headers["sec-websocket-protocol"] == "acp.v1"
        client = Client(transport)
        assert (await client.initialize())["protocolVersion"] == 1
        await transport.close(1)


@pytest.mark.requirement("H1")
@pytest.mark.parametrize("way", ["websocket", "asgi websocket"])
async def test_lines_in_a_frame_are_split_and_pings_and_binary_frames_are_ignored(way: str) -> None:
    async with served(way=way) as remote:
        transport: Any = await remote.transport(way)
        transport.open(heard := Collector())
        first, second = json.dumps(INITIALIZE), json.dumps({**INITIALIZE, "id": 1})
        ping = json.dumps({"jsonrpc": "2.0", "method": "$/ping"})
        transport._stream.write(frame(BINARY, b"\x00\xff" * 100, masked=True))
        transport._stream.write(frame(1, f"{first}\n{ping}\n{second}\n".encode(), masked=True))
        answers = [json.loads(line) for line in await heard.get(2) if isinstance(line, bytes)]
        assert [answer["id"] for answer in answers] == [0, 1]
        transport.send(json.dumps([{**INITIALIZE, "id": 2}, 42]).encode())
        batch = json.loads(cast("bytes", (await heard.get(3))[2]))
        assert sorted(str(it["id"]) for it in batch) == ["2", "None"]


@pytest.mark.requirement("H1", "A2")
async def test_what_is_no_json_is_answered_and_the_connection_lives() -> None:
    async with served() as remote:
        client = await remote.client()
        client.say(b"no json")
        await client.until(lambda: any(it.get("error", {}).get("code") == -32700 for it in client.heard))
        assert await client.new()


@pytest.mark.requirement("H5", "F5")
@pytest.mark.parametrize("way", WAYS)
async def test_a_turn_goes_on_without_readers_and_a_question_waits_for_the_next_client(way: str) -> None:
    async with served(way=way) as remote:
        client = await remote.client(way)
        session = await client.new()
        client.begin_prompt(session, "/ask")
        await client.question()
        await client.transport.close(0.5)

        later = await remote.client(way)
        await later.load(session)
        (await later.question()).select("allow-once")
        await later.until(lambda: "That was that" in later.said())


@pytest.mark.requirement("F4")
async def test_clients_of_every_transport_and_version_see_one_order() -> None:
    async with served() as remote:
        clients = [await remote.client(way, version) for way in ("websocket", "http") for version in (1, 2)]
        session = await clients[0].new()
        for other in clients[1:]:
            await other.resume(session)
        assert await clients[2].prompt(session, "/stream 300") == "end_turn"
        wanted = "".join(f"{n} " for n in range(300))
        for client in clients:
            await client.until(lambda client=client: client.said() == wanted)


@pytest.mark.requirement("P12", "H6")
@pytest.mark.parametrize("way", WAYS)
async def test_what_belongs_to_another_is_not_there_for_any_method(way: str) -> None:
    async with served(way=way) as remote:
        ada, bob = await remote.client(way), await remote.client(way, token="bob")
        session = await ada.new()
        await ada.prompt(session, "a secret")
        absent = "sess_" + "0" * 32
        prompt = [{"type": "text", "text": "x"}]
        tries: dict[str, dict[str, Any]] = {
            "session/load": {"cwd": CWD, "mcpServers": []}, "session/resume": {"cwd": CWD},
            "session/fork": {"cwd": CWD}, "session/prompt": {"prompt": prompt},
            "session/set_title": {"title": "mine"}, "session/status": {},
            "session/set_config_option": {"configId": "mode", "value": "auto"}, "session/archive": {},
            "session/unarchive": {}, "session/set_mode": {"modeId": "auto"},
        }  # fmt: skip
        for method, more in tries.items():
            foreign = await bob.refusal(method, {"sessionId": session, **more})
            missing = await bob.refusal(method, {"sessionId": absent, **more})
            assert foreign.code == missing.code == -32002, method
            assert foreign.message.replace(session, absent) == missing.message, method
        for method in ("session/delete", "session/close"):
            assert await bob.ask(method, {"sessionId": session}) == await bob.ask(method, {"sessionId": absent})
        bob.tell("session/cancel", {"sessionId": session})
        assert (await bob.ask("session/list"))["sessions"] == []
        assert "a secret" not in json.dumps(bob.heard)
        assert [it["sessionId"] for it in (await ada.ask("session/list"))["sessions"]] == [session]
