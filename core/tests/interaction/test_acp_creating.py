"""Creating, finding and naming sessions, in both versions (B1-B5, B10, B17)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, Client, patiently, serving
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = pytest.mark.parametrize("version", [1, 2])


@pytest.mark.requirement("B1")
@VERSIONS
@pytest.mark.parametrize("cwd", ["", ".", "project", "../x", "~", None, 3, ["/x"], "/x\0y"])
async def test_a_working_directory_that_is_no_absolute_path_is_refused(version: int, cwd: Any) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        assert (await client.refusal("session/new", {"cwd": cwd, "mcpServers": []})).code == -32602
        assert (await client.refusal("session/new", {"mcpServers": []})).code == -32602


@pytest.mark.requirement("B1")
@VERSIONS
async def test_a_session_that_never_got_a_prompt_is_there_after_a_restart(version: int, place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(version)
        sessions = [await client.new() for _ in range(20)]
    assert len(set(sessions)) == 20
    assert all(re.search("[0-9a-f]{32,}", it) for it in sessions)
    async with serving(demo, place) as host:
        client = await host.client(version)
        for session in sessions:
            assert await client.resume(session) is not None
        assert await client.new() not in sessions


@pytest.mark.requirement("B2")
async def test_version_1_clients_may_leave_the_mcp_servers_out() -> None:
    async with serving(demo) as host:
        client = await host.client(1)
        session = (await client.ask("session/new", {"cwd": CWD}))["sessionId"]
        assert await client.ask("session/load", {"sessionId": session, "cwd": CWD, "mcpServers": None})
        assert await client.ask("session/resume", {"sessionId": session, "cwd": CWD})


@pytest.mark.requirement("B3")
@VERSIONS
@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/fork"])
@pytest.mark.parametrize("additional", ["/a", [""], ["a"], [3], [None], {"/a": 1}, ["/a", "./b"]])
async def test_additional_directories_that_are_no_absolute_paths_are_refused(
    version: int, method: str, additional: Any
) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        params = {"sessionId": await client.new(), "cwd": CWD, "additionalDirectories": additional}
        assert (await client.refusal(method, params)).code == -32602


@pytest.mark.requirement("B3")
@VERSIONS
async def test_additional_directories_are_the_ones_named_last_in_their_order(version: int, place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(version)
        session = await client.new(additionalDirectories=["/z", "/a", "/z", CWD])
        await client.prompt(session, "hello")
        assert (await only(client))["additionalDirectories"] == ["/z", "/a"]
    async with serving(demo, place) as host:
        client = await host.client(version)
        await client.load(session)
        assert (await only(client))["additionalDirectories"] == []
        await client.resume(session, additionalDirectories=["/c"])
        assert (await only(client))["additionalDirectories"] == ["/c"]
        await client.load(session, additionalDirectories=[])
        assert (await only(client))["additionalDirectories"] == []


@pytest.mark.requirement("B4")
@VERSIONS
async def test_a_listed_session_says_what_it_is(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new(additionalDirectories=["/more"])
        await client.prompt(session, "What is *this*?")
        listed = await only(client)
        at = listed.pop("updatedAt")
        assert listed == {
            "sessionId": session,
            "cwd": CWD,
            "title": "What is *this*?",
            "additionalDirectories": ["/more"],
            "archived": False,
            "_meta": {"messageCount": 2},
        }
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", at)
        assert abs(datetime.fromisoformat(at) - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.requirement("B4")
@VERSIONS
async def test_sessions_are_listed_by_their_latest_activity_and_by_exact_directory(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        first, second, other = await client.new(), await client.new(), await client.new("/other")
        for session in (first, second, other, first):
            await client.prompt(session, "hello")
        assert await listed_ids(client) == [first, other, second]
        assert await listed_ids(client, cwd=CWD) == [first, second]
        for nowhere in ("/proj", "/project/x"):
            assert await client.ask("session/list", {"cwd": nowhere}) == {"sessions": []}


@pytest.mark.requirement("B4")
@VERSIONS
async def test_pages_show_every_session_once_although_one_moves_and_the_agent_restarts(
    version: int, place: Path
) -> None:
    async with serving(demo, place) as host:
        client = await host.client(version)
        sessions = [await client.new() for _ in range(53)]
        for session in sessions:
            await client.prompt(session, "hello")
        page = await client.ask("session/list", {"cwd": CWD, "cursor": None})
        seen = [it["sessionId"] for it in page["sessions"]]
        assert seen == sessions[:2:-1]
        await client.prompt(sessions[1], "I move to the front")
    async with serving(demo, place) as host:
        client = await host.client(version)
        page = await client.ask("session/list", {"cwd": CWD, "cursor": page["nextCursor"]})
        assert [it["sessionId"] for it in page["sessions"]] == [sessions[2], sessions[0]]
        assert "nextCursor" not in page


@pytest.mark.requirement("B4")
@VERSIONS
async def test_cursors_that_were_not_given_out_are_refused(version: int, tmp_path: Path) -> None:
    cursors: list[str] = []
    for name in ("one.db", "two.db"):
        async with serving(demo, tmp_path / name) as host:
            client = await host.client(version)
            for _ in range(51):
                await client.prompt(await client.new(), "hello")
            cursor: str = (await client.ask("session/list"))["nextCursor"]
            changed = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
            for refused in ("", "garbage", "é", changed, cursor[1:], cursor + "AAAA", *cursors):
                assert (await client.refusal("session/list", {"cursor": refused})).code == -32602, refused
            assert (await client.refusal("session/list", {"cursor": cursor, "cwd": CWD})).code == -32602
            assert (await client.refusal("session/list", {"cursor": 7})).code == -32602
            cursors.append(cursor)


@pytest.mark.requirement("B5")
@VERSIONS
async def test_sessions_without_a_prompt_are_not_listed_but_can_be_loaded(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        blank = await client.new()
        assert await client.ask("session/list") == {"sessions": []}
        await client.load(blank)
        await client.prompt(blank, "hello")
        assert await listed_ids(client) == [blank]


@pytest.mark.requirement("B10")
@VERSIONS
@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork"])
async def test_sessions_are_restored_only_in_their_own_directory(version: int, method: str) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        for cwd in ("/other", "/project/sub", "/project/../other", "/"):
            refused = await client.refusal(method, {"sessionId": session, "cwd": cwd, "mcpServers": []})
            assert refused.code == -32602
        for cwd in ("/project/", "//project", "/project/.", "/./project//"):  # the same directory, written otherwise
            await client.ask(method, {"sessionId": session, "cwd": cwd, "mcpServers": []})


@pytest.mark.requirement("B4", "B10")
@VERSIONS
async def test_a_directory_is_found_however_it_is_written_and_a_relative_one_is_refused(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new("/project/")
        await client.prompt(session, "hello")
        for cwd in ("/project", "/project/", "//project/."):
            assert await listed_ids(client, cwd=cwd) == [session]
        for cwd in ("project", "", "./project"):
            assert (await client.refusal("session/list", {"cwd": cwd})).code == -32602


@pytest.mark.requirement("B10")
@VERSIONS
@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork", "session/prompt"])
async def test_unknown_and_deleted_sessions_are_not_found_and_said_by_name(version: int, method: str) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        deleted = await client.new()
        await client.ask("session/delete", {"sessionId": deleted})
        for session in (deleted, "sess_unknown", ""):
            params: dict[str, Any] = {"sessionId": session, "cwd": CWD, "mcpServers": []}
            refused = await client.refusal(method, {**params, "prompt": [{"type": "text", "text": "x"}]})
            assert refused.code == -32002
            assert refused.data == {"sessionId": session}


@pytest.mark.requirement("B10")
@VERSIONS
async def test_restoring_is_no_activity(version: int, place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "hello")
        before = await only(client)
    async with serving(demo, place) as host:
        client = await host.client(version)
        await client.load(session)
        await client.resume(session, additionalDirectories=["/more"])
        await client.ask("session/close", {"sessionId": session})
        await client.load(session)
        assert await only(client) == before


@pytest.mark.requirement("B17")
@VERSIONS
@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Fix the bug\nin two lines", "Fix the bug"),
        ("\n\n# **Fix** `it`\n", "**Fix** `it`"),
        ("x" * 81, "x" * 79 + "…"),
        ("x" * 80, "x" * 80),
    ],
)
async def test_a_title_is_made_of_the_first_prompt_and_told(version: int, prompt: str, title: str) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, prompt)
        await client.prompt(session, "something else")
        assert [it["title"] for it in client.updates("session_info_update")] == [title]
        assert (await only(client))["title"] == title


@pytest.mark.requirement("B17", "B16")
@VERSIONS
async def test_a_title_somebody_gave_is_never_replaced_by_an_automatic_one(version: int, place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(version)
        session = await client.new()
        assert await client.ask("session/set_title", {"sessionId": session, "title": "Mine"}) == {"title": "Mine"}
        await client.prompt(session, "hello")
        assert (await only(client))["title"] == "Mine"
        await client.prompt(session, "/title The agent's")
        assert (await only(client))["title"] == "The agent's"
    async with serving(demo, place) as host:
        client = await host.client(version)
        replay = await client.replayed(session)
        assert [it["title"] for it in replay if it["sessionUpdate"] == "session_info_update"] == ["The agent's"]


@pytest.mark.requirement("B17")
@VERSIONS
async def test_a_title_that_is_taken_away_is_told_as_null_and_stays_away(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "hello")
        await client.prompt(session, "/title")
        assert client.updates("session_info_update")[-1]["title"] is None
        await client.prompt(session, "again")
        assert (await only(client))["title"] is None
        assert len(client.updates("session_info_update")) == 2


@pytest.mark.requirement("B1", "B5")
@VERSIONS
async def test_many_sessions_created_at_once_are_all_created(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        asked = [client.begin("session/new", {"cwd": CWD, "mcpServers": []}) for _ in range(30)]
        assert len({(await patiently(it))["sessionId"] for it in asked}) == 30


async def only(client: Client) -> dict[str, Any]:
    """The one session that is listed."""
    (listed,) = (await client.ask("session/list", {}))["sessions"]
    return listed


async def listed_ids(client: Client, **filters: object) -> list[str]:
    return [it["sessionId"] for it in (await client.ask("session/list", filters))["sessions"]]
