"""Tests of the agent in `examples/weather.py`: `pytest examples/tests`. The page `docs/testing.md` explains them."""

import asyncio
import sys
from pathlib import Path

import pytest

from holdfast import Agent, Turn
from holdfast.errors import RemoteError
from holdfast.testing import assert_valid_wire

sys.path.insert(0, str(Path(__file__).parent.parent))

from weather import agent


async def test_it_reads_the_thermometer(connect_to):
    async with connect_to(agent) as client:
        turn = await client.say("How warm is it?")

    assert turn.text == "Reading the thermometer… \n\nIt is 21 °C."
    assert turn.stop_reason == "end_turn"
    (call,) = turn.tool_calls
    assert (call.title, call.kind, call.status, call.text) == ("Read thermometer", "read", "completed", "21")


@pytest.mark.parametrize("allowed", [True, False])
async def test_it_writes_a_report_only_if_it_may(connect_to, tmp_path, allowed):
    async with connect_to(agent, permissions=[allowed]) as client:
        await client.session.set("mode", "act")
        await client.say("How warm is it?")

    assert [question.title for question in client.asked] == ["Write report.txt?"]
    assert (tmp_path / "report.txt").exists() == allowed


async def test_the_whole_conversation(connect_to, compare_transcript):
    async with connect_to(agent, permissions={"Write report.txt?": "allow_always"}) as client:
        await client.say("How warm is it?")
        await client.session.set("mode", "act")
        await client.say("And now?")

        compare_transcript(client)
        assert_valid_wire(client)


patient = Agent("patient")


@patient.prompt
async def answer(turn: Turn) -> None:
    """Wait for a thermometer that never answers, or ask for a name and fail."""
    if turn.text == "fail":
        raise ValueError("no thermometer")
    if form := await turn.ask("Who asks?", {"name": {"type": "string"}}):
        await turn.say(f"Hello, {form['name']}. ")
    try:
        async with asyncio.timeout(3600):
            await asyncio.Event().wait()
    except TimeoutError:
        await turn.say("It did not answer for an hour.")


async def test_an_hour_passes_at_once(connect_to, agent_clock):
    async with connect_to(patient, forms=[{"name": "Ada"}]) as client:
        turn = client.begin("How warm is it?")
        await turn.until("Hello, Ada.")
        await agent_clock.advance(3599)
        assert "an hour" not in turn.text
        await agent_clock.advance(2)
        assert (await turn).text == "Hello, Ada. It did not answer for an hour."


async def test_a_failure_has_its_cause(connect_to):
    async with connect_to(patient) as client:
        with pytest.raises(RemoteError) as failed:
            await client.say("fail")
    assert isinstance(failed.value.__cause__, ValueError)


async def test_it_can_be_cancelled_and_goes_on_in_another_process(connect_to, tmp_path):
    store = tmp_path / "sessions.db"
    async with connect_to(patient, forms=[None], store=store) as client:
        turn = client.begin("How warm is it?")
        assert (await turn.cancel()).stop_reason == "cancelled"
    async with connect_to(patient, store=store) as later:
        await later.load(client.session.id)
        assert later.transcript().startswith("> How warm is it?\n")
