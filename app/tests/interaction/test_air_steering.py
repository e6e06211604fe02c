"""What a client steers a running turn with, through `holdfast wrap`, as JetBrains AIR does (G3, P1)."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.interaction.test_wrap_command import started
from app.tests.support.wrapping import conversation, wrapping
from core.tests.doubles.air import Air
from core.tests.support.acp import Refused, patiently, text
from holdfast.testing.process_tree import descendants

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.support.acp import Client

V2 = {1: (), 2: ("v2",)}


def told(client: Client) -> list[tuple[str, str]]:
    """Return who said what, in order, as a client has it that has heard these updates."""
    entries = conversation(client.version, client.updates())
    who = ("user_message", "agent_message")
    found = [(it["sessionUpdate"], it["content"]) for it in entries if it["sessionUpdate"] in who]
    return [(kind, "".join(block.get("text", "") for block in content)) for kind, content in found]


async def past(client: Client, session: str, cwd: str) -> list[tuple[str, str]]:
    """Return who said what, as a replay tells it."""
    client.forget()
    if client.version == 1:
        await client.load(session, cwd)
    else:
        await client.resume(session, cwd, replayFrom={"type": "start"})
    return told(client)


STORY = [
    ("user_message", "wait"),
    ("agent_message", "waiting "),
    ("user_message", "use tabs"),
    ("agent_message", "Aye: use tabs. "),
    ("user_message", "enough"),
    ("agent_message", "Aye: enough. "),
]


@pytest.mark.requirement("P1", "G3", "F4", "B8")
@pytest.mark.parametrize("apart", [False, True], ids=["one process", "two processes"])
@pytest.mark.parametrize("habits", [(), ("answers late",), ("echoes", "answers late"), ("echoes", "no message ids")])
@pytest.mark.parametrize("version", [1, 2])
async def test_steered_words_stand_where_the_agent_took_them_for_all_clients_and_later(
    tmp_path: Path, version: int, habits: tuple[str, ...], *, apart: bool
) -> None:
    cwd, habits = str(tmp_path), (*habits, *V2[version])
    late = "answers late" in habits and "echoes" not in habits and version == 1
    async with wrapping(tmp_path, *habits) as wrapped, wrapping(tmp_path, *habits) as other:
        air = await Air(wrapped.connect(version)).start()
        session = await air.client.new(cwd)
        await air.client.prompt(session, "say ready")
        watcher = await (other if apart else wrapped).client(3 - version)
        await past(watcher, session, cwd)
        watcher.forget()
        air.client.forget()
        turn = air.client.begin_prompt(session, "wait")
        await air.client.until(lambda: "waiting" in air.client.said())
        assert await air.steer(session, "use tabs") == "injected"
        assert await air.steer(session, "enough") == "injected"
        await patiently(turn)
        await watcher.until(lambda: "Aye: enough" in watcher.said())
        if version == 1:  # what it says itself is not repeated to it
            assert air.client.said("user_message") == ""
        if late:  # nobody knows where these agents took it; no word of it is lost
            assert sorted(word for who, word in told(watcher) if who == "user_message") == [
                "enough",
                "use tabs",
                "wait",
            ]
        else:
            assert told(watcher) == STORY
        seen = told(watcher)
        assert (await past(air.client, session, cwd))[2:] == seen
        assert await air.steer(session, "too early") == "promptRequired"
    async with wrapping(tmp_path, *habits) as wrapped:
        client = await wrapped.client(version)
        assert (await past(client, session, cwd))[2:] == seen


@pytest.mark.requirement("P1", "P2", "G5", "G6")
@pytest.mark.parametrize("version", [1, 2])
async def test_an_acknowledged_steer_survives_the_death_of_everything(tmp_path: Path, version: int) -> None:
    cwd, habits = str(tmp_path), V2[version]
    async with started(tmp_path, *habits, version=version) as (client, transport):
        air = Air(client)
        session = await client.new(cwd)
        client.begin_prompt(session, "wait")
        await client.until(lambda: "waiting" in client.said())
        assert await air.steer(session, "remember heron") == "injected"
        for pid in (transport.pid, *descendants(transport.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await transport.wait()
    async with started(tmp_path, *habits, version=version) as (client, _):
        assert (await past(client, session, cwd))[:3] == [
            ("user_message", "wait"), ("agent_message", "waiting "), ("user_message", "remember heron"),
        ]  # fmt: skip
        client.forget()
        await client.prompt(session, "recall")
        assert "heron" in client.said()


@pytest.mark.requirement("G4", "G5")
@pytest.mark.parametrize("habits", [(), ("no load",), ("no resume",)])
async def test_an_agent_that_was_steered_is_told_nothing_again_when_it_is_back(
    tmp_path: Path, habits: tuple[str, ...]
) -> None:
    cwd = str(tmp_path)
    async with wrapping(tmp_path, *habits) as wrapped:
        air = await Air(wrapped.connect()).start()
        session = await air.client.new(cwd)
        turn = air.client.begin_prompt(session, "wait")
        await air.client.until(lambda: "waiting" in air.client.said())
        await air.steer(session, "enough")
        await patiently(turn)
    async with wrapping(tmp_path, *habits) as wrapped:
        client = await wrapped.client()
        await client.load(session, cwd)
        client.forget()
        await client.prompt(session, "seeds")
        assert client.said() == "0"


@pytest.mark.requirement("G3", "G8")
async def test_words_that_no_turn_takes_begin_one_that_is_ours(tmp_path: Path) -> None:
    cwd = str(tmp_path)
    async with wrapping(tmp_path) as wrapped:
        air = await Air(wrapped.connect()).start()
        session = await air.client.new(cwd)
        assert await air.steer(session, "say hello", begins_turn=True) == "startedNewTurn"
        await air.client.until(lambda: "hello" in air.client.said())
        assert await past(air.client, session, cwd) == [("user_message", "say hello"), ("agent_message", "hello")]
        turn = air.client.begin_prompt(session, "wait")
        await air.client.until(lambda: "waiting" in air.client.said())
        # The agent leaves these, though the client would let it begin a turn of which nobody here would know.
        assert await air.steer(session, "too late", begins_turn=True) == "startedNewTurn"
        await patiently(turn)
        assert ("user_message", "too late") in await past(air.client, session, cwd)
        assert "of my own" not in air.client.said()


@pytest.mark.requirement("G3")
async def test_words_that_are_refused_are_in_no_history(tmp_path: Path) -> None:
    cwd = str(tmp_path)
    async with wrapping(tmp_path) as wrapped:
        air = await Air(wrapped.connect()).start()
        session = await air.client.new(cwd)
        turn = air.client.begin_prompt(session, "wait")
        await air.client.until(lambda: "waiting" in air.client.said())
        before = await past(air.client, session, cwd)
        assert await air.steer(session, "fail") == "failed"
        prompt: list[Any] = [text("x")]
        refused: tuple[dict[str, Any], ...] = (
            {"sessionId": session, "prompt": []},
            {"sessionId": session},
            {"sessionId": "sess_of_nobody", "prompt": prompt},
            {"sessionId": session, "prompt": prompt, "_meta": {"steering": {"idleBehavior": "shout"}}},
            {"sessionId": session, "prompt": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]},
        )
        for wrong in refused:
            with pytest.raises(Refused):
                await air.client.ask("_session/steering", wrong)
        assert await past(air.client, session, cwd) == before
        await air.steer(session, "enough")
        await patiently(turn)


@pytest.mark.requirement("G3", "G8")
async def test_steering_ends_with_an_agent_that_never_answers(tmp_path: Path) -> None:
    async with wrapping(tmp_path, "ignores steering") as wrapped:
        air = await Air(wrapped.connect()).start()
        session = await air.client.new(str(tmp_path))
        turn = air.client.begin_prompt(session, "wait")
        await air.client.until(lambda: "waiting" in air.client.said())
        steering = air.begin_steering(session, "use tabs")
        await air.client.until(lambda: "Not now" in air.client.said())
        air.client.tell("session/cancel", {"sessionId": session})
        await patiently(turn)
        with pytest.raises(Refused, match="did not answer"):
            await patiently(steering)


@pytest.mark.requirement("H9")
async def test_words_that_are_sent_again_after_a_cut_are_said_once(tmp_path: Path) -> None:
    async with wrapping(tmp_path) as wrapped:
        air = await Air(wrapped.connect()).start()
        session = await air.client.new(str(tmp_path))
        turn = air.client.begin_prompt(session, "wait")
        await air.client.until(lambda: "waiting" in air.client.said())
        named = {"sessionId": session, "prompt": [text("enough")], "_meta": {"holdfast/request": "one"}}
        answers = [air.client.begin("_session/steering", named) for _ in range(2)]
        assert [await patiently(it) for it in answers] == [{"outcome": "injected"}] * 2
        await patiently(turn)
        assert await patiently(air.client.begin("_session/steering", named)) == {"outcome": "injected"}
        told_of = await past(air.client, session, str(tmp_path))
        assert [words for who, words in told_of if who == "user_message"] == ["wait", "enough"]
