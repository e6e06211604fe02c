"""One session, three processes, one of which is killed or ends: nothing seen is lost, and nothing runs again."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from core.tests.support.acp import Client, Refused, patiently, running

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

AGENT = """
import asyncio, os
from holdfast import Agent

agent = Agent("shared", version=str(os.getpid()))


@agent.prompt
async def answer(turn):
    with open("performed", "a") as performed:
        performed.write(turn.text + "\\n")
    count, _, then = turn.text.partition(" ")
    async with turn.tool("Count"):
        for number in range(int(count)):
            await turn.say(f"{number} ")
            await asyncio.sleep(0.001)
    if then == "wait":
        await asyncio.Event().wait()
    if then == "ask":
        async with turn.tool("Dig", kind="execute") as call:
            await turn.say("yes" if await turn.allow("May I dig?", call) else "no")
"""

STOPS_AS_IT_OPENS = """
import signal


@agent.on_open
async def stop(session):
    if os.path.exists("to be stopped"):
        os.unlink("to be stopped")
        with open("stopped", "w") as stopped:
            stopped.write(str(os.getpid()))
        await asyncio.sleep(3)  # whoever else looks for the session has greeted by then, and waits for its answer
        os.kill(os.getpid(), signal.SIGSTOP)
"""

NOTICES: dict[str, object] = {"session": {"notices": {}}}


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose sockets are beside the store, not elsewhere because of the length of its name."""
    with tempfile.TemporaryDirectory(prefix="hf") as place:
        yield Path(place)


class Process:
    """A client and the `holdfast run` that it has started."""

    def __init__(self, client: Client, pid: int) -> None:
        self.client = client
        self.pid = pid

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)


@asynccontextmanager
async def processes(place: Path, *versions: int, source: str = AGENT) -> AsyncGenerator[list[Process]]:
    """Start the agent in processes of their own, on one store, each for a client."""
    agent = place / "shared.py"
    agent.write_text(source)
    async with AsyncExitStack() as stack:
        found: list[Process] = []
        for version in versions:
            client = await stack.enter_async_context(
                running(place / "s.db", str(agent), version=version, cwd=place, **cast("Any", NOTICES))
            )
            about = client.heard[0]["result"]
            found.append(Process(client, int(about["agentInfo" if version == 1 else "info"]["version"])))
        yield found


def performed(place: Path) -> list[str]:
    return (place / "performed").read_text().splitlines()


async def join(process: Process, session: str, place: Path) -> None:
    if process.client.version == 1:
        await process.client.load(session, str(place))
    else:
        await process.client.resume(session, str(place), replayFrom={"type": "start"})


async def heard(client: Client, text: str) -> None:
    await client.until(lambda: text in client.said())


def numbers(count: int) -> str:
    return "".join(f"{number} " for number in range(count))


@pytest.mark.timeout(180)
@pytest.mark.requirement("F4", "P1", "P3")
@pytest.mark.parametrize("versions", [(1, 2, 1), (2, 1, 2)])
async def test_the_owner_is_killed_in_the_middle_of_a_turn(versions: tuple[int, ...], tmp_path: Path) -> None:
    async with processes(tmp_path, *versions) as (owner, one, other):
        session = await owner.client.new(str(tmp_path))
        await owner.client.prompt(session, "5")
        await join(one, session, tmp_path)
        await join(other, session, tmp_path)
        mine = one.client.begin_prompt(session, "400 wait")
        await heard(other.client, numbers(200))
        owner.signal(signal.SIGKILL)
        if one.client.version == 1:
            with pytest.raises(Refused, match="test has left"):
                await patiently(mine)
        else:
            await patiently(mine)
            await one.client.until(lambda: one.client.states()[-1] == "error")
        for process in (one, other):
            await process.client.until(
                lambda client=process.client: any("has left" in it["title"] for it in client.updates("notice"))
            )
        assert await one.client.prompt(session, "3") == "end_turn"
        assert await other.client.prompt(session, "2") == "end_turn"
        await heard(one.client, numbers(3) + numbers(2))
        assert performed(tmp_path) == ["5", "400 wait", "3", "2"]
        async with processes(tmp_path, 1) as (late,):
            await late.client.load(session, str(tmp_path))
            for process in (one, other):
                assert process.client.said() == late.client.said()


