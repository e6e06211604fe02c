"""A server that runs as many turns as it can refuses the next, and says so; what runs is not harmed (P7)."""

from __future__ import annotations

import asyncio

import pytest

from core.tests.support.acp import patiently, serving, text
from holdfast import Agent, Turn
from holdfast.engine import EngineLimits

pytestmark = pytest.mark.requirement("P7")


@pytest.mark.parametrize("version", [1, 2])
async def test_a_prompt_beyond_the_limit_of_turns_is_refused_and_can_be_sent_again(version: int) -> None:
    gate, agent = asyncio.Event(), Agent("patient")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.say("begun ")
        if turn.text == "wait":
            await gate.wait()

    async with serving(agent, limits=EngineLimits(turns=2)) as host:
        client = await host.client(version)
        sessions = [await client.new() for _ in range(3)]
        running = [client.begin_prompt(session, "wait") for session in sessions[:2]]
        await client.until(lambda: client.said().count("begun") == 2)
        prompt = {"sessionId": sessions[2], "prompt": [text("go")]}
        for _ in range(2):
            refused = await client.refusal("session/prompt", prompt)
            assert (refused.code, "2 turns run" in refused.message, "again" in refused.message) == (-32600, True, True)
        in_line = client.begin_prompt(sessions[0], "next")  # it begins no turn more than there are
        gate.set()
        for turn in (*running, in_line):
            await patiently(turn)
        await client.until(lambda: client.said().count("begun") == 3)
        await client.until(lambda: host.host.opened is not None and host.host.opened.load()[1] == 0)
        for session in sessions:
            assert await client.prompt(session, "go") == "end_turn"
