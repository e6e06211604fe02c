"""Turns as a client sees them: their updates, their ends, and what becomes of them when nobody looks any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import holdfast
from core.tests.support.acp import Gates
from core.tests.support.clients import said
from core.tests.support.links import PATIENCE
from holdfast import Agent
from holdfast.errors import ConnectionLost, RemoteError, UsageError

if TYPE_CHECKING:
    from holdfast import ClientSession, Turn
    from holdfast.client.handshake import ProtocolChoice
    from holdfast.model import Permission

versions = pytest.mark.parametrize("protocol", [1, 2])
pytestmark = versions


class Stage:
    """An agent whose turns wait where a test wants them to, and what became of them."""

    def __init__(self) -> None:
        self.agent = Agent("stage", version="1")
        self.gates = Gates()
        self.cancelled: list[str] = []
        self.agent.prompt(self.perform)

    async def perform(self, turn: Turn) -> None:
        await turn.say(f"{turn.text}: ")
        try:
            if turn.text == "wait":
                await self.gates.wait()
            elif turn.text == "ask":
                await turn.say(str(await turn.allow("May I?")))
            elif turn.text == "two":
                async with turn.tool("Between"):
                    pass
                await turn.say("messages")
            elif turn.text == "refuse":
                turn.stop("refusal")
        except asyncio.CancelledError:
            self.cancelled.append(turn.text)
            raise
        await turn.say("done")


@pytest.mark.requirement("C2", "C3")
async def test_the_updates_of_a_turn_begin_with_the_prompt_and_end_with_its_end(protocol: ProtocolChoice) -> None:
    async with holdfast.connect(Stage().agent, protocol=protocol) as agent:
        session = await agent.new_session()
        turn = session.prompt("hello")
        assert turn.stop_reason is None and not session.running
        updates = [update async for update in turn]
        kinds = [update.kind for update in updates if update.kind != "session_info_update"]
        assert kinds == ["user_message", "state_update", "agent_message_chunk", "agent_message_chunk", "state_update"]
        assert updates[-1].update() == {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}
        assert turn.stop_reason == "end_turn" and not session.running
        with pytest.raises(StopAsyncIteration):
            await anext(turn)


async def test_a_turn_can_be_awaited_or_asked_for_its_text(protocol: ProtocolChoice) -> None:
    async with holdfast.connect(Stage().agent, protocol=protocol) as agent:
        session = await agent.new_session()
        assert await session.prompt("refuse") == "refusal"
        assert await session.ask_text("two") == "two: \n\nmessagesdone"
        blocks = [{"type": "text", "text": "blo"}, {"type": "text", "text": "cks"}]
        assert await session.ask_text(blocks) == "blo\ncks: done"
        assert said(session.history)[-2][0] == "user_message"


@pytest.mark.requirement("C1")
async def test_a_prompt_that_is_refused_raises(protocol: ProtocolChoice) -> None:
    async with holdfast.connect(Stage().agent, protocol=protocol) as agent:
        session = await agent.new_session()
        with pytest.raises(RemoteError) as caught:
            await session.prompt([])
        assert caught.value.code == -32602
        assert not session.running
        assert await session.ask_text("fine") == "fine: done"


async def test_a_prompt_that_cannot_be_sent_raises(protocol: ProtocolChoice) -> None:
    async with holdfast.connect(Stage().agent, protocol=protocol) as agent:
        session = await agent.new_session()
        with pytest.raises(TypeError):
            await session.prompt([{"type": "text", "text": object()}])
        assert await session.ask_text("fine") == "fine: done"


@pytest.mark.requirement("C5")
async def test_leaving_the_loop_cancels_the_turn_and_the_next_one_waits_for_that(protocol: ProtocolChoice) -> None:
    stage = Stage()
    async with holdfast.connect(stage.agent, protocol=protocol) as agent:
        session = await agent.new_session()
        async for update in session.prompt("wait"):
            if update.kind == "agent_message_chunk":
                await stage.gates.reached()
                break
        assert await session.ask_text("next") == "next: done"
        assert stage.cancelled == ["wait"]


@pytest.mark.requirement("C5")
async def test_so_does_an_exception_in_the_loop(protocol: ProtocolChoice) -> None:
    stage = Stage()
    async with holdfast.connect(stage.agent, protocol=protocol) as agent:
        session = await agent.new_session()

        async def fail() -> None:
            async for update in session.prompt("wait"):
                if update.kind == "agent_message_chunk":
                    await stage.gates.reached()
                    raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        assert await session.ask_text("next") == "next: done"
        assert stage.cancelled == ["wait"]


@pytest.mark.requirement("C5")
async def test_at_the_end_of_a_block_the_turn_has_ended(protocol: ProtocolChoice) -> None:
    stage = Stage()
    async with holdfast.connect(stage.agent, protocol=protocol) as agent:
        session = await agent.new_session()
        async with session.prompt("wait") as turn:
            await stage.gates.reached()
        assert turn.stop_reason == "cancelled"
        assert stage.cancelled == ["wait"]
        assert not session.running


@pytest.mark.requirement("C5")
async def test_a_task_that_is_cancelled_cancels_its_turn_and_waits_for_it(protocol: ProtocolChoice) -> None:
    stage = Stage()
    async with holdfast.connect(stage.agent, protocol=protocol) as agent:
        session = await agent.new_session()

        async def prompt_until_late() -> None:
            async with asyncio.timeout(None) as limit:
                late = asyncio.create_task(stage.gates.reached())
                late.add_done_callback(lambda _: limit.reschedule(0))
                await session.prompt("wait")

        with pytest.raises(TimeoutError):
            await prompt_until_late()
        assert stage.cancelled == ["wait"]
        assert not session.running
        asking = asyncio.create_task(session.ask_text("wait"))
        async for update in session.updates():
            if update.text is not None:
                break
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert stage.cancelled == ["wait", "wait"]


@pytest.mark.requirement("C5")
async def test_somebody_else_can_cancel_it(protocol: ProtocolChoice) -> None:
    stage = Stage()
    async with holdfast.connect(stage.agent, protocol=protocol) as agent:
        session = await agent.new_session()
        await session.cancel()  # nothing to cancel
        asking = asyncio.create_task(session.ask_text("wait"))
        await stage.gates.reached()
        await session.cancel()
        assert not session.running
        assert await asking == "wait: "


@pytest.mark.requirement("C6")
async def test_a_cancel_right_behind_a_prompt_reaches_the_agent_behind_it(protocol: ProtocolChoice) -> None:
    stage = Stage()
    async with holdfast.connect(stage.agent, protocol=protocol) as agent:
        session = await agent.new_session()
        for _ in range(50):
            async with session.prompt("wait") as turn:
                await session.cancel()
            assert turn.stop_reason == "cancelled"


async def test_one_turn_at_a_time(protocol: ProtocolChoice) -> None:
    stage = Stage()
    async with holdfast.connect(stage.agent, protocol=protocol) as agent:
        session, other = await agent.new_session(), await agent.new_session()
        async with session.prompt("wait") as turn:
            await stage.gates.reached()
            with pytest.raises(UsageError, match="a turn of this session is running"):
                await session.prompt("next")
            assert await other.ask_text("meanwhile") == "meanwhile: done"
            stage.gates.open()
            assert [update async for update in turn][-1].update()["stopReason"] == "end_turn"


@pytest.mark.requirement("C5", "C8")
async def test_a_question_is_withdrawn_with_its_turn(protocol: ProtocolChoice) -> None:
    stage = Stage()
    put = asyncio.Event()
    withdrawn = asyncio.Event()

    async def never(_: ClientSession, question: Permission) -> bool:
        assert question.title == "May I?"
        put.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            withdrawn.set()
            raise
        return True

    async with holdfast.connect(stage.agent, protocol=protocol, permissions=never) as agent:
        session = await agent.new_session()
        async with asyncio.timeout(PATIENCE):
            async with session.prompt("ask") as turn:
                await put.wait()
            await withdrawn.wait()
        assert turn.stop_reason == "cancelled"
        assert await session.ask_text("next") == "next: done"


async def test_who_watches_sees_turns_and_what_is_outside_of_them(protocol: ProtocolChoice) -> None:
    agent_of_options = Stage().agent
    agent_of_options.modes({"a": "A", "b": "B"}, default="a")
    async with holdfast.connect(agent_of_options, protocol=protocol) as agent:
        session = await agent.new_session()
        watching, other = session.updates(), session.updates()
        await session.set("mode", "b")
        await session.prompt("hello")
        await session.close()
        seen = [update async for update in watching]
        kinds = [update.kind for update in seen]
        assert kinds.index("config_option_update") < kinds.index("user_message")
        assert kinds[-1] == "state_update"
        assert [update async for update in other] == seen
        assert [update async for update in session.updates()] == []


@pytest.mark.requirement("B13")
async def test_a_session_that_is_closed_ends_its_turn(protocol: ProtocolChoice) -> None:
    stage = Stage()
    async with holdfast.connect(stage.agent, protocol=protocol) as agent:
        session = await agent.new_session()
        asking: asyncio.Task[Any] = asyncio.create_task(session.prompt("wait")._run_to_end())  # pyright: ignore[reportPrivateUsage]
        await stage.gates.reached()
        await session.close()
        assert await asking == "cancelled"
        assert stage.cancelled == ["wait"]
        await session.close()
        with pytest.raises(UsageError, match="is closed; load or resume it to go on"):
            await session.ask_text("more")


async def test_leaving_the_connection_in_mid_turn_leaves_nothing_behind(protocol: ProtocolChoice) -> None:
    stage = Stage()
    async with holdfast.connect(stage.agent, protocol=protocol) as agent:
        session = await agent.new_session()
        turn = session.prompt("wait")
        await anext(turn)
        watching = session.updates()
        await stage.gates.reached()
    assert stage.cancelled == ["wait"]
    with pytest.raises(ConnectionLost):
        async for _ in turn:
            pass
    with pytest.raises(ConnectionLost):
        async for _ in watching:
            pass


async def test_cancelled_at_any_moment_it_leaves_nothing_behind(protocol: ProtocolChoice) -> None:
    """The runner of these tests fails the one that leaves a task."""
    stage = Stage()

    async def story() -> None:
        async with holdfast.connect(stage.agent, protocol=protocol, permissions="allow") as agent:
            session = await agent.new_session()
            await session.ask_text("ask")
            async for update in session.prompt("two"):
                if update.kind == "tool_call_update":
                    break
            loaded = await agent.load(session.id)
            await loaded.prompt("hello")
            await loaded.close()

    for ticks in range(0, 10_000, 3):
        telling = asyncio.create_task(story())
        for _ in range(ticks):
            await asyncio.sleep(0)
        finished = telling.done()
        telling.cancel()
        async with asyncio.timeout(PATIENCE):
            (outcome,) = await asyncio.gather(telling, return_exceptions=True)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, (ticks, left)
        if finished:
            assert outcome is None
            assert ticks > 60
            return
        assert isinstance(outcome, asyncio.CancelledError)
    raise AssertionError("the story does not end")