@pytest.mark.timeout(180)
@pytest.mark.requirement("A11", "F4", "P3")
@pytest.mark.parametrize("how", ["SIGTERM", "end of input"])
async def test_the_owner_ends_in_order_in_the_middle_of_a_turn(how: str, tmp_path: Path) -> None:
    async with processes(tmp_path, 1, 2, 1) as (owner, one, other):
        session = await owner.client.new(str(tmp_path))
        await join(one, session, tmp_path)
        await join(other, session, tmp_path)
        ours = owner.client.begin_prompt(session, "50 wait")
        for process in (one, other):
            await heard(process.client, numbers(50))
        if how == "SIGTERM":
            owner.signal(signal.SIGTERM)
        else:
            await owner.client.transport.close(0)
        for process in (one, other):
            await process.client.until(
                lambda client=process.client: any("test has left" in it["title"] for it in client.updates("notice"))
            )
        await one.client.until(lambda: one.client.states()[-1] == "error")
        assert await other.client.prompt(session, "3") == "end_turn"
        assert await one.client.prompt(session, "4") == "end_turn"
        assert performed(tmp_path) == ["50 wait", "3", "4"]
        await heard(other.client, numbers(50) + numbers(3) + numbers(4))
        ours.cancel()


@pytest.mark.timeout(180)
@pytest.mark.requirement("F4", "F5")
async def test_a_follower_is_killed_and_nobody_notices_but_its_question(tmp_path: Path) -> None:
    async with processes(tmp_path, 2, 1) as (owner, one):
        session = await owner.client.new(str(tmp_path))
        await join(one, session, tmp_path)
        one.client.begin_prompt(session, "20 ask")
        await one.client.question()
        one.signal(signal.SIGKILL)
        (await owner.client.question()).select("allow_once")
        await heard(owner.client, numbers(20) + "yes")
        await owner.client.until(lambda: owner.client.states()[-1] == "end_turn")
        assert await owner.client.prompt(session, "2") == "end_turn"


@pytest.mark.timeout(180)
@pytest.mark.requirement("P4", "P7")
async def test_an_owner_that_hangs_is_told_of_or_succeeded_and_follows_when_it_wakes_up(tmp_path: Path) -> None:
    async with processes(tmp_path, 2, 1) as (owner, one):
        session = await owner.client.new(str(tmp_path))
        await owner.client.prompt(session, "2")
        owner.signal(signal.SIGSTOP)
        try:
            await join(one, session, tmp_path)  # it is idle there: it is taken over
            assert await one.client.prompt(session, "3") == "end_turn"
        finally:
            owner.signal(signal.SIGCONT)
        with pytest.raises(Refused, match="taken over by test; try again"):
            await owner.client.prompt(session, "never")
        assert await owner.client.prompt(session, "4") == "end_turn"
        await heard(one.client, numbers(3) + numbers(4))
        assert performed(tmp_path) == ["2", "3", "4"]
        held = owner.client.begin_prompt(session, "5 wait")
        await heard(one.client, numbers(4) + numbers(5))
        one.signal(signal.SIGSTOP)
        try:
            async with processes(tmp_path, 1) as (late,):
                refused = await late.client.refusal(
                    "session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
                )
                assert "running in test, which does not answer" in refused.message
        finally:
            one.signal(signal.SIGCONT)
        owner.client.tell("session/cancel", {"sessionId": session})
        await patiently(held)
        await owner.client.until(lambda: owner.client.states()[-1] == "cancelled")


@pytest.mark.timeout(180)
@pytest.mark.requirement("P4", "P6")
async def test_whoever_prompts_where_the_owner_hangs_is_told_and_may_go_on_without_it(tmp_path: Path) -> None:
    async with processes(tmp_path, 2, 1) as (owner, one):
        session = await owner.client.new(str(tmp_path))
        await owner.client.prompt(session, "2")
        await join(one, session, tmp_path)
        owner.signal(signal.SIGSTOP)
        try:
            with pytest.raises(Refused, match="test has left; the turn was interrupted"):
                await one.client.prompt(session, "never")
            assert await one.client.prompt(session, "3") == "end_turn"
        finally:
            owner.signal(signal.SIGCONT)
        answered = await asyncio.gather(owner.client.prompt(session, "4"), return_exceptions=True)
        (answer,) = answered
        is_refused = isinstance(answer, Refused) and "taken over by test; try again" in answer.message
        assert is_refused or not isinstance(answer, BaseException), answer
        await heard(owner.client, numbers(3))
        assert performed(tmp_path) in (["2", "3"], ["2", "3", "4"])  # who has found out before follows the new owner


