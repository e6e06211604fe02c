"""The disk is full while a turn streams: a clear error, nothing shown that is not stored; afterwards all is well."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.tests.support.full_disks import disk_at
from core.tests.support.sessions import (
    CWD,
    Recorder,
    ScriptedAgent,
    begin,
    disk_as_of_now,
    ended,
    engine_at,
    history,
    permission,
    run,
    texts,
    watch,
)
from holdfast.errors import StoreError
from holdfast.model import text_event

if TYPE_CHECKING:
    from collections.abc import Generator

    from core.tests.support.full_disks import LimitedDisk
    from holdfast.engine import Engine, LiveSession, LiveTurn
    from holdfast.model import StopReason


@pytest.fixture(params=["limited", "small"])
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[LimitedDisk]:
    with disk_at(tmp_path / "disk", request.param) as it:
        yield it


@pytest.fixture
def limited(tmp_path: Path) -> Generator[LimitedDisk]:
    with disk_at(tmp_path / "disk", "limited") as it:
        yield it


class Streaming(ScriptedAgent):
    """Says numbers, one after the other: many lines in the log, few bytes in the end. Waits at a gate in between."""

    def __init__(self, count: int = 2_000) -> None:
        super().__init__()
        self.count = count

    async def perform(self, turn: LiveTurn) -> StopReason | None:
        if turn.prompt[0]["text"] != "stream":
            return await super().perform(turn)
        self.performed.append("stream")
        turn.emit_update({"sessionUpdate": "tool_call_update", "toolCallId": turn.message_id, "title": "Run"})
        for part in ("before", "after"):
            for n in range(self.count):
                turn.emit(text_event("agent_message_chunk", f"{turn.message_id} {part}", f"{n} "))
                if n % 100 == 0:
                    await turn.drain()
            self.arrived[part].set()
            await self.gates[part].wait()
        return None


def numbers(count: int) -> str:
    return "".join(f"{n} " for n in range(count))


def count_descriptors() -> int:
    place = Path("/proc/self/fd")
    return len(list(place.iterdir())) if place.exists() else 0


async def much(engine: Engine, session: LiveSession) -> None:
    """Let the database's own log grow, so that it must grow to take more."""
    for _ in range(6):
        await run(engine, session, f"say {'x' * 20_000}")


async def is_stored(disk: LimitedDisk, session: LiveSession, shown: Recorder, to: Path) -> None:
    """Make sure that all that was shown is on the disk as it is now."""
    disk.free()
    left = disk_as_of_now(disk.place, to)
    seen = [it for it in shown.history() if it["sessionUpdate"] != "_holdfast/turn_end"]
    async with engine_at(left) as engine:
        stored = await history(engine, await engine.restore(session.id, CWD))
    for ours, theirs in zip(seen, stored, strict=False):
        if "messageId" in ours:
            assert "".join(it["text"] for it in theirs["content"]).startswith(
                "".join(it["text"] for it in ours["content"])
            )
        else:
            assert ours["toolCallId"] == theirs["toolCallId"]
    assert len(seen) <= len(stored)


async def test_when_only_the_log_is_full_the_turn_fails_and_is_stored_whole(limited: LimitedDisk) -> None:
    agent = Streaming(8_000)
    agent.gates["after"].set()
    async with engine_at(limited.place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "stream")
        await agent.at("before")
        await recorder.until(lambda: recorder.said() == numbers(8_000))
        limited.fill(limited.log())
        agent.gates["before"].set()
        end = await ended(turn)
        assert end.reason == "error" and end.error and "cannot be written" in end.error
        stored = await history(engine, session)
        assert recorder.history() == stored
        assert texts(stored)[0] == numbers(8_000)
        assert numbers(8_000).startswith(texts(stored)[1])  # said before anybody knew, and stored after all
        assert [it["status"] for it in stored if "toolCallId" in it] == ["failed"]
        assert stored[-1] == {"sessionUpdate": "_holdfast/turn_end", "reason": "error", "error": end.error}
        assert recorder.states() == ["running", "error"]
        assert (await run(engine, session, "say on")).reason == "end_turn"  # a new log has room again


