"""An agent that is declared the wrong way is told what to write instead, where it is declared."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import Agent, Turn
from holdfast.errors import UsageError
from holdfast.run.load_agent import load_agent
from holdfast.testing import connect_to

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def answer(turn: object) -> None:
    pass


async def forget() -> None:
    pass


MISTAKES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "prompt()": (lambda agent: agent.prompt(), "write `@agent.prompt`"),
    'prompt("x")': (lambda agent: agent.prompt("x"), "write `@agent.prompt`"),
    "on_open()": (lambda agent: agent.on_open(), "write `@agent.on_open`"),
    "on_close()": (lambda agent: agent.on_close(), "write `@agent.on_close`"),
    "on_option()": (lambda agent: agent.on_option(), "write `@agent.on_option`"),
    "logged_in()": (lambda agent: agent.logged_in(), "write `@agent.logged_in`"),
    "logout()": (lambda agent: agent.logout(), "write `@agent.logout`"),
    "command": (lambda agent: agent.command(answer), 'write `@agent.command("name", "what it does")`'),
    'command("x")': (lambda agent: agent.command("x"), "missing a required argument: 'description'; write"),
    "on_request": (lambda agent: agent.on_request(answer), 'write `@agent.on_request("_mine/method")`'),
    "on_notification": (lambda agent: agent.on_notification(answer), 'write `@agent.on_notification("_mine/method")`'),
    "auth": (lambda agent: agent.auth(forget), 'write `@agent.auth("id", name="what people read")`'),
    "no name": (lambda agent: agent.auth("key"), "argument: 'name'; write"),
    "default": (lambda agent: agent.models({"a": "A", "b": "B"}, default="c"), "must be 'a' or 'b', not 'c'"),
    "switch": (lambda agent: agent.option("x", name="X", default="on"), "must be True or False, as it has no values"),
    "list": (lambda agent: agent.modes(["a"], default="a"), 'write `agent.modes({"a": "A"}, …)`'),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_written_the_wrong_way_says_what_to_write(name: str) -> None:
    declare, message = MISTAKES[name]
    with pytest.raises(UsageError) as told:
        declare(Agent("mistaken"))
    assert message in str(told.value)


def test_decorators_return_the_function_as_it_is_however_its_arguments_are_given() -> None:
    agent = Agent("declared")
    assert agent.prompt(handler=answer) is answer
    assert agent.command(name="look", description="Looks")(answer) is answer
    assert agent.logout(forget) is forget


async def test_a_handler_that_says_nothing_is_told_of_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent("silent")
    agent.prompt(answer)

    @agent.command("clear", "Says nothing, on purpose")
    async def clear(turn: Turn) -> None:
        pass

    async with connect_to(agent) as client:
        await client.say("/clear")
        assert "has said nothing" not in caplog.text
        await client.say("hello")
    assert re.search(r"the handler answer \(.*\.py:\d+\) has said nothing; say it with `await turn.say", caplog.text)


def test_of_two_agents_in_a_file_the_one_taken_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "two.py").write_text('from holdfast import Agent\nagent, other = Agent("a"), Agent("b")\n')
    assert load_agent(str(tmp_path / "two.py:other")).name == "b"
    assert caplog.text == ""
    assert load_agent(str(tmp_path / "two.py")).name == "a"
    assert "has the agents agent, other; `agent` is taken" in caplog.text


def test_a_file_that_was_changed_within_a_second_is_loaded_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "changed_at_once.py"
    for name in ("old", "new"):
        file.write_text(f'from holdfast import Agent\nagent = Agent("{name}")\n')
        os.utime(file, (1_000_000_000, 1_000_000_000))
        assert load_agent(str(file)).name == name