@pytest.mark.timeout(180)
@pytest.mark.requirement("A11", "F4", "P4")
async def test_who_left_is_told_and_one_goes_on_also_where_the_next_owner_hangs_while_it_is_asked(
    tmp_path: Path,
) -> None:
    async with processes(tmp_path, 1, 2, 2, source=AGENT + STOPS_AS_IT_OPENS) as (owner, one, other):
        session = await owner.client.new(str(tmp_path))
        await join(one, session, tmp_path)
        await join(other, session, tmp_path)
        owner.client.begin_prompt(session, "50 wait")
        for process in (one, other):
            await heard(process.client, numbers(50))
        (tmp_path / "to be stopped").touch()
        owner.signal(signal.SIGTERM)
        async with asyncio.timeout(90):
            while not (was_told(one) or was_told(other)):  # noqa: ASYNC110  (which of the two is for them to decide)
                await asyncio.sleep(0.05)
        (first, second) = (one, other) if was_told(one) else (other, one)
        try:
            assert int((tmp_path / "stopped").read_text()) == second.pid
            assert await first.client.prompt(session, "3") == "end_turn"
        finally:
            second.signal(signal.SIGCONT)
        await second.client.until(lambda: was_told(second))
        await asyncio.gather(second.client.prompt(session, "4"), return_exceptions=True)  # by that it finds out
        await heard(second.client, numbers(50) + numbers(3))


def was_told(process: Process) -> bool:
    return any("test has left; the session goes on" in it["title"] for it in process.client.updates("notice"))


@pytest.mark.timeout(120)
@pytest.mark.requirement("P12")
async def test_nobody_but_the_user_can_connect_and_what_dead_processes_left_harms_nobody(short_path: Path) -> None:
    tmp_path = short_path
    async with processes(tmp_path, 1) as (owner,):
        session = await owner.client.new(str(tmp_path))
        await owner.client.prompt(session, "2")
        sockets = tmp_path / "s.db.sockets"
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert [stat.S_IMODE(path.stat().st_mode) for path in sockets.iterdir()] == [0o600]
        owner.signal(signal.SIGKILL)
        await owner.client.until(lambda: owner.client.ended)
        assert len(list(sockets.iterdir())) == 1  # that of the dead one
        async with processes(tmp_path, 2) as (next_one,):
            await join(next_one, session, tmp_path)
            assert await next_one.client.prompt(session, "1") == "end_turn"
        assert not list(sockets.iterdir())


@pytest.mark.timeout(120)
@pytest.mark.requirement("F4")
async def test_a_store_with_a_long_name_is_shared_as_well(tmp_path: Path) -> None:
    place = tmp_path / ("x" * 100) / ("y" * 100)
    place.mkdir(parents=True)
    async with processes(place, 1, 2) as (owner, one):
        session = await owner.client.new(str(place))
        await join(one, session, place)
        assert await one.client.prompt(session, "2") == "end_turn"
        await heard(owner.client, numbers(2))


@pytest.mark.timeout(120)
@pytest.mark.requirement("P7")
async def test_whoever_connects_and_says_nothing_or_nonsense_harms_nobody(short_path: Path) -> None:
    tmp_path = short_path
    async with processes(tmp_path, 1, 1) as (owner, one):
        session = await owner.client.new(str(tmp_path))
        (path,) = (tmp_path / "s.db.sockets").iterdir()
        opened = [asyncio.open_unix_connection(str(path)) for _ in range(200)]  # more than the system lets wait
        silent: list[Any] = [await connecting for connecting in opened]
        for _, writer in silent[:50]:
            writer.write(b'{"jsonrpc":"2.0","id":1,"method":"status"}\nnonsense\n' * 100)
        await join(one, session, tmp_path)
        assert await one.client.prompt(session, "3") == "end_turn"
        await heard(owner.client, numbers(3))
        for _, writer in silent:
            writer.close()
