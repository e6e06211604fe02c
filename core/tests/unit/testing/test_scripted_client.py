"""`holdfast.testing`: what a test sees, and that it fails where it should."""

from __future__ import annotations

import asyncio
import json
import warnings
from typing import TYPE_CHECKING, Any, cast

import pytest

from core.tests.support.mcp import wire
from core.tests.support.schemas import SDK, lacking
from holdfast import Agent, Turn
from holdfast.errors import AuthRequired, ModelFailed, RemoteError, UsageError
from holdfast.testing import Clock, ScriptedClient, assert_valid_wire, connect_to

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VERSIONS = pytest.mark.parametrize("protocol", [1, 2])

agent = Agent("odd")


@agent.prompt
async def answer(turn: Turn) -> None:
    match turn.text.split():
        case ["allow", *words]:
            for word in words:
                await turn.say(f"{word}: {await turn.allow(f'{word}?')}. ")
        case ["form"]:
            await turn.say(str(await turn.ask("Who?", {"name": {"type": "string"}})))
        case ["all"]:
            await turn.think("hm")
            await turn.plan([("look", "completed"), "write"])
            async with turn.tool("Edit", kind="edit", locations=["a.txt"], input={"a": 1}) as call:
                await call.diff("a.txt", "one\n", "two\n")
                await call.output([1])
            await turn.show({"type": "image", "mimeType": "image/png", "data": "aGk="})
            turn.stop("max_tokens")
        case ["fail"]:
            raise KeyError("inside")
        case ["refuse"]:
            raise ModelFailed("the model is tired")
        case ["log", "in"]:
            raise AuthRequired("log in first")
        case ["remember"]:
            turn.session.state["turns"] = turns = dict[str, object](first=[])
            turns["first"] = [object()]
        case ["save"]:
            turn.session.state["turns"] = turns = dict[str, object](first=[])
            turns["first"] = [object()]
            await turn.session.save()
        case ["forget"]:
            cast("Any", turn.say("never"))
        case ["sleep", seconds]:
            for _ in range(3):
                await asyncio.sleep(float(seconds))
                await turn.say("tick ")
        case ["warn"]:
            warnings.warn("careful", UserWarning, stacklevel=1)
        case _:
            await turn.say("fine")


@VERSIONS
async def test_answers_are_given_in_order_or_by_the_question(protocol: Any) -> None:
    async with connect_to(agent, permissions=[True, "reject_always", None], protocol=protocol) as client:
        assert (await client.say("allow A B C")).text == "A: True. B: False. C: False. "
        assert (
            "? A? → allow\n" in client.transcript()
            and "? B? → reject_always\n? C? → no answer\n" in client.transcript()
        )
    async with connect_to(agent, permissions={"B": False, "A": True}, protocol=protocol) as client:
        assert (await client.say("allow A B")).text == "A: True. B: False. "
    async with connect_to(agent, permissions="allow", forms={"Who": {"name": "Ada"}}, protocol=protocol) as client:
        assert (await client.say("allow A B")).text == "A: True. B: True. "
        assert (await client.say("form")).text == "{'name': 'Ada'}"


async def test_a_question_that_is_not_scripted_fails_the_turn() -> None:
    async with connect_to(agent) as client:
        with pytest.raises(AssertionError, match="asked for a permission that is not in the script: 'A\\?'"):
            await client.say("allow A")
        with pytest.raises(AssertionError, match="asked for a form that is not in the script: 'Who\\?'"):
            await client.say("form")
        assert (await client.say("hello")).text == "fine"


async def test_an_answer_that_nobody_asked_for_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="permission True, form 'Who'"):
        async with connect_to(agent, permissions=[True], forms={"Who": None}):
            pass


async def test_a_failure_of_the_agent_has_what_was_raised_as_its_cause() -> None:
    async with connect_to(agent) as client:
        with pytest.raises(RemoteError) as failed:
            await client.say("fail")
        assert isinstance(failed.value.__cause__, KeyError)
        assert client.transcript() == "> fail\n= error\n"


@VERSIONS
@pytest.mark.parametrize(
    ("prompt", "kind", "why"),
    [
        ("fail", KeyError, "inside"),
        ("refuse", ModelFailed, "the model is tired"),
        ("log in", AuthRequired, "log in first"),
        ("remember", UsageError, "session.state['turns']['first'][0] is a object, which is no JSON value"),
        ("save", UsageError, "session.state['turns']['first'][0] is a object, which is no JSON value"),
    ],
)
async def test_what_the_handler_did_wrong_is_the_cause_of_the_failure(
    protocol: Any, prompt: str, kind: type[Exception], why: str
) -> None:
    async with connect_to(agent, protocol=protocol) as client:
        with pytest.raises(RemoteError) as failed:
            await client.say(prompt)
        assert isinstance(failed.value.__cause__, kind)
        assert why in str(failed.value.__cause__)


async def test_a_forgotten_await_fails_the_turn_with_its_line() -> None:
    async with connect_to(agent) as client:
        with pytest.raises(
            AssertionError, match=r"test_scripted_client.py:\d+: coroutine 'Turn.say' was never awaited"
        ):
            await client.say("forget")
        with pytest.warns(UserWarning, match="careful"):
            await client.say("warn")


