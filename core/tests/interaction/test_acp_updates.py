"""Everything an agent can say, live and replayed, in both versions (C7)."""

from __future__ import annotations

import sys
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import Client, Update, conversation, serving
from holdfast import Agent, Turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

VERSIONS = pytest.mark.parametrize("version", [1, 2])

pytestmark = pytest.mark.requirement("C7")


async def played(
    version: int, act: Callable[[Turn], Awaitable[None]], cwd: str = "/project", **capabilities: object
) -> tuple[list[Update], list[Update]]:
    """Let an agent do something in a turn; give what was told live and what is replayed."""
    agent = Agent("acting")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await act(turn)

    async with serving(agent) as host:
        client = await host.client(version, **capabilities)
        session = await client.new(cwd)
        assert await client.prompt(session, "go") == "end_turn"
        live = client.updates()
        client.forget()
        if version == 1:
            await client.load(session, cwd)
        else:
            await client.resume(session, cwd, replayFrom={"type": "start"})
        return live, client.updates()


def kinds(updates: list[Update], *wanted: str) -> list[Update]:
    return [it for it in updates if it["sessionUpdate"] in wanted]


@VERSIONS
async def test_text_said_in_a_row_is_one_message_and_thoughts_are_apart(version: int) -> None:
    async def act(turn: Turn) -> None:
        for it in ("a", "", "b"):
            await turn.say(it)
        for it in ("c", "d"):
            await turn.think(it)
        await turn.say("e")

    live, replay = await played(version, act)
    chunks = kinds(live, "agent_message_chunk", "agent_thought_chunk")
    assert [it["content"]["text"] for it in chunks] == ["a", "b", "c", "d", "e"]
    ids = [it["messageId"] for it in chunks]
    assert ids[0] == ids[1] and ids[2] == ids[3] and len(set(ids)) == 3
    told = [it for it in conversation(replay) if it["sessionUpdate"].startswith("agent")]
    assert [(it["sessionUpdate"], it["messageId"], it["content"][0]["text"]) for it in told] == [
        ("agent_message", ids[0], "ab"),
        ("agent_thought", ids[2], "cd"),
        ("agent_message", ids[4], "e"),
    ]


@VERSIONS
async def test_a_message_that_is_replaced_is_replayed_as_it_became(version: int) -> None:
    async def act(turn: Turn) -> None:
        await turn.say("wrong")
        await turn.rewrite("right")
        await turn.say("!")

    live, replay = await played(version, act)
    told = [it for it in conversation(replay) if it["sessionUpdate"] == "agent_message"]
    assert [it["content"] for it in told] == [[{"type": "text", "text": "right!"}]]
    if version == 2:
        assert [it["content"] for it in kinds(live, "agent_message")] == [[{"type": "text", "text": "right"}]]
    else:
        assert kinds(live, "agent_message") == []


@VERSIONS
async def test_images_and_other_blocks_are_said_as_they_are(version: int) -> None:
    block = {"type": "image", "mimeType": "image/png", "data": "aGk=", "_meta": {"x": 1}}

    async def act(turn: Turn) -> None:
        await turn.say("look: ")
        await turn.show(block)

    live, replay = await played(version, act)
    assert kinds(live, "agent_message_chunk")[-1]["content"] == block
    (told,) = [it for it in conversation(replay) if it["sessionUpdate"] == "agent_message"]
    assert told["content"] == [{"type": "text", "text": "look: "}, block]


@VERSIONS
async def test_a_tool_call_is_shown_from_its_beginning_to_its_end(version: int) -> None:
    async def act(turn: Turn) -> None:
        async with turn.tool("Look", kind="search", input={"for": "x"}, locations=["a.py", ("/b.py", 3)]) as call:
            await call.text("found")
            await call.content({"type": "resource_link", "name": "a", "uri": "file:///a"})
            await call.output([1, {"two": None}])

    live, replay = await played(version, act)
    first, *rest = kinds(live, "tool_call", "tool_call_update", "tool_call_content_chunk")
    assert first == {
        "sessionUpdate": "tool_call" if version == 1 else "tool_call_update",
        "toolCallId": first["toolCallId"],
        "title": "Look",
        "kind": "search",
        "status": "in_progress",
        "rawInput": {"for": "x"},
        "locations": [{"path": "/project/a.py"}, {"path": "/b.py", "line": 3}],
    }
    if version == 1:
        assert {it["sessionUpdate"] for it in rest} == {"tool_call_update"}
    (lived,) = [it for it in conversation(live) if it["sessionUpdate"] == "tool_call_update"]
    (told,) = [it for it in conversation(replay) if it["sessionUpdate"] == "tool_call_update"]
    assert told == lived
    assert told["status"] == "completed"
    assert told["rawOutput"] == [1, {"two": None}]
    assert [it["content"]["type"] for it in told["content"]] == ["text", "resource_link"]


