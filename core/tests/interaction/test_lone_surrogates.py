"""Half of a character, which models and cut texts have, is replaced wherever agent code gives it (A2)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from core.tests.support.acp import patiently, serving
from holdfast import Agent, Turn
from holdfast.model import PermissionOption

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from holdfast.store import SessionStore

pytestmark = pytest.mark.requirement("A2")

HALF = "cut \ud83d here"
WHOLE = "cut \ufffd here"


async def set_state(turn: Turn) -> None:
    turn.session.state["seen"] = [HALF]
    turn.session.state["seen"].append(HALF)
    await turn.session.save()


async def offer(turn: Turn) -> None:
    await turn.session.option("tone", name=HALF, values={HALF: HALF, "b": "B"}, default=HALF)
    await turn.session.set("tone", HALF)


async def call(turn: Turn) -> None:
    async with turn.tool(HALF, input={HALF: HALF}, locations=["/tmp/" + HALF]) as tool:
        await tool.text(HALF)
        await tool.diff("/tmp/" + HALF, HALF, "new " + HALF)
        await tool.output({HALF: HALF})


SAID: dict[str, Callable[[Turn], Awaitable[object]]] = {
    "title": lambda turn: turn.session.rename(HALF),
    "text": lambda turn: turn.say(HALF),
    "call": call,
    "plan": lambda turn: turn.plan([HALF]),
    "question": lambda turn: turn.choose(HALF, [PermissionOption("yes", HALF, "allow_once")]),
    "form": lambda turn: turn.ask(HALF, {"name": {"type": "string", "title": HALF}}),
    "option": offer,
    "state": set_state,
    "private": lambda turn: turn.keep({HALF: HALF}),
}


def parrot() -> Agent:
    agent = Agent("parrot")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        if turn.text == "recall":
            await turn.say(json.dumps([turn.session.state.get("seen"), await turn.session.kept()]))
        else:
            await SAID[turn.text](turn)

    return agent


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("what", list(SAID))
async def test_half_a_character_of_agent_code_is_replaced_and_the_turn_goes_on(
    what: str, version: int, tmp_path: Path
) -> None:
    async with serving(parrot(), tmp_path / "s.db") as host:
        client = await host.client(version)
        session = await client.new()
        turn = client.begin_prompt(session, what)
        if what == "question":
            (await client.question()).select("yes")
        await patiently(turn)
        await client.until(lambda: version == 1 or bool(client.ends(session)))
        assert version == 1 or client.states()[-1] == "end_turn"
    async with serving(parrot(), tmp_path / "s.db") as host:  # it is stored so
        client = await host.client(version)
        await client.replayed(session)
        listed: Any = (await client.ask("session/list", {}))["sessions"]
        if what == "title":
            assert [it["title"] for it in listed] == [WHOLE]
        client.forget()
        await client.prompt(session, "recall")
        seen, kept = json.loads(client.said())
        assert seen == ([WHOLE, WHOLE] if what == "state" else None)
        assert kept == ([{WHOLE: WHOLE}] if what == "private" else [])


async def test_half_a_character_of_another_program_is_replaced_in_a_title(tmp_path: Path) -> None:
    async with serving(parrot(), tmp_path / "s.db") as host:
        client = await host.client(1)
        session = await client.new()
        await client.prompt(session, "text")
        assert host.host.opened is not None
        await cast("SessionStore", host.host.opened.store).edit(session, title=HALF)
        assert (await client.ask("session/list", {}))["sessions"][0]["title"] == WHOLE
