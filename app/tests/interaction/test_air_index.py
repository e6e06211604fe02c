"""The session index of JetBrains AIR in front of a wrapped agent: ours, whatever the agent would answer (G1, B4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.interaction.test_wrap_command import started
from app.tests.support.wrapping import wrapping
from core.tests.doubles.air import Air, of_air
from core.tests.support.acp import Refused, serving, text
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from pathlib import Path

V2 = {1: (), 2: ("v2",)}
ARCHIVED = {"sessionUpdate": "session_info_update", "_meta": {"jetbrains": {"air": {"version": 1, "archived": True}}}}


def heard_by_the_agent(client: Any, method: str) -> list[dict[str, Any]]:
    """Return the requests of a method that reached the agent, as it says."""
    return [message["params"] for message in json.loads(client.said())]


@pytest.mark.requirement("G1")
@pytest.mark.parametrize("version", [1, 2])
async def test_air_is_offered_what_we_serve_and_nothing_that_we_cannot(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, "speaks to AIR", *V2[version]) as wrapped:
        air = await Air(wrapped.connect(version)).start()
        assert air.can_steer
        assert air.served == {
            "sessionIndex", "sessionBatchGet", "sessionArchive", "sessionRename", "sessionListSubscribe", "diffPatch",
        }  # fmt: skip
        assert "goal" not in air.meta["jetbrains"]["air"]  # its turns would be the agent's own
        assert air.meta["own"] == 1
        session = await air.client.new(str(tmp_path))
        await air.client.prompt(session, "heard initialize")
        (asked,) = heard_by_the_agent(air.client, "initialize")
        name = "clientCapabilities" if version == 1 else "capabilities"
        told = asked[name]["_meta"]["jetbrains"]["air"]["capabilities"]
        assert "sessionIndex" in told and "diffPatch" in told
        assert not {"nativeSubagentSessions", "recommendedValue"} & set(told)  # its updates would be lost here
        plain = await Air(wrapped.connect(version), "diffPatch").start()
        assert plain.served == {"diffPatch"}
    async with wrapping(tmp_path, *V2[version]) as wrapped:  # an agent that knows nothing of all this
        air = await Air(wrapped.connect(version)).start()
        assert not air.can_steer
        assert "sessionIndex" in air.served and "diffPatch" not in air.served
        other = await wrapped.connect(version).initialize()
        assert "jetbrains" not in other["_meta"]


@pytest.mark.requirement("G1", "B4", "B16", "B17")
@pytest.mark.parametrize("apart", [False, True], ids=["one process", "two processes"])
@pytest.mark.parametrize("version", [1, 2])
async def test_air_renames_and_archives_our_sessions_and_others_see_it(
    tmp_path: Path, version: int, *, apart: bool
) -> None:
    cwd, habits = str(tmp_path), ("speaks to AIR", *V2[version])
    async with wrapping(tmp_path, *habits) as wrapped, wrapping(tmp_path, *habits) as elsewhere:
        air = await Air(wrapped.connect(version)).start()
        session = await air.client.new(cwd)
        await air.client.prompt(session, "say hello")
        other = await Air((elsewhere if apart else wrapped).connect(version)).start()
        watched = await other.subscribe(cwd)
        assert await air.client.ask("_session/rename", {"sessionId": session, "title": "  Herons\n and  reeds "}) == {}
        await other.client.until(lambda: session in other.changed(watched))
        assert other.changed(watched)[session]["title"] == "Herons and reeds"
        await air.client.prompt(session, "title Something else")  # the user's stays
        row = await air.row(session)
        assert row is not None and (row["title"], of_air(row)["archived"]) == ("Herons and reeds", False)
        for _ in range(2):
            assert await air.client.ask("_session/archive", {"sessionId": session}) == {}
        assert ARCHIVED in air.client.updates("session_info_update")
        await other.client.until(lambda: of_air(other.changed(watched)[session])["archived"])
        assert (await air.page(cwd))["sessions"] == []
        assert [it["sessionId"] for it in (await air.page(cwd, archived="archived"))["sessions"]] == [session]
        assert [it["sessionId"] for it in (await air.page(cwd, archived="all"))["sessions"]] == [session]
        row = await other.row(session)
        assert row is not None and of_air(row)["archived"]
        assert await air.client.ask("_session/unarchive", {"sessionId": session}) == {}
        assert [it["sessionId"] for it in (await air.page(cwd))["sessions"]] == [session]
        await air.client.load(session, cwd) if version == 1 else await air.client.resume(session, cwd)
        air.client.forget()
        await air.client.prompt(session, "heard _session/rename")
        assert heard_by_the_agent(air.client, "_session/rename") == []
        await air.client.ask("session/delete", {"sessionId": session})
        await other.client.until(lambda: session in other.removed(watched))
        assert await other.row(session) is None


@pytest.mark.requirement("G1", "B4", "C3")
async def test_a_subscription_tells_new_sessions_and_their_states_and_ends(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    here, there = str(tmp_path / "a"), str(tmp_path / "b")
    async with wrapping(tmp_path, "speaks to AIR") as wrapped:
        air, worker = await Air(wrapped.connect()).start(), await wrapped.client()
        old = await worker.new(here)
        await worker.prompt(old, "say old")
        watched, elsewhere = await air.subscribe(here), await air.subscribe(there)
        session = await worker.new(here)
        turn = worker.begin_prompt(session, "wait")
        await air.client.until(lambda: session in air.changed(watched))
        await air.client.until(lambda: of_air(air.changed(watched)[session]).get("state") == "running")
        worker.tell("session/cancel", {"sessionId": session})
        await turn
        await air.client.until(lambda: of_air(air.changed(watched)[session]).get("state") == "idle")
        assert air.changes(elsewhere) == []
        assert old not in air.changed(watched)
        for _ in range(2):
            await air.client.ask("_session/list/unsubscribe", {"subscriptionId": watched})
        told = len(air.changes(watched))
        await worker.prompt(session, "say more")
        other = await worker.new(there)
        await worker.prompt(other, "say more")
        await air.client.until(lambda: other in air.changed(elsewhere))
        assert len(air.changes(watched)) == told


@pytest.mark.requirement("B4", "B5")
async def test_pages_are_bounded_and_in_order(tmp_path: Path) -> None:
    async with wrapping(tmp_path, "no list") as wrapped:
        air = await Air(wrapped.connect()).start()
        sessions = [await air.client.new(str(tmp_path)) for _ in range(5)]
        for session in sessions:
            await air.client.prompt(session, "say hello")
        found: list[str] = []
        cursor = None
        while True:
            page = await air.page(str(tmp_path), cursor, limit=2)
            assert len(page["sessions"]) <= 2
            found += [row["sessionId"] for row in page["sessions"]]
            if (cursor := page.get("nextCursor")) is None:
                break
        assert found == sessions[::-1]
        rows = await air.client.ask("_session/batch_get", {"sessionIds": [sessions[3], "sess_none", sessions[0]]})
        assert [row["sessionId"] for row in rows["sessions"]] == [sessions[3], sessions[0]]


@pytest.mark.requirement("G9")
async def test_what_only_the_agent_has_is_changed_there(tmp_path: Path) -> None:
    cwd = str(tmp_path)
    (tmp_path / "home").mkdir()
    kept = {"cwd": cwd, "messages": [{"role": "user", "text": "hello", "id": "u"}], "mode": "ask"}
    (tmp_path / "home" / "a-session-of-its-own-1.json").write_text(json.dumps(kept))
    async with wrapping(tmp_path, "speaks to AIR") as wrapped:
        air = await Air(wrapped.connect()).start()
        (row,) = (await air.page(cwd))["sessions"]
        assert await air.row(row["sessionId"]) == row
        await air.client.ask("_session/rename", {"sessionId": row["sessionId"], "title": "Found"})
        renamed = await air.row(row["sessionId"])
        assert renamed is not None and renamed["title"] == "Found"


@pytest.mark.requirement("A10", "G1")
async def test_what_is_asked_wrongly_is_refused(tmp_path: Path) -> None:
    async with wrapping(tmp_path, "speaks to AIR") as wrapped:
        air = await Air(wrapped.connect()).start()
        for method, params, code in (
            ("_session/rename", {"sessionId": "sess_none", "title": "x"}, -32002),
            ("_session/archive", {"sessionId": "sess_none"}, -32002),
            ("_session/unarchive", {"sessionId": "sess_none"}, -32002),
            ("_session/rename", {"sessionId": "sess_none", "title": " \n"}, -32602),
            ("_session/batch_get", {"sessionIds": ["a", "a"]}, -32602),
            ("_session/batch_get", {"sessionIds": [" "]}, -32602),
            ("_session/list/subscribe", {"cwd": "relative"}, -32602),
            ("session/list", {"_meta": {"jetbrains": {"air": {"list": {"limit": 0}}}}}, -32602),
            ("session/list", {"_meta": {"jetbrains": {"air": {"list": {"archived": "some"}}}}}, -32602),
        ):
            assert (await air.client.refusal(method, params)).code == code, (method, params)
        for _ in range(128):
            await air.subscribe(str(tmp_path))
        refusal = await air.client.refusal("_session/list/subscribe", {"cwd": str(tmp_path)})
        assert refusal.data["reason"] == "too_many_subscriptions"


@pytest.mark.requirement("G1", "B17")
async def test_a_client_without_the_index_cannot_rename_past_us_and_an_author_keeps_the_methods(tmp_path: Path) -> None:
    async with wrapping(tmp_path, "speaks to AIR") as wrapped:
        client = await wrapped.client()
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say hello")
        await client.ask("_session/rename", {"sessionId": session, "title": "Ours"})
        assert (await client.ask("session/list", {}))["sessions"][0]["title"] == "Ours"
    async with serving(demo) as host:
        client = await host.client()
        assert (await client.refusal("_session/rename", {"sessionId": "x", "title": "y"})).code == -32601
        air = await Air(host.connect()).start()
        assert "sessionIndex" in air.served
        with pytest.raises(Refused):
            await air.client.ask("_session/steering", {"sessionId": "x", "prompt": [text("y")]})


@pytest.mark.requirement("P1", "G1")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_title_of_airs_is_there_after_a_new_start_of_the_command(tmp_path: Path, version: int) -> None:
    habits = ("speaks to AIR", *V2[version])
    async with started(tmp_path, *habits, version=version) as (client, _):
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say hello")
        await client.ask("_session/rename", {"sessionId": session, "title": "Herons"})
    async with started(tmp_path, *habits, version=version) as (client, _):
        assert (await client.ask("session/list", {}))["sessions"][0]["title"] == "Herons"