@VERSIONS
@pytest.mark.parametrize("fails", ["says so", "raises"])
async def test_a_tool_call_that_fails_is_shown_as_failed(version: int, fails: str) -> None:
    async def act(turn: Turn) -> None:
        try:
            async with turn.tool("Try") as call:
                if fails == "raises":
                    raise ValueError("secret")  # noqa: TRY301
                await call.fail("no luck")
        except ValueError:
            pass

    live, replay = await played(version, act)
    for updates in (live, replay):
        (told,) = [it for it in conversation(updates) if it["sessionUpdate"] == "tool_call_update"]
        assert told["status"] == "failed"
        assert "secret" not in str(updates)


@VERSIONS
async def test_a_change_of_a_file_is_shown_in_the_words_of_the_version(version: int) -> None:
    async def act(turn: Turn) -> None:
        async with turn.tool("Edit", kind="edit") as call:
            await call.diff("a.py", "x = 1\n", "x = 2\n")
            await call.diff("new.py", None, "y = 1\n")

    live, replay = await played(version, act)
    for updates in (live, replay):
        (told,) = [it for it in conversation(updates) if it["sessionUpdate"] == "tool_call_update"]
        changed, added = told["content"]
        if version == 1:
            assert changed == {"type": "diff", "path": "/project/a.py", "oldText": "x = 1\n", "newText": "x = 2\n"}
            assert added == {"type": "diff", "path": "/project/new.py", "oldText": None, "newText": "y = 1\n"}
        else:
            assert changed["changes"] == [{"operation": "modify", "path": "/project/a.py", "fileType": "text"}]
            assert added["changes"][0]["operation"] == "add"
            assert "-x = 1\n+x = 2\n" in changed["patch"]["text"]


@VERSIONS
async def test_a_command_in_a_terminal_is_shown_with_its_output_and_its_end(version: int, tmp_path: Path) -> None:
    async def act(turn: Turn) -> None:
        async with turn.tool("Run", kind="execute") as call:
            done = await call.terminal(sys.executable, "-c", "print('from inside'); raise SystemExit(3)")
            await turn.say(f"{done.status} {done.text.strip()}")

    live, replay = await played(version, act, str(tmp_path))
    for updates in (live, replay):
        (call,) = [it for it in conversation(updates) if it["sessionUpdate"] == "tool_call_update"]
        if version == 1:
            (shown,) = call["content"]
            assert shown == {"type": "content", "content": {"type": "text", "text": "```\nfrom inside\n```"}}
        else:
            (terminal,) = [it for it in conversation(updates) if it["sessionUpdate"] == "terminal_update"]
            assert call["content"] == [{"type": "terminal", "terminalId": terminal["terminalId"]}]
            assert terminal["exitStatus"] == {"exitCode": 3}
            assert terminal["cwd"] == str(tmp_path)
            assert b64decode(terminal["output"]["data"]) == b"from inside\n"


@VERSIONS
async def test_only_the_last_state_of_a_plan_is_replayed(version: int) -> None:
    async def act(turn: Turn) -> None:
        await turn.plan(["Look", ("Think", "in_progress")])
        await turn.plan([("Look", "completed"), ("Think", "completed", "high")])

    entries = [
        {"content": "Look", "status": "completed", "priority": "medium"},
        {"content": "Think", "status": "completed", "priority": "high"},
    ]
    live, replay = await played(version, act)
    assert len(kinds(live, "plan", "plan_update")) == 2
    (told,) = kinds(replay, "plan", "plan_update")
    if version == 1:
        assert told == {"sessionUpdate": "plan", "entries": entries}
    else:
        assert told["plan"] == {"type": "items", "planId": "plan", "entries": entries}


