"""An author's mistake is told by its cause: at the end, in the author's words, with what to write instead."""

from __future__ import annotations

import copy
import inspect
import logging
import re
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

import holdfast
from holdfast import Agent, Turn
from holdfast.diagnostics.logging_setup import TextLines
from holdfast.errors import RemoteError, UsageError
from holdfast.run.load_agent import load_agent
from holdfast.testing import connect_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


async def fail_in_kit(mistake: Callable[[Turn], Awaitable[object]]) -> str:
    """Return the last line that a test shows when an agent makes a mistake."""
    agent = Agent("mistaken")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await mistake(turn)

    async with connect_to(agent) as client:
        with pytest.raises(RemoteError) as failed:
            await client.say("go")
    assert failed.value.__cause__ is not None
    return str(failed.value).splitlines()[-1]


async def test_a_test_names_the_cause_and_its_line_and_not_a_log_that_is_not_there() -> None:
    async def divide(_turn: Turn) -> None:
        _ = 1 / 0

    line = divide.__code__.co_firstlineno + 1
    assert (
        await fail_in_kit(divide)
        == f"The agent failed at {__file__}:{line}: ZeroDivisionError: division by zero (-32603)"
    )
    assert "text must be a string, not int" in await fail_in_kit(lambda turn: turn.say(5))  # pyright: ignore[reportArgumentType]


async def fill(turn: Any, method: str, *arguments: Any) -> None:
    async with turn.tool("Edit") as call:
        await getattr(call, method)(*arguments)


async def look(_: object) -> None:
    pass


STEP = {"content": "Look", "status": "pending", "priority": "high"}

IN_A_TURN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "status": (
        lambda turn: turn.plan([STEP | {"status": "complete"}]),
        "turn.plan: `status` cannot be 'complete'; did you mean 'completed'? It can be cancelled, completed, in_pro",
    ),
    "priority": (
        lambda turn: turn.plan([("Look", "pending", "urgent")]),
        "turn.plan: `priority` cannot be 'urgent'; it",
    ),
    "step": (lambda turn: turn.plan([5]), 'turn.plan: an entry cannot be 5; write `turn.plan(["Look", ("Act"'),
    "one step": (lambda turn: turn.plan(STEP), "turn.plan: a plan is a list, not dict; write"),
    "no text": (lambda turn: turn.plan([{"status": "pending"}]), "turn.plan: `entries[0].content` is missing"),
    "id": (lambda turn: turn.plan([STEP], id=5), "turn.plan: `id` must be a string"),
    "kind": (
        lambda turn: turn.tool("Look", kind="reed"),
        "turn.tool: `kind` cannot be 'reed'; did you mean 'read'? It",
    ),
    "title": (lambda turn: turn.tool(5), "turn.tool: `title` must be a string, not int"),
    "place": (lambda turn: turn.tool("Look", locations=[5]), 'a location cannot be 5; write `locations=["a.py", ('),
    "input": (lambda turn: turn.tool("Look", input=object()), "turn.tool: what it was given cannot be written as JSON"),
    "argument": (
        lambda turn: turn.tool("Look", knd="read"),
        "'knd'; did you mean 'kind'? Write `async with turn.tool(",
    ),
    "awaited": (lambda turn: turn.message(), "a Message is opened with `async with`, and not awaited"),
    "message": (
        lambda turn: turn.message("hi"),
        "turn.message: too many positional arguments; write `async with turn.m",
    ),
    "diff": (
        lambda turn: turn.diff("a", "b"),
        "there is no `turn.diff`; write `async with turn.tool(…) as call: await c",
    ),
    "new": (
        lambda turn: fill(turn, "diff", "a", "b"),
        "call.diff: missing a required argument: 'new'; write `await call",
    ),
    "texts": (lambda turn: fill(turn, "diff", "a", "b", 5), "call.diff: `old` and `new` are texts"),
    "name": (lambda turn: turn.sya("hi"), "there is no `turn.sya`; did you mean `turn.say`?"),
    "session": (lambda turn: turn.options, "there is no `turn.options`; write `turn.session.options`"),
    "turn": (lambda turn: turn.session.say("hi"), "there is no `session.say`; write `turn.say`"),
    "call": (lambda turn: fill(turn, "txt", "hi"), "there is no `call.txt`; did you mean `call.text`?"),
    "option": (
        lambda turn: turn.session.options["ton"],
        "There is no option 'ton'; did you mean 'tone'? There are: mode",
    ),
    "read": (lambda turn: turn.session.options.tone, 'an option is read by its id; write `session.options["tone"]`'),
    "set": (lambda turn: turn.session.set("mod", "ask"), "There is no option 'mod'; did you mean 'mode'? There are:"),
    "mode": (
        lambda turn: turn.session.set("mode", "aks"),
        "There is no mode 'aks'; did you mean 'ask'? There are: ask",
    ),
    "value": (
        lambda turn: turn.session.set("tone", "wram"),
        "Option 'tone' cannot be 'wram'; did you mean 'warm'? It c",
    ),
    "modes": (lambda turn: turn.session.modes(["a"], default="a"), "session.modes: values are given with their names;"),
    "block": (lambda turn: turn.show({"type": "image"}), "turn.show: image: `data` is missing"),
    "usage": (lambda turn: turn.usage("many", 5), "turn.usage: `used` must be an integer, not str"),
    "severity": (
        lambda turn: turn.notice("x", severity="warn"),
        "turn.notice: `severity` cannot be 'warn'; did you mea",
    ),
    "reason": (lambda turn: turn.stop("refused"), "a turn cannot end with 'refused'; did you mean 'refusal'? It can e"),
}


