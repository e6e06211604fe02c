"""`session.state` refuses what cannot be stored in the line of the author that puts it there."""

from __future__ import annotations

import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import Agent
from holdfast.errors import RemoteError, UsageError
from holdfast.testing import connect_to

if TYPE_CHECKING:
    from holdfast import Turn

agent = Agent("forgetful")


@agent.prompt
async def answer(turn: Turn) -> None:
    state: dict[str, Any] = turn.session.state
    match turn.text:
        case "put":
            state["when"] = {"first": [object()]}
        case "set default":
            state.setdefault("when", object())
        case "update":
            state.update({"name": "Ada"}, when=object())
        case "merge":
            state |= {"when": object()}
        case "key":
            state[3] = "three"  # pyright: ignore[reportArgumentType]
        case "date":
            state["when"] = datetime(2026, 1, 1, tzinfo=UTC)
        case "set":
            state.update(name="Ada", seen={1, 2})
        case "numbers as keys":
            state.setdefault("scores", {1: 2})
        case "keep":
            await turn.keep({"seen": [(1, 2)]})
        case "deep tuple":
            pairs: list[object] = []
            state["seen"] = pairs
            pairs.append((1, 2))
        case "deep":
            seen: list[object] = []
            state["seen"] = seen
            seen.append(object())
        case "catch":
            state["name"] = "Ada"
            with pytest.raises(UsageError):
                state["when"] = object()
        case _:
            state |= {"turns": state.setdefault("turns", 0) + 1}
            state.update(last=turn.text)
    await turn.say(str(dict(state)))


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("put", "session.state['when']['first'][0] is a object, which is no JSON value"),
        ("set default", "session.state['when'] is a object, which is no JSON value"),
        ("update", "session.state['when'] is a object, which is no JSON value"),
        ("merge", "session.state['when'] is a object, which is no JSON value"),
        ("date", "session.state['when'] is a datetime, which is no JSON value; write .isoformat()"),
        ("set", "session.state['seen'] is a set, which is no JSON value; write list(…)"),
        ("numbers as keys", "session.state['scores'] has the key 1, which is no string; write str(…)"),
        ("key", "session.state has the key 3, which is no string"),
        ("keep", "turn.keep: data['seen'][0] is a tuple, which is no JSON value; write list(…)"),
    ],
)
async def test_what_is_no_json_value_is_refused_in_the_line_that_puts_it_in(prompt: str, why: str) -> None:
    async with connect_to(agent) as client:
        with pytest.raises(RemoteError) as failed:
            await client.say(prompt)
        cause = failed.value.__cause__
        assert isinstance(cause, UsageError) and why in str(cause)
        lines = [frame.line or "" for frame in traceback.extract_tb(cause.__traceback__) if frame.filename == __file__]
        assert lines and ("state" in lines[-1] or "turn.keep" in lines[-1])
        assert (await client.say("hello")).text == "{'turns': 1, 'last': 'hello'}"  # nothing of it is there


@pytest.mark.parametrize(("prompt", "kind"), [("deep", "object"), ("deep tuple", "tuple")])
async def test_what_is_changed_deeper_inside_is_refused_at_the_end_of_the_turn(prompt: str, kind: str) -> None:
    async with connect_to(agent) as client:
        with pytest.raises(RemoteError) as failed:
            await client.say(prompt)
        assert f"session.state['seen'][0] is a {kind}" in str(failed.value.__cause__)
        assert (await client.say("hello")).text == "{'turns': 1, 'last': 'hello'}"


async def test_what_was_put_in_before_a_refusal_that_is_caught_stays() -> None:
    async with connect_to(agent) as client:
        assert (await client.say("catch")).text == "{'name': 'Ada'}"
        assert (await client.say("hello")).text == "{'name': 'Ada', 'turns': 1, 'last': 'hello'}"
        assert (await client.say("again")).text == "{'name': 'Ada', 'turns': 2, 'last': 'again'}"