@VERSIONS
async def test_a_turn_is_seen_whole_and_the_transcript_has_no_chance_in_it(protocol: Any, tmp_path: Path) -> None:
    seen: set[str] = set()
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        async with connect_to(agent, protocol=protocol, cwd=tmp_path / place) as client:
            turn = await client.say("all")
            assert (turn.thought, turn.stop_reason) == ("hm", "max_tokens")
            assert turn.plan == [("look", "completed"), ("write", "pending")]
            (call,) = turn.tool_calls
            assert (call.title, call.kind, call.status, call.input, call.output) == (
                "Edit",
                "edit",
                "completed",
                {"a": 1},
                [1],
            )
            assert "+two" in call.text and '"a": 1' not in call.text and "[1]" not in call.text
            assert call.content[0]["type"] == "diff"
            seen.add(client.transcript())
            assert_valid_wire(client)
    (transcript,) = seen
    assert transcript.startswith("> all\n~ hm\n# [x] look\n# [ ] write\n* Edit (edit, completed)\n    ./a.txt\n")
    assert transcript.endswith("[image image/png]\n= max_tokens\n")


async def test_time_passes_in_order_and_nobody_waits() -> None:
    clock = Clock()
    async with connect_to(agent) as client:
        turn = client.begin("sleep 1000")
        await clock.advance(2500)
        assert turn.text == "tick tick "
        await clock.advance(600)
        assert (await turn).text == "tick tick tick "
        assert clock.ahead > 3000
        with pytest.raises(UsageError):
            await clock.advance(-1)
    clock.stop()


async def test_a_turn_that_does_not_end_is_cancelled_after_real_seconds() -> None:
    async with connect_to(agent) as client:
        with pytest.raises(TimeoutError, match=r"has not ended after 0\.3 seconds"):
            await client.say("sleep 1000", timeout=0.3)


async def recorded() -> ScriptedClient:
    async with connect_to(agent, permissions=[True]) as client:
        await client.say("allow A")
    return client


def changed(client: ScriptedClient, what: str, change: Callable[[dict[str, Any]], Any]) -> list[tuple[str, bytes]]:
    """Change the first line of the agent's that has a text."""
    lines = [*client.wire]
    at = next(n for n, (direction, line) in enumerate(lines) if direction == "in" and what in line.decode())
    message = json.loads(lines[at][1])
    replaced: Any = change(message) or message
    parts = cast("list[Any]", replaced if isinstance(replaced, list) else [replaced])
    lines[at : at + 1] = [("in", json.dumps(part).encode()) for part in parts]
    return cast("Any", lines)


@pytest.mark.requirement("P5")
async def test_a_wire_that_breaks_a_rule_is_told() -> None:
    client = await recorded()
    assert_valid_wire(client)

    def told(what: str, change: Callable[[dict[str, Any]], Any], **more: Any) -> str:
        with pytest.raises(AssertionError) as broken:
            assert_valid_wire(changed(client, what, change), **more)
        return str(broken.value)

    assert "no message of JSON-RPC 2.0" in told("agent_message", lambda it: it.pop("jsonrpc") and None)
    assert "or a second one" in told('"sessionId":"sess', lambda it: [it, it])
    assert "no answer" in told(
        '"sessionId":"', lambda it: {"jsonrpc": "2.0", "method": "_x"} if "result" in it else None
    )
    assert "which no answer has named" in told("agent_message_chunk", lambda it: it["params"].update(sessionId="other"))
    assert "that is none" in told("agent_message_chunk", lambda it: it["params"]["update"].update(content=5))
    assert "an update without" in told("agent_message_chunk", lambda it: it["params"].pop("update") and None)
    with pytest.raises(AssertionError, match="sent no JSON"):
        assert_valid_wire([("in", b"Hello")])
    with pytest.raises(AssertionError, match="an answer to nothing"):
        assert_valid_wire([("in", b'{"jsonrpc": "2.0", "id": 7, "result": null}')])
    with pytest.raises(UsageError, match="there is no schema"):
        assert_valid_wire(client, schemas=SDK / "nowhere")


@VERSIONS
async def test_messages_are_checked_by_the_official_schemas(protocol: Any) -> None:
    if not (SDK / "schema" / "v1" / "schema.json").is_file():
        lacking("the official schemas are not installed: they come with npm, by `make test`")
    async with connect_to(agent, permissions="allow", protocol=protocol) as client:
        await client.say("allow A")
        await client.say("all")
    assert_valid_wire(client, schemas=SDK / "schema")
    lines = changed(client, "agent_message", lambda it: it["params"]["update"].update(content={"type": "text"}))
    with pytest.raises(AssertionError, match="that the schema refuses"):
        assert_valid_wire(cast("Any", lines), schemas=SDK / "schema")


async def test_a_session_has_the_mcp_servers_that_the_test_gives() -> None:
    asking = Agent("asking")

    @asking.prompt
    async def ask(turn: Turn) -> None:
        result = await turn.call_tool("it", "echo", {"text": turn.text})
        await turn.say(result.text)

    async with connect_to(asking, mcp_servers=[wire()]) as client:
        assert "hello" in (await client.say("hello")).text
        await client.open_session(mcp_servers=[wire()])
        assert "again" in (await client.say("again")).text