@pytest.mark.parametrize("name", IN_A_TURN)
@pytest.mark.requirement("P6")
async def test_a_mistake_in_a_turn_ends_in_what_to_write(name: str) -> None:
    mistake, message = IN_A_TURN[name]
    agent = Agent("mistaken")
    agent.modes({"ask": "Ask", "act": "Act"}, default="ask")
    agent.option("tone", name="Tone", values={"warm": "Warm", "dry": "Dry"}, default="warm")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        result = mistake(turn)
        if inspect.isawaitable(result):
            await result

    async with connect_to(agent) as client:
        with pytest.raises(RemoteError) as failed:
            await client.say("go")
    last = str(failed.value).splitlines()[-1]
    assert message in last
    assert not re.search(r"_update|\$\.|Expected", last)  # the author called none of those


async def test_a_plan_may_be_written_as_the_protocol_has_it() -> None:
    agent = Agent("planning")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.plan([STEP, {"content": "Act"}, "Test", ("Ship", "completed")])

    async with connect_to(agent) as client:
        turn = await client.say("go")
    assert turn.plan == [("Look", "pending"), ("Act", "pending"), ("Test", "pending"), ("Ship", "completed")]


DECLARED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no name": (
        lambda agent: agent.option("tone", values={"a": "A"}, default="a"),
        "agent.option: missing a required a",
    ),
    "list": (
        lambda agent: agent.option("tone", name="Tone", values=["warm", "dry"], default="dry"),
        'agent.option: values are given with their names; write `values={"warm": "Warm", "dry": "Dry"}`',
    ),
    "in order": (lambda agent: agent.option("tone", "Tone", {}), 'write `agent.option("tone", name="Tone", values={'),
    "value": (lambda agent: agent.option("tone", name="T", values={"a": 5}, default="a"), "name of the value 'a' must"),
    "modes": (lambda agent: agent.modes(["a", "b"], default="a"), 'write `agent.modes({"a": "A", "b": "B"}, …)`'),
    "default": (lambda agent: agent.modes({"a": "A"}, default="b"), "agent.modes: the default must be 'a', not 'b'"),
    "no default": (
        lambda agent: agent.models({"a": "A"}),
        "agent.models: missing a required argument: 'default'; write",
    ),
    "twice": (
        lambda agent: [agent.modes({"a": "A"}, default="a") for _ in range(2)],
        "agent.modes: the agent has modes already; declare all of them once",
    ),
    "decorator": (lambda agent: agent.promt(look), "there is no `agent.promt`; did you mean `agent.prompt`?"),
    "other": (
        lambda agent: agent.on_message(look),
        "there is no `agent.on_message`; the decorators are @agent.prompt, ",
    ),
    "keyword": (lambda _: Agent("x", accept=["image"]), "'accept'; did you mean 'accepts'? Write `Agent("),  # pyright: ignore[reportCallIssue]
    "accepts": (lambda _: Agent("x", accepts=["images"]), "cannot accept 'images'; did you mean 'image'?"),  # pyright: ignore[reportArgumentType]
    "text": (lambda _: Agent("x", accepts=cast("Any", "image")), "write `accepts=['image']`"),
    "module": (lambda _: getattr(holdfast, "Agnet"), "has no attribute 'Agnet'; did you mean 'Agent'?"),  # noqa: B009
}


