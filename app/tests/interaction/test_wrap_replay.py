"""How a wrapped agent's session is replayed, and how a client hears that the replay is complete (B8, G3)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.wrapping import conversation, wrapping
from core.tests.support.acp import serving
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.support.acp import Client

AIR = {"_meta": {"jetbrains": {"air": {"version": 1, "capabilities": ["loadReplayEnd"]}}}}
REPLAY_END = {
    "sessionUpdate": "session_info_update",
    "_meta": {"jetbrains": {"air": {"version": 1, "loadReplayEnd": True}}},
}


def chunk(kind: str, key: str, text: str) -> dict[str, Any]:
    """Return a chunk of a message, as an agent sends it."""
    return {"sessionUpdate": f"{kind}_chunk", "messageId": key, "content": {"type": "text", "text": text}}


async def replayed(client: Client, session: str, cwd: str) -> list[dict[str, Any]]:
    """Load a session; return what was replayed before the answer."""
    client.forget()
    if client.version == 1:
        await client.load(session, cwd)
    else:
        await client.resume(session, cwd, replayFrom={"type": "start"})
    at = next(n for n, it in enumerate(client.heard) if "method" not in it)
    return [it["params"]["update"] for it in client.heard[:at]]


@pytest.mark.requirement("B8", "C7")
async def test_a_replay_begins_each_message_before_its_chunks(tmp_path: Path) -> None:
    cwd = str(tmp_path)
    async with wrapping(tmp_path, "v2") as wrapped:
        client = await wrapped.client(2)
        session = await client.new(cwd)
        whole = {"sessionUpdate": "agent_message", "messageId": "w", "content": [{"type": "text", "text": "Whole."}]}
        for said in (
            chunk("agent_message", "m", "One"),
            chunk("agent_thought", "m", "Hm."),
            whole,
            chunk("agent_message", "m", " two"),  # in a later turn
            chunk("agent_message", "w", " And more."),
        ):
            await client.prompt(session, f"raw {json.dumps(said)}")
        live = conversation(2, client.updates())
        updates = await replayed(client, session, cwd)
    shown = [
        (it["sessionUpdate"], it["messageId"], it["content"])
        for it in updates
        if it.get("messageId") in ("m", "w")
    ]  # fmt: skip
    assert shown == [
        ("agent_message", "m", []),
        ("agent_message_chunk", "m", {"type": "text", "text": "One"}),
        ("agent_thought", "m", []),
        ("agent_thought_chunk", "m", {"type": "text", "text": "Hm."}),
        ("agent_message", "w", [{"type": "text", "text": "Whole."}]),
        ("agent_message_chunk", "m", {"type": "text", "text": " two"}),
        ("agent_message_chunk", "w", {"type": "text", "text": " And more."}),
    ]
    assert conversation(2, updates) == live
    assert conversation(2, [*updates, *updates]) == live  # a client that replays has nothing twice


@pytest.mark.requirement("B8")
@pytest.mark.parametrize("method", ["session/resume", "session/load"])
async def test_a_client_that_wants_to_know_is_told_that_the_replay_is_complete(method: str) -> None:
    async with serving(demo) as host:
        plain, telling = await host.client(2), await host.client(2, session={"replayComplete": {}})
        session = await plain.new()
        await plain.prompt(session, "hello")
        asked: dict[str, Any] = {"sessionId": session, "cwd": "/", "mcpServers": []}
        asked |= {"replayFrom": {"type": "start"}} if method == "session/resume" else {}
        asked["cwd"] = (await plain.ask("session/list", {}))["sessions"][0]["cwd"]
        for client, told in ((plain, 0), (telling, 1)):
            client.forget()
            await client.ask(method, asked)
            kinds = [it["sessionUpdate"] for it in client.updates()]
            assert kinds.count("replay_complete") == told
        assert kinds.index("agent_message") < kinds.index("replay_complete") < kinds.index("state_update")
        telling.forget()
        await telling.ask("session/resume", {key: value for key, value in asked.items() if key != "replayFrom"})
        assert telling.updates("replay_complete") == []


@pytest.mark.requirement("B6", "B8", "G1")
@pytest.mark.parametrize("version", [1, 2])
async def test_jetbrains_air_is_told_the_end_of_our_replay_and_not_of_the_agents(tmp_path: Path, version: int) -> None:
    cwd, habits = str(tmp_path), ("v2",) if version == 2 else ()
    async with wrapping(tmp_path, *habits) as wrapped:
        client = await wrapped.client(version, **AIR)
        session = await client.new(cwd)
        await client.prompt(session, "say hello")
        await client.prompt(session, f"raw {json.dumps(REPLAY_END)}")
        assert client.updates().count(REPLAY_END) == 0
        updates = await replayed(client, session, cwd)
        assert updates.count(REPLAY_END) == 1
        before, behind = updates[: updates.index(REPLAY_END)], updates[updates.index(REPLAY_END) + 1 :]
        assert any(it["sessionUpdate"].startswith("agent_message") for it in before)
        assert behind and not any("_message" in it["sessionUpdate"] for it in behind)
        client.forget()
        await client.resume(session, cwd)
        assert client.updates().count(REPLAY_END) == 0
