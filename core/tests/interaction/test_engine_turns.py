"""Turns: one after the other, each with an end, and with a mark in the history where it did not end well."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from core.tests.support.sessions import (
    CWD,
    Recorder,
    ScriptedAgent,
    begin,
    block,
    ended,
    engine_at,
    history,
    run,
    texts,
    watch,
)
from holdfast.errors import InvalidParams, RequestCancelled, TurnOver
from holdfast.model import TurnEnd

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine import LiveTurn


async def test_a_turn_is_shown_as_running_then_what_is_said_then_idle() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "say a", "tick", "say b", "call c Read", "done c", "notice n")
        assert await ended(turn) == TurnEnd("end_turn")
        assert [it.kind for it in recorder.events] == [
            "user_message", "session_info_update", "state_update", "agent_message_chunk", "agent_message_chunk",
            "tool_call_update", "tool_call_update", "notice", "state_update",
        ]  # fmt: skip
        assert recorder.events[0].key == turn.message_id == await turn.accepted
        assert recorder.states() == ["running", "end_turn"]


@pytest.mark.parametrize("reason", ["max_tokens", "max_turn_requests", "refusal"])
async def test_a_reason_the_agent_gives_is_told_and_marked(reason: str) -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        assert (await run(engine, session, "say a", f"stop {reason}")).reason == reason
        assert recorder.states() == ["running", reason]
        assert (await history(engine, session))[-1] == {"sessionUpdate": "_holdfast/turn_end", "reason": reason}
        assert recorder.history() == await history(engine, session)


@pytest.mark.requirement("C4")
async def test_an_agent_that_fails_ends_the_turn_with_an_error_that_tells_no_internals(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        with caplog.at_level(logging.ERROR):
            end = await run(engine, session, "say before", "call c Read", "fail password 1234", "say never")
        assert end.reason == "error" and end.error
        idle = recorder.updates("state_update")[-1]
        assert idle["stopReason"] == "error"
        assert idle["error"]["message"] == end.error
        assert "secret" in caplog.text  # whoever looks after the agent finds it in the log…
        reference = end.error.rpartition("reference ")[2].rstrip(")")
        assert reference in caplog.text
        told = [repr(it) for it in (end, recorder.updates()[3:], (await history(engine, session))[1:])]
        assert not [it for it in told if "secret" in it or "1234" in it or "Traceback" in it]  # …and nobody else
        assert (await run(engine, session, "say after")).reason == "end_turn"
    async with engine_at(place) as engine:
        stored = await history(engine, await engine.restore(session.id, CWD))
        assert texts(stored) == ["before", "after"]
        assert [it["status"] for it in stored if it["sessionUpdate"] == "tool_call_update"] == ["failed"]
        assert {"sessionUpdate": "_holdfast/turn_end", "reason": "error", "error": end.error} in stored
        assert recorder.history() == stored


@pytest.mark.requirement("C4")
async def test_an_agent_that_cancels_itself_has_failed() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        assert (await run(engine, session, "say a", "give_up")).reason == "error"
        assert (await run(engine, session, "say b")).reason == "end_turn"


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    "update",
    [
        {"sessionUpdate": "tool_call_update"},
        {"sessionUpdate": "tool_call_update", "toolCallId": 3},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": []},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": ["x"]},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": [{"type": "content"}]},
        {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": 3},
        {"sessionUpdate": "agent_message", "messageId": "m", "content": "hello"},
        {"sessionUpdate": "agent_message", "messageId": "m", "content": [{"type": "text", "text": 4}]},
        {"sessionUpdate": "agent_message", "messageId": "m", "_meta": 3},
        {"sessionUpdate": "agent_message_chunk", "messageId": "m"},
        {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": 4}},
        {"sessionUpdate": "terminal_update", "terminalId": "t", "output": "x"},
        {"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": 5},
        {"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": "*"},
        {"sessionUpdate": "plan_update", "plan": 3},
        {"sessionUpdate": "session_info_update", "title": 3},
        {"sessionUpdate": 5},
        {"sessionUpdate": "_x", "bytes": object},
        {},
    ],
)
async def test_saying_what_makes_no_sense_fails_the_turn_and_harms_nothing_that_was_said(update: object) -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        good = "{'sessionUpdate': 'agent_message', 'messageId': 'm', 'content': [{'type': 'text', 'text': 'good'}]}"
        end = await run(
            engine, session, f"emit {good}", "call c Read", f"emit {update!r}".replace("<class 'object'>", "object()")
        )
        assert end.reason == "error"
        stored = await history(engine, session)
        assert texts(stored) == ["good"]
        assert [it["sessionUpdate"] for it in stored[2:]] == ["tool_call_update", "_holdfast/turn_end"]
        assert recorder.history() == stored
        assert (await run(engine, session, "say after")).reason == "end_turn"


async def test_what_the_agent_left_open_is_closed_when_the_turn_ends() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "call a A", "call b B", "done b", "terminal t", "say end")
        stored = {it.get("toolCallId", it.get("terminalId")): it for it in await history(engine, session)}
        assert stored["a"]["status"] == stored["b"]["status"] == "completed"
        assert stored["t"]["exitStatus"] == {}
        assert len([it for it in recorder.events if it.key == "b"]) == 2  # what is closed is not closed again
        assert recorder.history() == await history(engine, session)


@pytest.mark.requirement("C6")
async def test_prompts_wait_their_turn_in_the_order_they_came() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turns = [begin(engine, session, "wait gate", "say 0")]
        await agent.at("gate")
        turns += [begin(engine, session, f"say {n}", "tick 3") for n in range(1, 6)]
        assert not any(it.accepted.done() for it in turns[1:])
        agent.gates["gate"].set()
        for turn in turns:
            await ended(turn)
        assert recorder.said() == "012345"
        assert recorder.states() == ["running", "end_turn"] * 6
        assert [it.key for it in recorder.events if it.kind == "user_message"] == [it.message_id for it in turns]


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("busy", [True, False])
async def test_sixteen_prompts_may_wait_and_the_next_is_refused(*, busy: bool) -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        turns = [begin(engine, session, "wait gate")]
        if busy:
            await agent.at("gate")
        turns += [begin(engine, session, f"say {n}") for n in range(16)]
        with pytest.raises(InvalidParams, match="16 prompts are waiting"):
            begin(engine, session, "say too much")
        agent.gates["gate"].set()
        await ended(turns[0])
        turns.append(begin(engine, session, "say more"))  # there is room again
        for turn in turns:
            assert (await ended(turn)).reason == "end_turn"
        assert len(agent.performed) == 18


@pytest.mark.requirement("C6")
async def test_cancelling_drops_the_prompts_that_wait_and_they_were_never_said() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        running = begin(engine, session, "wait gate")
        await agent.at("gate")
        waiting = [begin(engine, session, f"say {n}") for n in range(3)]
        session.cancel()
        for turn in waiting:
            assert await ended(turn) == TurnEnd("cancelled")
            with pytest.raises(RequestCancelled):
                await turn.accepted
        assert await ended(running) == TurnEnd("cancelled")
        assert await running.accepted
        assert len(texts(await history(engine, session), "user_message")) == 1
        assert (await run(engine, session, "say after")).reason == "end_turn"


async def test_a_prompt_without_content_is_refused() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        with pytest.raises(InvalidParams):
            session.prompt([])
        assert session.queue is None


async def test_nothing_can_be_said_before_a_turn_begins_or_after_it_ended() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        turn = begin(engine, session, "say a")
        for _ in range(2):
            with pytest.raises(TurnOver):
                turn.emit_update({"sessionUpdate": "notice", "severity": "info", "title": "late"})
            await ended(turn)


async def test_whoever_stops_waiting_for_a_turn_does_not_harm_it() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "say a", "wait gate", "say b")

        async def wait_for(turn: LiveTurn) -> None:
            await turn.accepted
            await turn.ended

        waiting = asyncio.ensure_future(wait_for(turn))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        await agent.at("gate")
        waiting = asyncio.ensure_future(wait_for(turn))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        agent.gates["gate"].set()
        await recorder.until(lambda: recorder.states() == ["running", "end_turn"])
        assert (await run(engine, session, "say c")).reason == "end_turn"
        assert texts(await history(engine, session)) == ["ab", "c"]


async def test_a_prompt_keeps_all_its_blocks_as_they_came() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        blocks = [
            block("say a"),
            {"type": "resource_link", "name": "n", "uri": "file:///x", "annotations": {"priority": 0.5}},
            {"type": "_future", "odd": [1, None, {"deep": True}], "_meta": {"k": "v"}},
        ]
        await ended(session.prompt(blocks))
        assert (await history(engine, session))[0]["content"] == blocks


@pytest.mark.requirement("B19")
async def test_what_is_unknown_today_survives_store_restart_and_fork(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "say a", "unknown merry", "say b", "unknown sad")
        seen = recorder.history()
        assert [it["mood"] for it in seen if it["sessionUpdate"] == "_zed/mood"] == ["merry", "sad"]
    async with engine_at(place) as engine:
        session = await engine.restore(session.id, CWD)
        assert await history(engine, session) == seen
        assert await history(engine, await engine.fork(session.id, CWD)) == seen


async def test_a_watcher_that_fails_is_dropped_and_harms_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Recorder):
        def show(self, events: object) -> None:
            raise RuntimeError("broken pipe")

    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        failing = await watch(engine, session, Failing())
        good = await watch(engine, session)
        assert (await run(engine, session, "say a", "tick", "say b")).reason == "end_turn"
        assert good.said() == "ab"
        assert len(failing.drops) == 1
        assert good.history() == await history(engine, session)
        assert "broken pipe" in caplog.text
