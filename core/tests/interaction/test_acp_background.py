"""Work that goes on beside the turns: listed in every state, shown as it goes on, ended with the session (C13)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import holdfast
from core.tests.support.acp import Client, Gates, Update, conversation, patiently, running, serving
from core.tests.support.schemas import faults
from core.tests.support.wire import wait_for_death
from holdfast import Agent, Turn
from holdfast.engine import EngineLimits
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.client.handshake import ProtocolChoice

pytestmark = pytest.mark.requirement("C13")

COUNTER = """
import os, sys, time
print(f"pid {os.getpid()}", flush=True)
while True:
    for name in sorted(os.listdir(sys.argv[1])):
        print(f"saw {name}", flush=True)
        os.remove(os.path.join(sys.argv[1], name))
    time.sleep(0.02)
"""
"""Prints the names of files that are put into a directory."""


def agent_with_a_server(directory: Path, gates: Gates | None = None) -> Agent:
    agent = Agent("serving")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        if gates is not None:
            await gates.wait(turn.text)
        await turn.say(f"you said {turn.text}")

    @agent.command("start", "Start a server")
    async def start(turn: Turn) -> None:
        async with turn.tool("Start the server", kind="execute") as call:
            server = await call.start_terminal(sys.executable, "-c", COUNTER, str(directory))
            turn.session.live["server"] = server
            while "\n" not in server.text:  # noqa: ASYNC110  (another process prints it)
                await asyncio.sleep(0.01)
        await turn.say("it runs")

    @agent.command("stop", "Stop the server")
    async def stop(turn: Turn) -> None:
        done = await turn.session.live["server"].stop()
        await turn.say(f"{done.status} {done.text.count('saw')}")

    return agent


def pid_in(text: str) -> int:
    return int(text.partition("pid ")[2].split()[0])


def put(directory: Path, name: str) -> None:
    (directory / name).touch()


def printed(updates: list[Update]) -> str:
    """Return what the only terminal has printed."""
    (terminal,) = [entry for entry in conversation(updates) if entry["sessionUpdate"] == "terminal_update"]
    return b64decode(terminal["output"]["data"]).decode()


def states(client: Client) -> list[tuple[str, Any]]:
    for message in client.heard:
        if message.get("method") == "session/update":
            assert faults(client.version, "client", "session/update", "Notification", message["params"]) == []
    return [(update["state"], update.get("background")) for update in client.updates("state_update")]


async def started(client: Client, session: str) -> Update:
    """Let the server start; return the item that tells of it."""
    assert await client.prompt(session, "/start") == "end_turn"
    terminal = client.updates("terminal_update")[0]
    return {"type": "terminal", "terminalId": terminal["terminalId"]}


@pytest.fixture
def box(tmp_path: Path) -> Path:
    (tmp_path / "box").mkdir()
    return tmp_path / "box"


async def test_a_command_goes_on_after_its_turn_and_is_listed_in_every_state(box: Path) -> None:
    async with serving(agent_with_a_server(box)) as host:
        client = await host.client(2)
        session = await client.new("/")
        item = await started(client, session)
        (call,) = [it for it in conversation(client.updates()) if it["sessionUpdate"] == "tool_call_update"]
        assert call["status"] == "completed"
        assert states(client) == [("running", None), ("running", [item]), ("idle", [item])]
        assert (await client.ask("session/status", {"sessionId": session}))["state"]["background"] == [item]
        client.forget()
        put(box, "between turns")
        await client.until(lambda: "between" in str(client.updates("terminal_output_chunk")) or _saw(client, "between"))
        assert await client.prompt(session, "hello") == "end_turn"
        assert states(client) == [("running", [item]), ("idle", [item])]
        client.forget()
        assert await client.prompt(session, "/stop") == "end_turn"
        assert client.said() == "143 1"
        assert states(client) == [("running", [item]), ("running", []), ("idle", [])]
        kinds = [update["sessionUpdate"] for update in client.updates("terminal_update", "state_update")]
        assert kinds == ["state_update", "terminal_update", "state_update", "state_update"]  # its end comes first
        assert client.updates("terminal_update")[0]["exitStatus"] == {"signal": "15"}


def _saw(client: Client, name: str) -> bool:
    chunks = client.updates("terminal_output_chunk")
    return name in "".join(b64decode(update["data"]).decode() for update in chunks)


@pytest.mark.parametrize("version", [1, 2])
async def test_what_it_prints_in_later_turns_and_between_them_is_in_the_replay(version: int, box: Path) -> None:
    gates = Gates()
    async with serving(agent_with_a_server(box, gates)) as host:
        client = await host.client(2)
        watching = await host.client(1)
        session = await client.new("/")
        await watching.load(session, "/")
        await started(client, session)
        put(box, "first")
        await client.until(lambda: _saw(client, "first"))
        turn = asyncio.create_task(client.prompt(session, "hello"))
        await gates.reached("hello")
        put(box, "second")
        await client.until(lambda: _saw(client, "second"))
        gates.open("hello")
        assert await patiently(turn) == "end_turn"
        put(box, "third")
        await client.until(lambda: _saw(client, "third"))
        other = await host.client(version)
        replay = await _replay(other, session)
        whole = printed(replay) if version == 2 else str(conversation(replay))
        assert [name in whole for name in ("first", "second", "third")] == [True] * 3
        assert whole.index("first") < whole.index("second") < whole.index("third")
        assert version == 1 or replay[-1]["background"] == client.updates("state_update")[-1]["background"] != []
        put(box, "fourth")
        await watching.until(lambda: "fourth" in str(watching.updates("tool_call_update")))
        last = watching.updates("tool_call_update")[-1]["content"][0]["content"]["text"]
        assert all(name in last for name in ("first", "second", "third", "fourth"))
        assert await client.prompt(session, "/stop") == "end_turn"
        again = await _replay(other, session)
        assert version == 1 or printed(again).count("saw") == 4


async def _replay(client: Client, session: str) -> list[Update]:
    client.forget()
    if client.version == 1:
        await client.load(session, "/")
    else:
        await client.resume(session, "/", replayFrom={"type": "start"})
    at = next(n for n, message in enumerate(client.heard) if "method" not in message)
    return [message["params"]["update"] for message in client.heard[:at]]


async def test_cancelling_a_turn_leaves_it_alone_and_it_can_be_cancelled_by_itself(box: Path) -> None:
    gates = Gates()
    async with serving(agent_with_a_server(box, gates)) as host:
        client = await host.client(2)
        session = await client.new("/")
        item = await started(client, session)
        turn = asyncio.create_task(client.prompt(session, "hello"))
        await gates.reached("hello")
        client.tell("session/cancel", {"sessionId": session})
        assert await patiently(turn) == "cancelled"
        assert states(client)[-1] == ("idle", [item])
        named = {"sessionId": session, "terminalId": item["terminalId"]}
        assert await client.ask("terminal/cancel", named) == {}
        await client.until(lambda: states(client)[-1] == ("idle", []))
        (terminal,) = [it for it in conversation(client.updates()) if it["sessionUpdate"] == "terminal_update"]
        assert terminal["exitStatus"] == {"signal": "15"} and not terminal.get("capabilities")
        assert (await client.refusal("terminal/cancel", named)).code == -32602


@pytest.mark.parametrize("method", ["session/close", "session/archive", "session/delete"])
async def test_it_ends_with_the_session_and_its_end_is_seen_and_stored(method: str, box: Path) -> None:
    async with serving(agent_with_a_server(box)) as host:
        client = await host.client(2)
        session = await client.new("/")
        await started(client, session)
        pid = pid_in(printed(client.updates("terminal_update", "terminal_output_chunk")))
        await client.ask(method, {"sessionId": session})
        assert client.updates("terminal_update")[-1]["exitStatus"] == {"signal": "15"}
        assert states(client)[-1] == ("idle", [])
        wait_for_death([pid])
        if method == "session/close":
            replay = await _replay(client, session)
            (terminal,) = [it for it in conversation(replay) if it["sessionUpdate"] == "terminal_update"]
            assert terminal["exitStatus"] == {"signal": "15"}
            assert "background" not in replay[-1]  # nothing is reported of a session that has just come back


async def test_a_session_does_not_leave_memory_while_it_goes_on(box: Path) -> None:
    async with serving(agent_with_a_server(box), limits=EngineLimits(idle=0.05)) as host:
        client = await host.client(2)
        session = await client.new("/")
        await started(client, session)
        pid = pid_in(printed(client.updates("terminal_update", "terminal_output_chunk")))
        await host.disconnect(client)
        await asyncio.sleep(0.5)
        os.kill(pid, 0)
        other = await host.client(2)
        replay = await _replay(other, session)
        assert replay[-1]["background"]


@pytest.mark.requirement("P3")
@pytest.mark.requirement("P8")
@pytest.mark.parametrize("version", [1, 2])
async def test_after_a_crash_it_has_ended(version: int, box: Path, tmp_path: Path) -> None:
    source = (
        "from pathlib import Path\n"
        "from core.tests.interaction.test_acp_background import agent_with_a_server\n"
        f"agent = agent_with_a_server(Path({str(box)!r}))\n"
    )
    (tmp_path / "agent.py").write_text(source)
    env = {"PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}  # noqa: PTH109
    arguments = (str(tmp_path / "agent.py"),)
    async with running(tmp_path / "s.db", *arguments, version=2, env=env) as client:
        session = await client.new("/")
        await started(client, session)
        pid = pid_in(printed(client.updates("terminal_update", "terminal_output_chunk")))
        put(box, "between turns")
        await client.until(lambda: _saw(client, "between"))
        await asyncio.sleep(1.0)  # all of it is sealed: nothing but the list tells that it went on
        os.kill(_agent_of(pid), signal.SIGKILL)
    wait_for_death([pid])
    async with running(tmp_path / "s.db", *arguments, version=version, env=env) as client:
        entries = conversation(await _replay(client, session))
        (call,) = [it for it in entries if it["sessionUpdate"] == "tool_call_update"]
        assert call["status"] == "completed"
        if version == 2:
            (terminal,) = [it for it in entries if it["sessionUpdate"] == "terminal_update"]
            assert terminal["exitStatus"] == {} and not terminal.get("capabilities")
            assert "saw between turns" in b64decode(terminal["output"]["data"]).decode()
        else:
            assert "saw between turns" in str(call)


def _agent_of(pid: int) -> int:
    """Return the process that runs the agent: the nearest above `pid` that has `holdfast` as its program."""
    while True:
        status = Path(f"/proc/{pid}/status").read_text()
        pid = int(status.partition("PPid:")[2].split()[0])
        if b"holdfast\0run" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid


async def test_a_fork_has_its_past_and_not_its_future(box: Path) -> None:
    async with serving(agent_with_a_server(box)) as host:
        client = await host.client(2)
        session = await client.new("/")
        item = await started(client, session)
        fork = (await client.ask("session/fork", {"sessionId": session, "cwd": "/", "mcpServers": []}))["sessionId"]
        other = await host.client(2)
        replay = await _replay(other, fork)
        (terminal,) = [it for it in conversation(replay) if it["sessionUpdate"] == "terminal_update"]
        assert terminal["exitStatus"] == {} and not terminal.get("capabilities")
        assert (await client.ask("session/status", {"sessionId": session}))["state"]["background"] == [item]


@pytest.mark.requirement("B15", "C13")
@pytest.mark.parametrize("cut", ["behind", "before"])
async def test_a_fork_that_is_cut_has_no_work_that_goes_on_for_ever(box: Path, cut: str) -> None:
    async with serving(agent_with_a_server(box)) as host:
        client = await host.client(2)
        session = await client.new("/")
        first = await client.prompt(session, "hello")
        await started(client, session)
        shown = await _replay(await host.client(2), session)
        keys = [it["messageId"] for it in conversation(shown) if it["sessionUpdate"] == "user_message"]
        assert first and len(keys) == 2
        meta = {"holdfast/upTo": keys[0] if cut == "before" else keys[1]}
        await client.prompt(session, "once more")
        params: dict[str, Any] = {"sessionId": session, "cwd": "/", "mcpServers": [], "_meta": meta}
        if cut == "behind":
            shown = await _replay(await host.client(2), session)
            meta["holdfast/upTo"] = [it["messageId"] for it in conversation(shown) if "messageId" in it][-1]
        fork = (await client.ask("session/fork", params))["sessionId"]
        replay = await _replay(await host.client(2), fork)
        terminals = [it for it in conversation(replay) if it["sessionUpdate"] == "terminal_update"]
        assert [it["exitStatus"] for it in terminals] == ([] if cut == "before" else [{}])


# Work without a process


def agent_that_watches(gates: Gates) -> Agent:
    agent = Agent("watching")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.say(f"you said {turn.text}")

    @agent.command("watch", "Watch something")
    async def watch(turn: Turn) -> None:
        async def work() -> None:
            await gates.wait("first")
            await call.text("one")
            await gates.wait("second")
            if turn.text == "badly":
                raise RuntimeError("on purpose")
            await call.text("two")

        async with turn.tool("Watch the build") as call:
            call.go_on(work())
            never = work()
            with pytest.raises(UsageError):
                call.go_on(never)
            never.close()
        await turn.say("watching")

    return agent


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("how", "status"), [("well", "completed"), ("badly", "failed")])
async def test_a_tool_call_goes_on_until_its_work_is_done(version: int, how: str, status: str) -> None:
    gates = Gates()
    async with serving(agent_that_watches(gates)) as host:
        client = await host.client(version)
        session = await client.new()
        assert await client.prompt(session, f"/watch {how}") == "end_turn"
        (call,) = _calls(client.updates())
        assert call["status"] == "in_progress"
        await gates.reached("first")
        gates.open("first")
        await gates.reached("second")
        assert await client.prompt(session, "hello") == "end_turn"
        gates.open("second")
        await client.until(lambda: _calls(client.updates())[0]["status"] == status)
        (call,) = _calls(client.updates())
        assert [item["content"]["text"] for item in call["content"]] == ["one", "two"][: 2 if how == "well" else 1]
        if version == 2:
            item = {"type": "tool_call", "toolCallId": call["toolCallId"]}
            await client.until(lambda: states(client)[-1] == ("idle", []))
            assert [background for _, background in states(client)] == [None, [item], [item], [item], [item], []]
        (replayed,) = _calls(await client.replayed(session))
        assert replayed["status"] == status and replayed["content"] == call["content"]


def _calls(updates: list[Update]) -> list[Update]:
    return [entry for entry in conversation(updates) if entry["sessionUpdate"] == "tool_call_update"]


async def test_a_tool_call_that_goes_on_can_be_cancelled_by_itself() -> None:
    gates = Gates()
    async with serving(agent_that_watches(gates)) as host:
        client = await host.client(2)
        session = await client.new()
        assert await client.prompt(session, "/watch") == "end_turn"
        (call,) = _calls(client.updates())
        assert call["capabilities"] == {"cancel": {}}
        assert await client.ask("tool_call/cancel", {"sessionId": session, "toolCallId": call["toolCallId"]}) == {}
        await client.until(lambda: states(client)[-1] == ("idle", []))
        (call,) = _calls(client.updates())
        assert call["status"] == "cancelled" and not call.get("capabilities")


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_turn_of_the_client_library_does_not_end_with_what_goes_on_beside_it(protocol: ProtocolChoice) -> None:
    gates = Gates()
    agent = agent_that_watches(gates)
    ended = asyncio.Event()

    @agent.command("last", "Let what goes on end, and say something then")
    async def last(turn: Turn) -> None:
        gates.open("first")
        gates.open("second")
        await ended.wait()
        await turn.say("the last word")

    async with holdfast.connect(agent, protocol=protocol) as connection:
        session = await connection.new_session(cwd="/")
        await session.prompt("/watch")
        assert await session.ask_text("hello") == "you said hello"
        turn, said = session.prompt("/last"), list[str | None]()
        async for update in turn:
            if update.kind == "tool_call_update" and update.update().get("status") == "completed":
                ended.set()
            elif update.kind == "agent_message_chunk":
                said.append(update.text)
        assert said == ["the last word"]
        assert turn.stop_reason == "end_turn"


async def test_a_client_of_another_process_sees_it_go_on_and_can_stop_it(box: Path, tmp_path: Path) -> None:
    agent = agent_with_a_server(box)
    async with serving(agent, tmp_path / "s.db") as host, serving(agent, tmp_path / "s.db") as elsewhere:
        client = await host.client(2)
        session = await client.new("/")
        item = await started(client, session)
        other = await elsewhere.client(2)
        replay = await _replay(other, session)
        assert replay[-1]["background"] == [item] and "pid" in printed(replay)
        put(box, "for both")
        for watching in (client, other):
            await watching.until(lambda watching=watching: _saw(watching, "for both"))
        named = {"sessionId": session, "terminalId": item["terminalId"]}
        assert await other.ask("terminal/cancel", named) == {}
        for watching in (client, other):
            await watching.until(lambda watching=watching: states(watching)[-1] == ("idle", []))


async def test_a_client_lists_what_goes_on_by_its_title_and_stops_it(box: Path) -> None:
    agent = agent_with_a_server(box)

    @agent.command("watch", "Watch something")
    async def watch(turn: Turn) -> None:
        async with turn.tool("Watch the build") as call:
            call.go_on(asyncio.sleep(600))

    async with holdfast.connect(agent, protocol=2) as connection:
        session = await connection.new_session("/")
        assert session.background == {}
        await session.prompt("/start")
        await session.prompt("/watch")
        (server, at_server), (watching, at_watching) = session.background.items()
        assert (at_server["type"], at_server["title"]) == ("terminal", "Start the server")
        assert sys.executable in at_server["command"]
        assert at_watching == {"type": "tool_call", "title": "Watch the build"}
        updates = session.updates()
        for work in (watching, server):
            await session.stop_background(work)
            async with asyncio.timeout(60):
                while work in session.background:
                    await anext(updates)
        stopped = session.history.get("tool_call_update", watching)
        assert stopped is not None and stopped.members["status"] == "cancelled"
        with pytest.raises(UsageError, match="goes on in this session; there is: nothing"):
            await session.stop_background(server)
    async with holdfast.connect(agent, protocol=1) as connection:
        session = await connection.new_session("/")
        await session.prompt("/watch")
        assert session.background == {}  # version 1 does not tell
