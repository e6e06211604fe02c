"""What an author's code says is checked when it says it: the turn ends with an error, nothing broken is kept (P6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from core.tests.support.acp import Refused, conversation, serving
from holdfast import Agent, Turn
from holdfast.errors import UsageError
from holdfast.model import PermissionOption

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Mistake = Callable[[Any], Awaitable[None]]

VERSIONS = pytest.mark.parametrize("version", [1, 2])


class Chunk:
    """What a model library streams: an object with its text inside."""

    content = "hello"


async def open_tool(turn: Any, **arguments: Any) -> None:
    async with turn.tool(arguments.pop("title", "Look"), **arguments):
        pass


async def make_tool(turn: Any, **arguments: Any) -> None:
    turn.tool(arguments.pop("title", "Look"), **arguments)


async def fill_tool(turn: Any, method: str, *arguments: Any) -> None:
    async with turn.tool("Look") as call:
        await getattr(call, method)(*arguments)


async def fill_closed_tool(turn: Any, method: str, *arguments: Any) -> None:
    result = getattr(turn.tool("Look"), method)(*arguments)
    await result


async def open_by_with(opened: Any) -> None:
    with opened:
        pass


async def go_on(turn: Any) -> None:
    work = turn.say("never")
    try:
        turn.tool("Look").go_on(work)
    finally:
        work.close()


async def stop(turn: Any, reason: object) -> None:
    turn.stop(reason)


async def decide(turn: Any, method: str, *arguments: Any) -> None:
    if getattr(turn, method)(*arguments):
        await turn.say("done without a yes")


async def look_for(turn: Any, path: str) -> None:
    if turn.files.exists(path):
        await turn.say("found what is not there")


NOT_OPEN = "the tool call 'Look' is not open; write `async with turn.tool(…) as call:`"
NAME = {"name": {"type": "string"}}

MISTAKES: dict[str, tuple[Mistake, str]] = {
    "a number": (lambda turn: turn.say(5), "text must be a string, not int"),
    "zero": (lambda turn: turn.say(0), "text must be a string, not int"),
    "nothing": (lambda turn: turn.say(None), "text must be a string, not NoneType"),
    "bytes": (lambda turn: turn.say(b"hello"), "not bytes; decode it first"),
    "a list": (lambda turn: turn.say(["hello"]), "not list; give the text of its parts"),
    "a chunk": (lambda turn: turn.say(Chunk()), "not Chunk; give the text inside it, as `chunk.content`"),
    "a thought": (lambda turn: turn.think(5), "text must be a string"),
    "a rewriting": (lambda turn: turn.rewrite(5), "str"),
    "a plan's status": (lambda turn: turn.plan([("Look", "done")]), "`status` cannot be 'done'; it can be"),
    "a plan's entry": (lambda turn: turn.plan([(5,)]), "str"),
    "a tool's kind": (lambda turn: open_tool(turn, kind="banana"), "`kind` cannot be 'banana'; it can be"),
    "a tool's kind, unopened": (
        lambda turn: make_tool(turn, kind="reading"),
        "`kind` cannot be 'reading'; did you mean 'read'",
    ),
    "a tool's title, unopened": (lambda turn: make_tool(turn, title=5), "str"),
    "a tool's command as one text": (
        lambda turn: fill_tool(turn, "terminal", "echo hello there"),
        "no such program on PATH; give the program and its arguments word by word: 'echo', 'hello', 'there'",
    ),
    "a tool's title": (lambda turn: open_tool(turn, title=5), "str"),
    "a tool's input": (lambda turn: open_tool(turn, input=object()), "JSON"),
    "a tool's text": (lambda turn: fill_tool(turn, "text", 5), "str"),
    "a tool's content": (lambda turn: fill_tool(turn, "content", "hello"), "a content block must be a mapping"),
    "a tool's block": (lambda turn: fill_tool(turn, "content", {"type": "audio"}), "data"),
    "a tool's output": (lambda turn: fill_tool(turn, "output", {1, 2, object()}), "JSON"),
    "a tool's text, unopened": (lambda turn: fill_closed_tool(turn, "text", "a"), NOT_OPEN),
    "a tool's input, unopened": (lambda turn: fill_closed_tool(turn, "describe", "Look"), NOT_OPEN),
    "a tool's failure, unopened": (lambda turn: fill_closed_tool(turn, "fail", "a"), NOT_OPEN),
    "a tool's command, unopened": (lambda turn: fill_closed_tool(turn, "terminal", "touch", "ran"), NOT_OPEN),
    "a tool's server, unopened": (lambda turn: fill_closed_tool(turn, "start_terminal", "touch", "ran"), NOT_OPEN),
    "a tool's work, unopened": (go_on, NOT_OPEN),
    "a tool opened by with": (lambda turn: open_by_with(turn.tool("Look")), "write `async` before the `with`"),
    "a message opened by with": (lambda turn: open_by_with(turn.message()), "write `async` before the `with`"),
    "a plan that is a text": (lambda turn: turn.plan("do it"), "write `turn.plan([…])`"),
    "a form's list": (lambda turn: turn.ask("Who?", ["name"]), "a form has fields with JSON schemas; write"),
    "a form's field": (lambda turn: turn.ask("Who?", {"name": "string"}), "a form has fields with JSON schemas; write"),
    "a form's required text": (
        lambda turn: turn.ask("Who?", NAME, required="name"),
        "a list of names of fields, of name",
    ),
    "a form's required unknown": (lambda turn: turn.ask("Who?", NAME, required=["age"]), "not ['age']"),
    "usage": (lambda turn: turn.usage("a", 10), "int"),
    "an image": (lambda turn: turn.show({"type": "image"}), "data"),
    "a block without type": (lambda turn: turn.show({"text": "hello"}), "`type`"),
    "text as a block": (lambda turn: turn.show("hello"), "a content block must be a mapping"),
    "a severity": (lambda turn: turn.notice("Careful", severity="bad"), "`severity` cannot be 'bad'"),
    "a stop reason": (lambda turn: stop(turn, "bored"), "a turn cannot end with 'bored'; it can end with end_turn"),
    "a permission not waited for": (lambda turn: decide(turn, "allow", "May I?"), "write `await` before `….allow(…)`"),
    "a choice not waited for": (
        lambda turn: decide(turn, "choose", "Which?", [PermissionOption("a", "A", "allow_once")]),
        "write `await` before `….choose(…)`",
    ),
    "a form not waited for": (lambda turn: decide(turn, "ask", "Who?", {}), "write `await` before `….ask(…)`"),
    "an address not waited for": (
        lambda turn: decide(turn, "ask_url", "Pay", "https://example.com"),
        "write `await` before `….ask_url(…)`",
    ),
    "a file not waited for": (lambda turn: look_for(turn, "a.txt"), "write `await` before `….exists(…)`"),
    "a question": (lambda turn: turn.allow(5), "a question must be a string"),
    "no options": (lambda turn: turn.choose("Which?", []), "needs options"),
    "equal options": (
        lambda turn: turn.choose("Which?", [PermissionOption("a", name, "allow_once") for name in ("A", "B")]),
        "an id of its own",
    ),
}


@VERSIONS
@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.requirement("P6")
async def test_a_mistake_raises_at_its_line_and_ends_the_turn(name: str, version: int, place: Path) -> None:
    mistake, message = MISTAKES[name]
    agent, raised = Agent("mistaken"), cast("list[UsageError]", [])

    @agent.prompt
    async def answer(turn: Turn) -> None:
        if turn.text != "go":
            return await turn.say("fine")
        await turn.say("so far")
        try:
            await mistake(turn)
        except UsageError as e:
            raised.append(e)
            raise
        return None

    async with serving(agent, place) as host:
        client = await host.client(version)
        session = await client.new()
        if version == 1:
            with pytest.raises(Refused) as refused:
                await client.prompt(session, "go")
            assert refused.value.code == -32603
        else:
            assert await client.prompt(session, "go") == "error"
            assert "error" in client.updates("state_update")[-1]
        assert message in str(raised[0])
        live = conversation(it for it in client.updates() if it["sessionUpdate"] not in ("state_update", "notice"))
        assert await client.prompt(session, "again") == "end_turn"
        told = [it for it in conversation(await client.replayed(session)) if it["sessionUpdate"] == "agent_message"]
        assert [it["content"][0]["text"] for it in told] == ["so far", "fine"]
        assert any(it["content"] == told[0]["content"] for it in live if it["sessionUpdate"] == "agent_message")


@VERSIONS
async def test_a_generator_may_yield_only_text(version: int) -> None:
    agent = Agent("yielding")

    @agent.prompt
    async def answer(turn: Turn) -> AsyncIterator[Any]:
        yield "so far"
        yield Chunk()

    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        if version == 1:
            with pytest.raises(Refused):
                await client.prompt(session, "go")
        else:
            assert await client.prompt(session, "go") == "error"
        assert client.said() == "so far"


@VERSIONS
async def test_a_stop_reason_that_a_version_has_no_word_for_is_an_end_there(version: int) -> None:
    agent = Agent("odd")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        turn.stop(cast("Any", "_odd/bored"))

    async with serving(agent) as host:
        client = await host.client(version)
        assert await client.prompt(await client.new(), "go") == ("end_turn" if version == 1 else "_odd/bored")