@VERSIONS
async def test_the_latest_usage_is_told_again_with_what_it_cost(version: int) -> None:
    async def act(turn: Turn) -> None:
        await turn.usage(1, 100, cost=0.5, currency="EUR")
        await turn.usage(2, 100)

    live, replay = await played(version, act)
    assert [it["used"] for it in kinds(live, "usage_update")] == [1, 2]
    (told,) = kinds(replay, "usage_update")
    assert told == {"sessionUpdate": "usage_update", "used": 2, "size": 100, "cost": {"amount": 0.5, "currency": "EUR"}}


@pytest.mark.parametrize(
    ("version", "capabilities", "shown"), [(1, {}, 0), (1, {"session": {"notices": {}}}, 1), (2, {}, 1)]
)
async def test_a_notice_is_shown_once_to_those_who_know_notices(
    version: int, capabilities: dict[str, Any], shown: int
) -> None:
    async def act(turn: Turn) -> None:
        await turn.notice("Full moon", "Beware", severity="warning")

    live, replay = await played(version, act, **capabilities)
    notice = {"sessionUpdate": "notice", "severity": "warning", "title": "Full moon", "description": "Beware"}
    assert kinds(live, "notice") == [notice] * shown
    assert kinds(replay, "notice") == []


@pytest.mark.parametrize(
    ("version", "capabilities", "shown"), [(1, {}, False), (1, {"session": {"compaction": {}}}, True), (2, {}, True)]
)
async def test_a_compaction_is_shown_and_replayed_to_those_who_know_them(
    version: int, capabilities: dict[str, Any], shown: bool
) -> None:
    async def act(turn: Turn) -> None:
        update: Update = {"sessionUpdate": "compaction_update", "compactionId": "c1"}
        turn.emit({**update, "status": "in_progress"})
        turn.emit({**update, "status": "completed", "summary": [{"type": "text", "text": "short"}]})

    live, replay = await played(version, act, **capabilities)
    assert bool(kinds(live, "compaction_update")) == shown
    told = kinds(replay, "compaction_update")
    assert [(it["status"], it["summary"]) for it in told] == (
        [("completed", [{"type": "text", "text": "short"}])] if shown else []
    )


async def test_what_nobody_knows_is_carried_in_version_2_and_left_out_in_version_1() -> None:
    async def act(turn: Turn) -> None:
        turn.emit({"sessionUpdate": "_zed/mood", "mood": {"is": "good"}, "_meta": {"a": [1, None]}})
        await turn.say("after")

    for version in (1, 2):
        live, replay = await played(version, act)
        for updates in (live, replay):
            mood = [{"sessionUpdate": "_zed/mood", "mood": {"is": "good"}, "_meta": {"a": [1, None]}}]
            assert kinds(updates, "_zed/mood") == (mood if version == 2 else [])
            assert kinds(updates, "agent_message", "agent_message_chunk")


@VERSIONS
async def test_saying_something_after_the_turn_is_over_reaches_nobody(version: int) -> None:
    kept: list[Turn] = []
    agent = Agent("late")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        kept.append(turn)

    async with serving(agent) as host:
        client: Client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "go")
        client.forget()
        with pytest.raises(Exception, match="over"):
            await kept[0].say("late")
        await client.settle()
        assert client.updates() == []


@pytest.mark.requirement("C7")
@VERSIONS
async def test_of_a_flood_of_output_the_beginning_and_the_end_are_shown(version: int) -> None:
    agent, ended = Agent("flooded"), list[bytes]()
    program = "import sys; sys.stdout.write('first ' + 'x' * 3_000_000 + ' last')"

    @agent.prompt
    async def answer(turn: Turn) -> None:
        async with turn.tool("Flood", kind="execute") as call:
            ended.append((await call.terminal(sys.executable, "-c", program, cwd="/", limit=100_000)).output)

    async with serving(agent) as host:
        client = await host.client(version)
        assert await client.prompt(await client.new(), "go") == "end_turn"
        assert len(ended[0]) == 100_000
        assert ended[0].endswith(b"x last")
        told = conversation(client.updates())
        if version == 1:  # which shows the last of it all
            (call,) = [it for it in told if it["sessionUpdate"] == "tool_call_update"]
            shown = call["content"][0]["content"]["text"].encode()
        else:
            (terminal,) = [it for it in told if it["sessionUpdate"] == "terminal_update"]
            shown = b64decode(terminal["output"]["data"])
            assert shown.startswith(b"first x")
            assert b"bytes are not shown" in shown
        assert shown.removesuffix(b"\n```").endswith(b"x last")
        assert len(shown) < 600_000
