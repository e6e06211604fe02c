"""The trace a client names goes with the work it asked for (A12)."""

from __future__ import annotations

import logging

import pytest

from core.tests.support.acp import serving
from holdfast import Agent, Turn
from holdfast.tracing import TraceFilter, traceparent

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

VERSIONS = pytest.mark.parametrize("version", [1, 2])


def tracing_agent(seen: list[str | None]) -> Agent:
    agent = Agent("traced")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        seen.append(traceparent.get())
        if turn.text == "fail":
            raise RuntimeError("no")
        await turn.say(turn.text)

    return agent


@pytest.mark.requirement("A12")
@VERSIONS
@pytest.mark.parametrize(
    ("named", "noted"),
    [(TRACE, TRACE), ("00-ABC-01", None), (f"{TRACE}\nERROR forged", None), (7, None)],
    ids=["well formed", "malformed", "with a line break", "no string"],
)
async def test_the_agent_sees_the_trace_of_its_prompt_if_it_is_well_formed(
    version: int, named: object, noted: str | None
) -> None:
    seen: list[str | None] = []
    async with serving(tracing_agent(seen)) as server:
        client = await server.client(version)
        session = await client.new()
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}], "_meta": {"traceparent": named}}
        await client.ask("session/prompt", params)
        await client.until(lambda: version == 1 or client.ends(session) == 1)
        await client.prompt(session, "without")
    assert seen == [noted, None]


@pytest.mark.requirement("A12")
@VERSIONS
async def test_what_is_logged_about_a_prompt_names_its_trace(version: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(TraceFilter())
    async with serving(tracing_agent([])) as server:
        client = await server.client(version)
        session = await client.new()
        blocks = [{"type": "text", "text": "fail"}]
        asked = client.begin(
            "session/prompt", {"sessionId": session, "prompt": blocks, "_meta": {"traceparent": TRACE}}
        )
        await client.until(lambda: asked.done() and (version == 1 or client.states()[-1:] == ["error"]))
        asked.exception()
    (failed,) = (it for it in caplog.records if it.levelno == logging.ERROR)
    assert failed.__dict__["trace"] == f" trace={TRACE}"
