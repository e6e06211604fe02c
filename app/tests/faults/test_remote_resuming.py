"""A stream that is cut goes on exactly where it was: from memory, from the journal, and after kill -9 (H4)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.remote_process import ServeProcess
from core.tests.support.acp import CWD
from core.tests.support.event_streams import said, stream
from core.tests.support.remote import Remote, served
from holdfast.server.remote import event_streams
from holdfast.store import EventWindow

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("H4")

COUNT = 1_000
TEXT = "".join(f"{n} " for n in range(COUNT))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a store may be."""
    return tmp_path / "sessions.db"


def message(id_: object, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def prompt(id_: object, session: str, text: str) -> dict[str, Any]:
    return message(id_, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])


async def begin(remote: Remote, token: str = "ada", version: int = 1) -> tuple[str, str]:
    """Connect and create a session; return both ids."""
    reply = await remote.ask("POST", body=message(0, "initialize", protocolVersion=version), token=token)
    connection = reply.headers["acp-connection-id"]
    async with stream(remote.port, connection, token=token) as of_connection:
        new = message(1, "session/new", cwd=CWD, mcpServers=[])
        await remote.ask("POST", body=new, token=token, acp_connection_id=connection)
        return connection, (await of_connection.answer(1))["result"]["sessionId"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kept", [event_streams.KEPT_BYTES, 0])
async def test_a_stream_cut_after_every_few_events_is_exact(
    kept: int, version: int, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    """With nothing kept in memory, every cut is healed from the journal."""
    monkeypatch.setattr(event_streams, "KEPT_BYTES", kept)
    monkeypatch.setattr(event_streams, "BATCH_BYTES", 2_000)
    async with served(store=place) as remote:
        connection, session = await begin(remote, version=version)
        there = {"acp_connection_id": connection, "acp_session_id": session}
        heard: list[Any] = []
        last: dict[str, Any] = {}
        await remote.ask("POST", body=prompt(2, session, f"/stream {COUNT}"), **there)
        cuts = 0
        ended = False
        while not ended:
            async with stream(remote.port, connection, acp_session_id=session, at_most=37, **last) as cut:
                await cut.until(
                    lambda cut=cut, so_far=heard: cut.full or cut.ended or over(so_far + cut.messages, version)
                )
            heard += cut.messages
            last = {"last_event_id": cut.ids[-1] or ""} if cut.ids else last
            cuts += 1
            ended = over(heard, version)
        assert cuts > COUNT / 37
        assert said(heard) == TEXT
        assert sum(it.get("id") == 2 for it in heard) == 1
        resumed = remote.server.metrics.resumed
        assert (resumed["journal"] > 10) is (kept == 0)


def over(heard: list[Any], version: int) -> bool:
    if version == 1:
        return any(it.get("id") == 2 for it in heard)
    states = [it["params"]["update"] for it in heard if it.get("method") == "session/update"]
    return any(it["sessionUpdate"] == "state_update" and it["state"] == "idle" for it in states) and said(heard) == TEXT


async def test_what_is_not_kept_any_more_is_409_and_the_session_can_be_loaded(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    monkeypatch.setattr(event_streams, "KEPT_BYTES", 0)
    async with served(store=place, window=EventWindow(600.0, 1_000)) as remote:
        connection, session = await begin(remote)
        there = {"acp_connection_id": connection, "acp_session_id": session}
        await remote.ask("POST", body=prompt(2, session, "/stream 50"), **there)
        async with stream(remote.port, connection, acp_session_id=session) as first:
            await first.answer(2)
        for id_ in (3, 4, 5):
            await remote.ask("POST", body=prompt(id_, session, "/stream 50"), **there)
            async with stream(remote.port, connection, acp_session_id=session) as later:
                await later.answer(id_)
        old = first.ids[10] or ""
        async with stream(remote.port, connection, acp_session_id=session, last_event_id=old, status=409):
            pass
        async with stream(remote.port, connection, acp_session_id=session, last_event_id="nonsense", status=409):
            pass
        async with stream(remote.port, connection, acp_session_id=session) as again:
            load = message(6, "session/load", sessionId=session, cwd=CWD, mcpServers=[])
            await remote.ask("POST", body=load, **there)
            assert (await again.answer(6))["result"]
            assert again.said().count("49 ") == 4


@pytest.mark.timeout(180)
def test_a_stream_goes_on_after_the_server_was_killed_in_mid_turn(tmp_path: Path) -> None:
    server = ServeProcess(tmp_path)
    with server:
        token = server.token("ada")
        remote = Remote.__new__(Remote)
        remote.port = server.port
        asyncio.run(_kill_and_go_on(server, remote, token))


async def _kill_and_go_on(server: ServeProcess, remote: Remote, token: str) -> None:
    connection, session = await begin(remote, token)
    there = {"acp_connection_id": connection, "acp_session_id": session}
    async with stream(server.port, connection, token=token, acp_session_id=session) as before:
        await remote.ask("POST", body=prompt(2, session, "/stream 1000000"), token=token, **there)
        await before.until(lambda: len(before.messages) > 2_000)
        await asyncio.to_thread(server.kill)
        await before.until(lambda: before.ended)
    await asyncio.to_thread(server.start)
    last = before.ids[1_000] or ""  # as if the rest had been lost on its way
    seen = before.messages[:1_001]
    async with stream(server.port, connection, token=token, acp_session_id=session, last_event_id=last) as after:
        broken = await after.answer(2)
        assert broken["error"]["code"] == -32603
        union = said(seen + after.messages)
        assert union == "".join(f"{n} " for n in range(union.count(" ")))
        assert union.startswith(said(before.messages))  # seen is stored (P1)
        load = message(3, "session/load", sessionId=session, cwd=CWD, mcpServers=[])
        at = len(after.messages)
        await remote.ask("POST", body=load, token=token, **there)
        await after.answer(3)
        assert said(after.messages[at:]) == union
        await remote.ask("POST", body=prompt(4, session, "and now?"), token=token, **there)
        assert (await after.answer(4))["result"]["stopReason"] == "end_turn"
    foreign = await remote.ask("GET", token=server.token("bob"), **there)
    assert foreign.status == 404
    assert "holdfast" not in json.dumps(foreign.json())


@pytest.mark.requirement("F5")
async def test_an_open_question_and_an_unread_answer_are_sent_again(place: Path) -> None:
    async with served(store=place) as remote:
        connection, session = await begin(remote)
        there = {"acp_connection_id": connection, "acp_session_id": session}
        await remote.ask("POST", body=prompt(2, session, "/ask"), **there)
        async with stream(remote.port, connection, acp_session_id=session) as first:
            await first.until(lambda: any(it.get("method") == "session/request_permission" for it in first.messages))
        asked_at = next(n for n, it in enumerate(first.messages) if it.get("method") == "session/request_permission")
        before = first.ids[asked_at - 1] or ""
        async with stream(remote.port, connection, acp_session_id=session, last_event_id=before) as again:
            await again.until(lambda: again.messages)
            question = again.messages[0]
            assert question == first.messages[asked_at]
            answer = {
                "jsonrpc": "2.0",
                "id": question["id"],
                "result": {
                    "outcome": {"outcome": "selected", "optionId": question["params"]["options"][0]["optionId"]}
                },
            }
            await remote.ask("POST", body=answer, **there)
            await again.answer(2)