@pytest.mark.parametrize("name", DECLARED)
def test_a_mistake_in_a_declaration_ends_in_what_to_write(name: str) -> None:
    declare, message = DECLARED[name]
    with pytest.raises((UsageError, AttributeError)) as told:
        declare(Agent("mistaken"))
    assert message in str(told.value).splitlines()[-1]


def test_a_name_that_is_not_there_is_still_not_there_to_programs_that_look() -> None:
    agent = Agent("plain")
    assert not hasattr(agent, "promt") and not hasattr(agent, "__deepcopy__")
    assert copy.copy(agent).name == "plain"


def test_a_name_that_holdfast_does_not_export_is_told_where_it_is_imported(tmp_path: Path) -> None:
    (tmp_path / "imports_agnet.py").write_text("from holdfast import Agnet\n")
    with pytest.raises(UsageError, match=r"imports_agnet.py:1: cannot import name 'Agnet' .*; did you mean 'Agent'\?$"):
        load_agent(str(tmp_path / "imports_agnet.py"))


async def test_waiting_for_what_is_not_said_tells_what_is_waited_for_and_what_came() -> None:
    agent = Agent("working")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        async with turn.tool("Look"):
            await turn.say("Looked.")
        if turn.text == "fail":
            raise ValueError("boom")

    async with connect_to(agent) as client:
        with pytest.raises(AssertionError) as missing:
            await client.begin("go").until("tool_call")
        told = str(missing.value)
        assert "`until` waits for text that the agent says, and the turn ended without 'tool_call'" in told
        assert "the agent said 'Looked.', and its updates were: " in told and "tool_call_update" in told
        assert told.endswith("kinds of updates are in `turn.updates`")
        with pytest.raises(AssertionError, match=r"the turn failed .*boom.* without 'never'") as failed:
            await client.begin("fail").until("never")
        assert isinstance(failed.value.__cause__, RemoteError)


@pytest.mark.parametrize("protocol", [1, 2])
async def test_client_and_author_set_options_by_one_name(protocol: Literal[1, 2]) -> None:
    agent = Agent("set")
    agent.option("style", name="Style", values={"ask": "Ask", "act": "Act"}, default="ask", category="mode")
    agent.option("tone", name="Tone", values={"warm": "Warm", "dry": "Dry"}, default="warm")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.session.set("mode", "ask")
        await turn.session.set("tone", "warm")

    async with connect_to(agent, protocol=protocol) as client:
        session = client.session
        await session.set("mode", "act")
        await session.set("tone", "dry")
        assert (session.mode, session.options["tone"]["currentValue"]) == ("act", "dry")
        await client.say("go")
        assert (session.mode, session.options["tone"]["currentValue"]) == ("ask", "warm")
        with pytest.raises(UsageError, match="this session has no models to choose from"):
            await session.set("model", "large")
        with pytest.raises(RemoteError, match="no mode 'atc'; did you mean 'act'"):
            await session.set("mode", "atc")
        with pytest.raises(RemoteError, match="no option 'ton'; did you mean 'tone'"):
            await session.set("ton", "dry")


@pytest.mark.parametrize(("whole", "frames"), [(False, False), (True, True)])
async def test_only_a_log_that_asks_for_it_has_the_frames_of_holdfast(whole: bool, frames: bool) -> None:
    with pytest.raises(UsageError) as raised:
        Agent("mistaken").prompt(print)
    failed = raised.value
    record = logging.LogRecord("x", logging.ERROR, "", 0, "", None, (type(failed), failed, failed.__traceback__))
    text = TextLines("%(message)s", whole=whole).format(record)
    assert ("agent/agent.py" in text) is frames
    assert frames or text.splitlines()[-1].startswith("holdfast.errors.UsageError: a prompt handler must be")
