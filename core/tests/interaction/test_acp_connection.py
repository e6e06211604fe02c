"""How a connection begins, and what holds for every request on it (A)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, Client, Gates, Refused, patiently, serving
from holdfast import Agent, Turn
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from holdfast.server.host import ProtocolChoice

VERSIONS = pytest.mark.parametrize("version", [1, 2])

REQUESTS = [
    "session/new",
    "session/load",
    "session/list",
    "session/prompt",
    "authenticate",
    "auth/login",
    "_unheard/of",
]


@pytest.mark.requirement("A6")
@pytest.mark.parametrize("method", REQUESTS)
async def test_a_request_before_initialize_is_refused_and_initialize_is_still_possible(method: str) -> None:
    async with serving(demo) as host:
        client = host.connect()
        assert (await client.refusal(method, {"cwd": CWD, "sessionId": "x"})).code == -32600
        assert (await client.initialize())["protocolVersion"] == 1
        assert await client.new()


@pytest.mark.requirement("A6")
@VERSIONS
async def test_requests_written_right_behind_initialize_are_served_in_order(version: int) -> None:
    async with serving(demo) as host:
        client = host.connect(version)
        asked = [
            client.begin("initialize", {"protocolVersion": version}),
            client.begin("session/new", {"cwd": CWD, "mcpServers": []}),
            client.begin("session/list", {}),
        ]
        answers = [await patiently(it) for it in asked]
        assert answers[0]["protocolVersion"] == version
        assert answers[1]["sessionId"]
        assert answers[2] == {"sessions": []}
        assert next(it["id"] for it in client.heard if "method" not in it) == 1


@pytest.mark.requirement("A6")
@VERSIONS
async def test_a_second_initialize_is_answered_and_disturbs_no_session(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        assert (await client.initialize())["protocolVersion"] == version
        assert await client.prompt(session, "still here?") == "end_turn"
        assert client.said() == "still here?"


@pytest.mark.requirement("A7", "A8")
@pytest.mark.parametrize(
    ("protocol", "asked", "answered"),
    [
        ("auto", 1, 1),
        ("auto", 2, 2),
        ("auto", 3, 2),
        ("auto", 65535, 2),
        ("1", 1, 1),
        ("1", 2, 1),
        ("1", 7, 1),
        ("2", 2, 2),
        ("2", 3, 2),
    ],
)
async def test_the_highest_version_both_sides_speak_is_chosen(
    protocol: ProtocolChoice, asked: int, answered: int
) -> None:
    async with serving(demo, protocol=protocol) as host:
        client = host.connect(asked)
        assert (await client.initialize())["protocolVersion"] == answered


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(
    ("protocol", "asked", "supported"), [("auto", 0, [1, 2]), ("2", 1, [2]), ("2", 0, [2]), ("1", -1, [1])]
)
async def test_a_version_nobody_speaks_is_refused_with_what_is_spoken(
    protocol: ProtocolChoice, asked: int, supported: list[int]
) -> None:
    async with serving(demo, protocol=protocol) as host:
        client = host.connect()
        refused = await client.refusal("initialize", {"protocolVersion": asked})
        assert refused.code == -32022
        assert refused.data == {"requested": asked, "supported": supported}
        assert (await client.ask("initialize", {"protocolVersion": 2}))["protocolVersion"] in supported


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("params", [{}, {"protocolVersion": "new"}, {"protocolVersion": None}, [1], "1"])
async def test_an_initialize_without_a_version_is_refused(params: Any) -> None:
    async with serving(demo) as host:
        refused = await host.connect().refusal("initialize", params)
        assert refused.code in (-32602, -32600)


@pytest.mark.requirement("A7", "B6", "B7", "B3")
async def test_version_1_says_what_it_is_and_can_in_its_own_words() -> None:
    async with serving(demo) as host:
        answer = await host.connect().initialize()
    assert answer["agentInfo"] == {"name": "holdfast-demo", "title": "Holdfast demo", "version": "1"}
    capabilities = answer["agentCapabilities"]
    assert capabilities["loadSession"] is True
    assert capabilities["promptCapabilities"] == {"image": True, "audio": True, "embeddedContext": True}
    for name in ("resume", "close", "list", "delete", "fork", "additionalDirectories"):
        assert capabilities["sessionCapabilities"][name].keys() <= {"_meta"}
    assert answer["authMethods"] == []
    assert "capabilities" not in answer and "info" not in answer


@pytest.mark.requirement("A8", "B9", "B3")
async def test_version_2_says_what_it_is_and_can_in_its_own_words() -> None:
    plain = Agent("plain", version="3", accepts={"image"})
    plain.prompt(_silent)
    async with serving(plain) as host:
        answer = await host.connect(2).initialize()
    assert answer["info"] == {"name": "plain", "version": "3"}
    session = answer["capabilities"]["session"]
    assert session["prompt"] == {"image": {}}
    for name in ("load", "resume", "close", "list", "delete", "fork", "additionalDirectories"):
        assert session[name].keys() <= {"_meta"}
    assert "agentCapabilities" not in answer and "agentInfo" not in answer


@pytest.mark.requirement("A12")
@VERSIONS
@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/fork"])
async def test_what_is_in_meta_is_never_taken_for_a_parameter(version: int, method: str) -> None:
    meta = {"cwd": "/etc", "sessionId": "other", "additionalDirectories": ["/"], "additional_directories": ["/"]}
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "hello")
        params: dict[str, Any] = {"cwd": CWD, "mcpServers": [], "_meta": meta}
        if method != "session/new":
            params["sessionId"] = session
        answer: dict[str, Any] | None = await client.ask(method, params)
        made = (answer or params).get("sessionId", session)
        await client.prompt(made, "hello")
        listed = {it["sessionId"]: it for it in (await client.ask("session/list"))["sessions"]}
        assert "other" not in listed
        assert listed[made]["cwd"] == CWD
        assert listed[made]["additionalDirectories"] == []


@pytest.mark.requirement("A12")
@VERSIONS
async def test_meta_and_unknown_members_of_what_was_said_are_carried_to_whoever_loads_it(version: int) -> None:
    block = {"type": "text", "text": "hello", "_meta": {"zed": [1, None]}, "annotations": {"priority": 0.5}}
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        await client.ask("session/prompt", {"sessionId": session, "prompt": [block], "_meta": {"prompt": "x"}})
        told = [it for it in await client.replayed(session) if it["sessionUpdate"].startswith("user_message")]
        content = told[0]["content"]
        assert (content if version == 1 else content[0]) == block


@pytest.mark.requirement("A9")
async def test_cancelling_the_request_of_a_prompt_cancels_its_turn_in_version_1() -> None:
    agent, gates = waiting_agent()
    async with serving(agent) as host:
        client = await host.client(1)
        session = await client.new()
        answer = client.begin_prompt(session, "wait", "mine")
        await gates.reached()
        client.tell("$/cancel_request", {"requestId": "mine"})
        assert await patiently(answer) == {"stopReason": "cancelled"}
        gates.open()
        assert await client.prompt(session, "again") == "end_turn"


@pytest.mark.requirement("A9", "C6")
@VERSIONS
async def test_cancelling_the_request_of_a_prompt_that_waits_leaves_the_running_turn_alone(version: int) -> None:
    agent, gates = waiting_agent()
    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        first = client.begin_prompt(session, "first")
        await gates.reached()
        second = client.begin_prompt(session, "second", "second")
        third = client.begin_prompt(session, "third")
        await client.settle()
        client.tell("$/cancel_request", {"requestId": "second"})
        await ended_as_cancelled(client, second)
        gates.open()
        answers = [await patiently(first), await patiently(third)]
        if version == 1:
            assert answers == [{"stopReason": "end_turn"}] * 2
        await client.until(lambda: client.said() == "first third ")


@pytest.mark.requirement("A9")
@VERSIONS
async def test_our_questions_are_withdrawn_when_their_turn_is_cancelled(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        answer = client.begin_prompt(session, "/ask")
        question = await client.question()
        client.tell("session/cancel", {"sessionId": session})
        await client.until(lambda: question.withdrawn)
        if version == 1:
            assert await patiently(answer) == {"stopReason": "cancelled"}
        else:
            await client.until(lambda: client.states()[-1:] == ["cancelled"])


@pytest.mark.requirement("A10")
@VERSIONS
async def test_every_update_of_a_turn_comes_before_its_end(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "/stream 100")
        end = client.heard[-1]
        assert "id" in end if version == 1 else end["params"]["update"]["stopReason"] == "end_turn"
        assert client.said() == "".join(f"{n} " for n in range(100))


@pytest.mark.requirement("A3", "A5")
@VERSIONS
async def test_bad_messages_and_unknown_methods_are_answered_and_the_session_goes_on(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        client.forget()
        for line in (b"{", b"[]", b"null", b"42", b'"x"', b'{"jsonrpc":"2.0","method":"_mine/told"}'):
            client.say(line)
        client.say({"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}})
        assert (await client.refusal("_mine/asked")).code == -32601
        assert (await client.refusal("session/unheard_of")).code == -32601
        codes = [it["error"]["code"] for it in client.heard if "error" in it]
        assert codes == [-32700, -32600, -32600, -32600, -32600, -32601, -32601]
        assert await client.prompt(session, "hello") == "end_turn"


@pytest.mark.requirement("A5")
@VERSIONS
@pytest.mark.parametrize("id_", ["", "3b9c", 0, -1, 2**63 - 1, -(2**63)])
async def test_request_ids_come_back_as_they_were(version: int, id_: Any) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        assert await patiently(client.begin("session/list", {}, id_)) == {"sessions": []}


@pytest.mark.requirement("A3")
@VERSIONS
async def test_a_batch_of_protocol_requests_is_answered_as_a_batch(version: int, place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(version)
        listing: dict[str, Any] = {"jsonrpc": "2.0", "method": "session/list", "params": {}}
        unknown = {"jsonrpc": "2.0", "method": "nobody/knows"}
        client.say([{**listing, "id": 1}, {**unknown, "id": 2}, unknown, 42])
        await client.until(lambda: client.batches)
        (answers,) = client.batches
        assert {it["id"]: it.get("result") or it["error"]["code"] for it in answers} == {
            1: {"sessions": []},
            2: -32601,
            None: -32600,
        }


async def ended_as_cancelled(client: Client, answer: asyncio.Future[Any]) -> None:
    """A prompt that never got its turn (C6)."""
    if client.version == 1:
        assert await patiently(answer) == {"stopReason": "cancelled"}
    else:
        with pytest.raises(Refused) as refused:
            await patiently(answer)
        assert refused.value.code == -32800


def waiting_agent() -> tuple[Agent, Gates]:
    """An agent that waits at a gate before it repeats the prompt."""
    agent, gates = Agent("waiting"), Gates()

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await gates.wait()
        await turn.say(f"{turn.text} ")

    return agent, gates


async def _silent(turn: Turn) -> None: ...
