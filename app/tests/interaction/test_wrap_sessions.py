"""Sessions of a wrapped agent: listed, adopted, deleted, forked, refused (G6, G9)."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.commands import sessions
from app.tests.support.wrapping import wrapping
from core.tests.support.acp import Refused
from holdfast_app.cli.commands import main_for_people

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.support.acp import Client


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return request.param


def habits(version: int, *others: str) -> tuple[str, ...]:
    """Return habits, and that the agent speaks the version of the client."""
    return ("v2", *others) if version == 2 else others


async def listed(client: Client, **filters: object) -> list[dict[str, Any]]:
    return (await client.ask("session/list", filters))["sessions"]


def saw_more(client: Client) -> bool:
    return "Surely." in client.said()


def make_own(home: Path, name: str, cwd: Path, *said: str) -> None:
    """Let the agent have a session of its own, as if its own command line had been used."""
    home.mkdir(exist_ok=True)
    messages = [
        {"role": "user" if at % 2 == 0 else "agent", "text": text, "id": f"{name}-{at}"} for at, text in enumerate(said)
    ]
    (home / f"{name}.json").write_text(json.dumps({"cwd": str(cwd), "messages": messages, "mode": "ask"}))


@pytest.mark.requirement("G9")
async def test_the_agents_own_sessions_are_listed_and_adopted_when_loaded(tmp_path: Path, version: int) -> None:
    make_own(tmp_path / "home", "0123456789abcdef-own", tmp_path, "remember heron", "Noted.")
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        ours = await client.new(str(tmp_path))
        await client.prompt(ours, "say hello")
        own = [one for one in await listed(client) if one["sessionId"] != ours]
        assert [one["title"] for one in own] == ["Title of 0123456789abcdef-own"]
        adopted = own[0]["sessionId"]
        client.forget()
        await client.load(adopted, str(tmp_path))
        assert (client.said("user_message"), client.said()) == ("remember heron", "Noted.")
        client.forget()
        await client.prompt(adopted, "recall")
        assert client.said() == "heron"
        assert sorted(one["sessionId"] for one in await listed(client)) == sorted([ours, adopted])


@pytest.mark.requirement("G9")
async def test_the_agents_own_id_is_accepted_and_kept_by_the_client(tmp_path: Path, version: int) -> None:
    make_own(tmp_path / "home", "0123456789abcdef-own", tmp_path, "remember heron", "Noted.")
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        for _ in range(2):
            client.forget()
            await client.load("0123456789abcdef-own", str(tmp_path))
            assert client.said() == "Noted."
        client.forget()
        assert await client.prompt("0123456789abcdef-own", "recall") == "end_turn"
        assert client.said() == "heron"
        assert {it["params"]["sessionId"] for it in client.heard if "method" in it} == {"0123456789abcdef-own"}


@pytest.mark.requirement("G9", "P11")
async def test_our_session_is_found_by_the_agents_id_of_it(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say hello")
        (own,) = [path.stem for path in wrapped.home.glob("*.json")]
        assert [one["sessionId"] for one in await listed(client)] == [session]
        client.forget()
        await client.load(own, str(tmp_path))
        assert client.said() == "hello"
        refusal = await client.refusal("session/load", {"sessionId": "nothing", "cwd": str(tmp_path), "mcpServers": []})
        assert refusal.code == -32002


@pytest.mark.requirement("G9", "B14")
async def test_a_deleted_session_stays_deleted_though_the_agent_lists_it_again(tmp_path: Path, version: int) -> None:
    make_own(tmp_path / "home", "0123456789abcdef-own", tmp_path, "hello", "Hello.")
    async with wrapping(tmp_path, *habits(version, "keeps the deleted")) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say hello")
        for one in await listed(client):
            await client.ask("session/delete", {"sessionId": one["sessionId"]})
        assert await listed(client) == []
        own = [path.stem for path in wrapped.home.glob("*.json")]
        assert len(own) == 2
        for name in (session, *own):
            refusal = await client.refusal("session/load", {"sessionId": name, "cwd": str(tmp_path), "mcpServers": []})
            assert refusal.code == -32002
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        assert await listed(await wrapped.client(version)) == []


@pytest.mark.requirement("G9")
async def test_a_delete_reaches_the_agent(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say hello")
        await client.ask("session/delete", {"sessionId": session})
        assert list(wrapped.home.glob("*.json")) == []


@pytest.mark.requirement("G9", "P12")
async def test_with_several_principals_nobody_sees_what_lies_in_the_agents_home(tmp_path: Path, version: int) -> None:
    make_own(tmp_path / "home", "0123456789abcdef-own", tmp_path, "my secret", "Noted.")
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        mine, other = await wrapped.client(version), await wrapped.client(version, principal="other")
        for client in (mine, other):
            assert await listed(client) == []
            params: dict[str, Any] = {"sessionId": "0123456789abcdef-own", "cwd": str(tmp_path), "mcpServers": []}
            assert (await client.refusal("session/load", params)).code == -32002
        assert wrapped.starts == 2


async def test_pages_hold_the_agents_sessions_where_their_time_puts_them(tmp_path: Path) -> None:
    make_own(tmp_path / "home", "0123456789abcdef-own", tmp_path, "hello", "Hello.")
    async with wrapping(tmp_path) as wrapped:
        client = await wrapped.client(1)
        ours: list[str] = []
        for _ in range(52):
            ours.append(await client.new(str(tmp_path)))
            await client.prompt(ours[-1], "say x")
        first = await client.ask("session/list", {})
        assert [one["sessionId"] for one in first["sessions"]] == ours[:1:-1]
        second = await client.ask("session/list", {"cursor": first["nextCursor"]})
        assert [one["sessionId"] for one in second["sessions"]][:2] == ours[1::-1]
        assert len(second["sessions"]) == 3
        assert "nextCursor" not in second
        assert (await client.refusal("session/list", {"cursor": first["nextCursor"] + "x"})).code == -32602


FORKING = [
    (),
    ("no fork",),
    ("replays forks",),
    ("forks under the parent",),
    ("speaks as the parent",),
    ("speaks as the parent", "forks under the parent"),
    ("no close",),
]


@pytest.mark.requirement("G9", "B15")
@pytest.mark.parametrize("others", FORKING, ids=lambda others: ", ".join(others) or "plain")
async def test_a_fork_knows_what_was_said_and_leaves_the_other_alone(
    tmp_path: Path, version: int, others: tuple[str, ...]
) -> None:
    cwd = str(tmp_path)
    async with wrapping(tmp_path, *habits(version, *others)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(cwd)
        await client.prompt(session, "remember heron")
        params: dict[str, Any] = {"sessionId": session, "cwd": cwd, "mcpServers": []}
        fork = (await client.ask("session/fork", params))["sessionId"]
        await client.prompt(fork, "remember egret")
        client.forget()
        await client.prompt(fork, "recall")
        assert sorted(client.said().split()[-2:]) == ["egret", "heron"]
        client.forget()
        await client.prompt(session, "recall")
        assert client.said() == "heron"
        client.forget()
        await client.load(session, cwd)
        assert client.said("user_message") == "remember heronrecall"
        assert "egret" not in client.said()


@pytest.mark.requirement("G9", "B15")
async def test_a_fork_inside_a_history_does_not_know_what_came_later(tmp_path: Path, version: int) -> None:
    cwd = str(tmp_path)
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(cwd)
        await client.prompt(session, "remember heron")
        message = next(it["messageId"] for it in client.updates("agent_message_chunk"))
        await client.prompt(session, "remember egret")
        params: dict[str, Any] = {
            "sessionId": session,
            "cwd": cwd,
            "mcpServers": [],
            "_meta": {"holdfast/upTo": message},
        }
        fork = (await client.ask("session/fork", params))["sessionId"]
        client.forget()
        await client.prompt(fork, "recall")
        assert client.said().endswith("heron")
        assert "egret" not in client.said()
        assert "The files are as they are now, not as they were then." in said_of_files(client)


def said_of_files(client: Client) -> str:
    """Return what a client was told in the place of the agent, or besides it."""
    return json.dumps([*client.updates("_holdfast/lost_context"), *client.updates("agent_message_chunk")])


@pytest.mark.requirement("G9", "B15")
@pytest.mark.parametrize("at", ["message in the last turn", "message before", None])
async def test_a_fork_by_the_command_line_has_a_session_of_the_agents_own(
    tmp_path: Path, version: int, at: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "sessions.db"))
    cwd = str(tmp_path)
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(cwd)
        await client.prompt(session, "remember heron")
        first = client.updates("agent_message_chunk")[-1]["messageId"]
        await client.prompt(session, "remember egret")
        last = client.updates("agent_message_chunk")[-1]["messageId"]
    cut = {"message before": first, "message in the last turn": last}.get(at or "")
    made = await asyncio.to_thread(sessions, "fork", session, *(("--at", cut) if cut else ()), "--json")
    fork = made.json["session"]["sessionId"]
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        await client.load(fork, cwd)
        client.forget()
        await client.prompt(fork, "recall")
        assert ("egret" in client.said()) == (at != "message before")
        assert ("The files are as they are now" in said_of_files(client)) == (at == "message before")
        await client.prompt(fork, "remember tern")
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        await client.load(session, cwd)
        assert "tern" not in client.said("user_message"), "the agent's session of the other is its own"
        client.forget()
        await client.prompt(session, "recall")
        assert "tern" not in client.said()
        await client.load(fork, cwd)
        client.forget()
        await client.prompt(fork, "recall")
        assert client.said().count("tern") == 1


@pytest.mark.requirement("G6")
async def test_refuse_answers_that_the_session_is_gone_and_changes_nothing(tmp_path: Path, version: int) -> None:
    others, cwd = habits(version, "keeps nothing"), str(tmp_path)
    async with wrapping(tmp_path, *others) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(cwd)
        await client.prompt(session, "remember heron")
    async with wrapping(tmp_path, *others, lost_context="refuse") as wrapped:
        client = await wrapped.client(version)
        before = await listed(client)
        for method in ("session/load", "session/resume"):
            refusal = await client.refusal(method, {"sessionId": session, "cwd": cwd, "mcpServers": []})
            assert (refusal.code, refusal.data) == (-32002, {"sessionId": session})
        assert await listed(client) == before
    async with wrapping(tmp_path, *others) as wrapped:
        client = await wrapped.client(version)
        await client.load(session, cwd)
        assert client.said("user_message") == "remember heron"


@pytest.mark.requirement("G6", "P11")
async def test_refuse_refuses_a_prompt_before_it_is_stored(tmp_path: Path, version: int) -> None:
    cwd = str(tmp_path)
    async with wrapping(tmp_path, *habits(version, "keeps nothing"), lost_context="refuse") as wrapped:
        client = await wrapped.client(version)
        session = await client.new(cwd)
        await client.prompt(session, "remember heron")
        turn = client.begin_prompt(session, "die")
        if version == 1:
            with pytest.raises(Refused, match="I have seen too much"):
                await turn
        else:
            await client.until(lambda: "error" in client.states())
        refusal = await client.refusal(
            "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "recall"}]}
        )
        assert refusal.code == -32002
    async with wrapping(tmp_path, *habits(version, "keeps nothing")) as wrapped:
        client = await wrapped.client(version)
        await client.load(session, cwd)
        assert client.said("user_message") == "remember herondie"


@pytest.mark.requirement("G6")
async def test_new_begins_anew_and_says_so(tmp_path: Path) -> None:
    async with wrapping(tmp_path, "keeps nothing") as wrapped:
        client = await wrapped.client(1)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "remember heron")
    async with wrapping(tmp_path, "keeps nothing", lost_context="new") as wrapped:
        client = await wrapped.client(1)
        await client.load(session, str(tmp_path))
        client.forget()
        await client.prompt(session, "recall")
        assert client.said().endswith("it does not know what was said before.nothing")


@pytest.mark.requirement("G5", "G6")
async def test_what_was_told_again_is_not_told_twice(tmp_path: Path, version: int) -> None:
    others, cwd = habits(version, "keeps nothing"), str(tmp_path)
    async with wrapping(tmp_path, *others) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(cwd)
        await client.prompt(session, "remember heron")
    for _ in range(2):
        async with wrapping(tmp_path, *habits(version)) as wrapped:
            client = await wrapped.client(version)
            await client.load(session, cwd)
            await client.prompt(session, "say more")
            client.forget()
            await client.prompt(session, "seeds")
            assert client.said().endswith("1")


@pytest.mark.requirement("G5")
async def test_what_was_said_in_the_agents_own_command_line_is_adopted(tmp_path: Path, version: int) -> None:
    cwd = str(tmp_path)
    async with wrapping(tmp_path, *habits(version, *(("no resume",) if version == 1 else ("counts",)))) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(cwd)
        await client.prompt(session, "remember heron")
        (path,) = wrapped.home.glob("*.json")
    kept = json.loads(path.read_text())
    kept["messages"] += [
        {"role": "user", "text": "remember egret", "id": "u9"},
        {"role": "agent", "text": "Surely.", "id": "a9"},
    ]
    path.write_text(json.dumps(kept))
    for _ in range(2):
        async with wrapping(tmp_path, *habits(version, *(("no resume",) if version == 1 else ("counts",)))) as wrapped:
            client = await wrapped.client(version)
            await client.load(session, cwd)
            await client.until(partial(saw_more, client))
            assert client.said("user_message") == "remember heronremember egret"
            assert client.said() == "Noted.Surely."


@pytest.mark.requirement("F2", "G6")
async def test_a_session_that_was_handed_over_is_continued_by_another_agent(tmp_path: Path, version: int) -> None:
    cwd = str(tmp_path)
    async with wrapping(tmp_path, *habits(version), name="one") as wrapped:
        client = await wrapped.client(version)
        session = await client.new(cwd)
        await client.prompt(session, "remember heron")
        await client.ask(
            "session/set_config_option", {"sessionId": session, "configId": "mode", "type": "id", "value": "code"}
        )
    command = ["sessions", "hand-over", session, "--to", "other", "--store", str(tmp_path / "sessions.db")]
    assert await asyncio.to_thread(main_for_people, command) == 0
    await asyncio.to_thread((tmp_path / "home").rename, tmp_path / "home of one")
    async with wrapping(tmp_path, *habits(version), name="one") as wrapped:
        assert await listed(await wrapped.client(version)) == []
    async with wrapping(tmp_path, *habits(version), name="other") as wrapped:
        client = await wrapped.client(version)
        assert [one["sessionId"] for one in await listed(client)] == [session]
        await client.load(session, cwd)
        assert client.said().startswith("Noted.")
        client.forget()
        await client.prompt(session, "recall")
        assert client.said().endswith("heron")
        if version == 1:
            assert client.said().startswith("Another agent goes on here.")
        client.forget()
        await client.prompt(session, "mode")
        assert client.said() == "ask"  # what was set for the one is not set for the other


@pytest.mark.requirement("G5")
async def test_what_was_said_without_us_is_adopted_though_the_agent_answers_as_it_did_before(tmp_path: Path) -> None:
    async with wrapping(tmp_path, "no resume") as wrapped:
        client = await wrapped.client(1)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "remember heron")
        (path,) = wrapped.home.glob("*.json")
    kept = json.loads(path.read_text())
    kept["messages"] += [
        {"role": "user", "text": "remember egret", "id": "u9"},
        {"role": "agent", "text": "Noted.", "id": "a9"},
    ]
    path.write_text(json.dumps(kept))
    async with wrapping(tmp_path, "no resume") as wrapped:
        client = await wrapped.client(1)
        await client.load(session, str(tmp_path))
        await client.until(lambda: "egret" in client.said("user_message"))
        assert client.said() == "Noted.Noted."