async def test_when_only_the_database_is_full_the_turn_is_sealed_before_the_next(limited: LimitedDisk) -> None:
    agent = ScriptedAgent()
    async with engine_at(limited.place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await much(engine, session)
        turn = begin(engine, session, "say a", "wait gate", "call c Read", "say b")
        await agent.at("gate")
        limited.fill(limited.wal)
        agent.gates["gate"].set()
        end = await ended(turn)
        assert end.reason == "error" and end.error
        assert recorder.said().endswith("ab")
        assert recorder.states()[-1] == "error"
        limited.free()
        assert (await run(engine, session, "say c")).reason == "end_turn"
        stored = await history(engine, session)
        assert texts(stored)[6:] == ["a", "b", "c"]
        assert recorder.history() == stored
        assert {"sessionUpdate": "_holdfast/turn_end", "reason": "error", "error": end.error} in stored
        assert limited.logs() == []


async def test_when_nothing_can_be_written_nothing_is_shown_that_is_not_stored(
    disk: LimitedDisk, tmp_path: Path
) -> None:
    agent = Streaming()
    async with engine_at(disk.place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await much(engine, session)
        turn = begin(engine, session, "stream")
        await agent.at("before")
        disk.fill()
        agent.gates["before"].set()
        end = await ended(turn)
        assert end.reason == "error" and end.error
        assert recorder.states()[-1] == "error"
        assert numbers(2_000) in recorder.said()
        await is_stored(disk, session, recorder, tmp_path / "left")


async def test_while_nothing_can_be_written_everything_is_refused_clearly_and_afterwards_works(
    disk: LimitedDisk,
) -> None:
    agent = Streaming()
    async with engine_at(disk.place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await much(engine, session)
        turn = begin(engine, session, "stream")
        await agent.at("before")
        disk.fill()
        agent.gates["before"].set()
        await ended(turn)
        seen = len(recorder.events)
        for refused in (engine.restore(session.id, CWD), engine.fork(session.id, CWD), engine.create(CWD)):
            with pytest.raises(StoreError, match=r"space|written"):
                await refused
        with pytest.raises(StoreError):
            await history(engine, session)  # a part of it is not stored
        with pytest.raises(StoreError):
            await session.set_option("units", "f")
        with pytest.raises(StoreError):
            await session.rename("T")
        prompt = begin(engine, session, "say refused")
        assert (await ended(prompt)).reason == "error"
        with pytest.raises(StoreError):
            await prompt.accepted
        assert session.state.options == {} and session.title and session.title != "T"
        assert len(recorder.events) == seen
        assert (await engine.list()).sessions[0].id == session.id  # reading goes on

        disk.free()
        again = await engine.restore(session.id, CWD)
        assert again is session
        stored = await history(engine, session)
        assert recorder.history() == stored
        assert [it["status"] for it in stored if "toolCallId" in it] == ["failed"]
        assert (await run(engine, session, "say on")).reason == "end_turn"
        assert texts(await history(engine, session))[-1] == "on"
        assert recorder.history() == await history(engine, session)
    async with engine_at(disk.place) as engine:
        session = await engine.restore(session.id, CWD)
        assert recorder.history() == await history(engine, session)
        assert not session.state.interrupted


@pytest.mark.parametrize("letting_go", ["close", "shut down", "delete"])
async def test_a_session_that_is_let_go_while_nothing_can_be_written_comes_back(
    disk: LimitedDisk, letting_go: str
) -> None:
    agent = Streaming()
    async with engine_at(disk.place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await much(engine, session)
        turn = begin(engine, session, "stream")
        await agent.at("before")
        disk.fill()
        agent.gates["before"].set()
        await ended(turn)
        match letting_go:
            case "delete":
                with pytest.raises(StoreError):
                    await engine.delete(session.id)
                disk.free()
                await engine.delete(session.id)
                assert (await engine.list()).sessions == ()
                assert disk.logs() == []
                return
            case "close":
                await engine.close(session.id)
                disk.free()
                said = texts(await history(engine, await engine.restore(session.id, CWD)))
            case _:
                said = []
    disk.free()
    async with engine_at(disk.place) as engine:
        stored = await history(engine, await engine.restore(session.id, CWD))
        assert texts(stored)[6].startswith(numbers(2_000))
        assert "".join(texts(stored)).startswith(recorder.said())
        assert said in ([], texts(stored))


async def test_a_prompt_that_cannot_be_stored_is_refused_and_leaves_no_trace(disk: LimitedDisk) -> None:
    agent = ScriptedAgent()
    async with engine_at(disk.place, agent) as engine:
        other, session = await engine.create(CWD), await engine.create(CWD)
        recorder = await watch(engine, session)
        await much(engine, other)
        disk.fill(disk.wal)
        descriptors = count_descriptors()
        for _ in range(30):
            refused = begin(engine, session, "say first")
            end = await ended(refused)
            assert end.reason == "error" and end.error
            with pytest.raises(StoreError):
                await refused.accepted
        assert count_descriptors() < descriptors + 5
        assert recorder.events == []
        assert session.title is None
        disk.free()
        assert (await run(engine, session, "say second")).reason == "end_turn"
        assert session.title == "say second"
        assert agent.performed[-1] == "say second" and "say first" not in agent.performed
        assert recorder.history() == await history(engine, session)


class Asking(ScriptedAgent):
    """Says a lot, then asks."""

    async def perform(self, turn: LiveTurn) -> StopReason | None:
        for n in range(1_500):
            turn.emit(text_event("agent_message_chunk", turn.message_id, f"{n} "))
        self.told.append(("answer", await turn.ask(permission("write"))))
        return None


async def test_an_answer_that_cannot_be_stored_is_not_acted_upon(limited: LimitedDisk) -> None:
    agent = Asking()
    async with engine_at(limited.place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "x")
        put = await recorder.question()
        limited.fill(limited.log())
        put.answer("allow_always")
        assert (await ended(turn)).reason == "error"
        assert agent.told == [("opened", session.id)]
        limited.free()
        assert session.state.permissions == {}
        turn = begin(engine, session, "x")
        (await recorder.question(2)).answer("allow_always")
        await ended(turn)
        assert agent.told[-1] == ("answer", "allow_always")
        assert session.state.permissions == {"write": True}
