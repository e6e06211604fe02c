"""The rules of HTTP: statuses, streams, and where a message goes (H2, H3)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from core.tests.support.acp import CWD
from core.tests.support.event_streams import stream
from core.tests.support.links import PATIENCE
from core.tests.support.remote import Remote, served
from holdfast.server.remote import RemoteLimits

pytestmark = pytest.mark.requirement("H2")

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


async def connect(remote: Remote) -> str:
    reply = await remote.ask("POST", body=INITIALIZE)
    assert reply.status == 200
    assert reply.json()["id"] == 0
    return reply.headers["acp-connection-id"]


async def test_each_mistake_has_its_status() -> None:
    async with served(limits=RemoteLimits(message=100_000)) as remote:
        connection = await connect(remote)
        listing: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
        there = {"acp_connection_id": connection}
        assert (await remote.ask("POST", body=listing)).status == 400
        assert (await remote.ask("GET")).status == 400
        assert (await remote.ask("DELETE")).status == 400
        assert (await remote.ask("POST", body=listing, acp_connection_id="none")).status == 404
        assert (await remote.ask("GET", acp_connection_id="none")).status == 404
        assert (await remote.ask("PUT", body=listing, **there)).status == 405
        assert (await remote.ask("GET", accept="text/html", **there)).status == 406
        assert (await remote.ask("POST", body=b"x" * 100_001, **there)).status == 413
        assert (
            await remote.ask("POST", body=b"", content_length="999999999", content_type="application/json")
        ).status == 413
        assert (await remote.ask("POST", body=listing, content_type="text/plain", **there)).status == 415
        assert (await remote.ask("POST", body=[listing], **there)).status == 501
        assert (await remote.ask("POST", body=b"{", **there)).status == 400
        assert (await remote.ask("POST", body=b"42", **there)).status == 400
        assert (await remote.ask("GET", path="/elsewhere")).status == 404
        named = {"jsonrpc": "2.0", "id": 2, "method": "session/close", "params": {"sessionId": "one"}}
        assert (await remote.ask("POST", body=named, acp_session_id="other", **there)).status == 400
        assert (await remote.ask("POST", body=listing, **there)).status == 202
        assert (await remote.ask("DELETE", **there)).status == 202
        assert (await remote.ask("POST", body=listing, **there)).status == 404


async def test_a_second_initialize_on_a_connection_is_answered_on_it() -> None:
    async with served() as remote:
        connection = await connect(remote)
        again = await remote.ask("POST", body={**INITIALIZE, "id": "again"}, acp_connection_id=connection)
        assert (again.status, again.json()["id"], again.headers["acp-connection-id"]) == (200, "again", connection)


@pytest.mark.requirement("H3")
@pytest.mark.parametrize("method", ["session/load", "session/resume"])
@pytest.mark.parametrize("opened_first", [True, False])
async def test_replay_and_answer_of_a_load_go_down_one_stream(opened_first: bool, method: str) -> None:
    async with served() as remote:
        client = await remote.client("http")
        session = await client.new()
        await client.prompt(session, "/stream 30")
        connection = await connect(remote)
        load: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": method,
            "params": {"sessionId": session, "cwd": CWD, "mcpServers": []},
        }
        prompt: dict[str, Any] = {"jsonrpc": "2.0", "id": 8, "method": "session/prompt",
                  "params": {"sessionId": session, "prompt": [{"type": "text", "text": "again"}]}}  # fmt: skip
        async with stream(remote.port, connection) as of_connection:
            if opened_first:  # as the TypeScript client does
                async with stream(remote.port, connection, acp_session_id=session) as of_session:
                    await remote.ask("POST", body=load, acp_connection_id=connection, acp_session_id=session)
                    await of_session.answer(7)
                    await remote.ask("POST", body=prompt, acp_connection_id=connection, acp_session_id=session)
                    await of_session.answer(8)
                assert of_connection.messages == []
                heard = of_session.messages
            else:  # as the Python client does
                await remote.ask("POST", body=load, acp_connection_id=connection)
                await of_connection.answer(7)
                heard = list(of_connection.messages)
                async with stream(remote.port, connection, acp_session_id=session) as of_session:
                    await remote.ask("POST", body=prompt, acp_connection_id=connection, acp_session_id=session)
                    await of_session.answer(8)
                assert all("method" not in it or it["params"]["update"]["sessionUpdate"] != "agent_message_chunk"
                           for it in of_connection.messages[len(heard):])  # fmt: skip
        replayed = [it for it in heard[: [it.get("id") for it in heard].index(7)] if "method" in it]
        assert ("29 " in json.dumps(replayed)) is (method == "session/load")


async def test_a_newer_reader_of_a_stream_replaces_the_older() -> None:
    async with served() as remote:
        connection = await connect(remote)
        async with stream(remote.port, connection) as older, stream(remote.port, connection) as newer:
            await older.until(lambda: older.ended)
            listing: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
            await remote.ask("POST", body=listing, acp_connection_id=connection)
            await newer.answer(1)


@pytest.mark.requirement("H5")
async def test_a_connection_that_nobody_reads_ends_after_a_while() -> None:
    async with served(limits=RemoteLimits(idle=0.05)) as remote:
        connection = await connect(remote)
        async with asyncio.timeout(PATIENCE):
            while len(remote.server.connections):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (await remote.ask("GET", acp_connection_id=connection)).status == 404
