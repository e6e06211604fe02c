"""A coding agent that others wrote and published, kimi-code, driven by our client; its model is a script on loopback.

Nothing but the words of the model is played: the agent, its tools and its sessions on disk are the real ones.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import holdfast
from app.tests.support.peers import PATIENCE, kimi
from core.tests.support.clients import said
from core.tests.support.wire import wait_for_death
from holdfast.errors import ConnectionLost
from holdfast.testing.model_server import ModelServer, Say, calls

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from holdfast import ClientSession, Connection
    from holdfast.model import Entry, Permission

pytestmark = pytest.mark.timeout(240)  # it needs seconds to start, more on a busy machine

CONFIG = """
default_model = "scripted"
default_permission_mode = "manual"
telemetry = false

[providers.local]
type = "openai"
base_url = "{url}"
api_key = "none"

[models.scripted]
provider = "local"
model = "scripted"
max_context_size = 100000
"""

SCRIPT = [
    # It may write a file…
    calls(("Write", {"path": "report.txt", "content": "It is 21 °C."}), text="I write it down. "),
    Say("It is written down.", thought="Was that all?"),
    # …but not another one…
    calls(("Write", {"path": "report.txt", "content": "It is 99 °C."})),
    Say("So I leave it."),
    # …is cancelled while it speaks…
    Say("This will go on and on", then="hang"),
    # …goes on where it was, in another process, and is left in the middle of a command.
    Say("It was 21 °C."),
    calls(("Bash", {"command": "echo $$ > sleeper && exec sleep 600"})),
]


class Stage:
    """Where the agent is at home, where it works, and what it has asked."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.cwd = directory / "cwd"
        self.report = self.cwd / "report.txt"
        self.sleeper = self.cwd / "sleeper"
        self.asked: list[tuple[Permission, bool]] = []
        """Its questions, and whether the report was there when it asked."""
        self.willing = True
        for place in (self.home, self.cwd):
            place.mkdir()
        os.mkfifo(self.sleeper)

    def connect(self, model: ModelServer) -> AbstractAsyncContextManager[Connection]:
        """Start the agent."""
        (self.home / "config.toml").write_text(CONFIG.format(url=model.url))
        env = {
            "HOME": str(self.home),
            "KIMI_CODE_HOME": str(self.home),
            "KIMI_CODE_NO_AUTO_UPDATE": "1",
            "NO_PROXY": "127.0.0.1",
        }
        return holdfast.connect(*kimi(), cwd=self.home, env=env, permissions=self.answer)

    async def asleep(self) -> int:
        """Wait until the command that sleeps is there; give its process."""
        loop, fifo = asyncio.get_running_loop(), os.open(self.sleeper, os.O_RDONLY | os.O_NONBLOCK)
        written = asyncio.Event()
        loop.add_reader(fifo, written.set)
        try:
            await written.wait()
            return int(os.read(fifo, 100))
        finally:
            loop.remove_reader(fifo)
            os.close(fifo)

    async def answer(self, session: ClientSession, question: Permission) -> bool:
        """Answer a question for permission."""
        assert session.cwd == str(self.cwd)
        self.asked.append((question, self.report.exists()))
        return self.willing


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    for name in list(os.environ):
        if name.startswith("KIMI_"):  # whoever runs this may use it too
            monkeypatch.delenv(name)
    return Stage(tmp_path)


async def test_kimi_code_can_be_driven(stage: Stage) -> None:
    before = descendants()
    async with asyncio.timeout(2 * PATIENCE), ModelServer(SCRIPT) as model:
        async with stage.connect(model) as agent:
            assert (agent.agent.name, agent.protocol) == ("Kimi Code CLI", 1)
            session = await agent.new_session(stage.cwd)
            assert session.model == "scripted"
            await uses_a_tool(stage, session, model)
            await may_not_use_a_tool(stage, session, model)
            await is_cancelled(session, model)
            first = descendants() - before
        assert first
        wait_for_death(list(first))

        async with stage.connect(model) as agent:
            (listed,) = [session async for session in agent.sessions(stage.cwd)]
            assert (listed.id, listed.title) == (session.id, "How warm is it?")
            loaded = await agent.load(listed)
            await goes_on(loaded, session, model)
            unfinished = loaded.prompt("Sleep")
            await anext(unfinished)
            sleeper = await stage.asleep()
            second = descendants() - before
        assert sleeper in second
        wait_for_death(list(second))
        with pytest.raises(ConnectionLost):
            await unfinished


async def uses_a_tool(stage: Stage, session: ClientSession, model: ModelServer) -> None:
    turn = session.prompt("How warm is it?")
    updates = [update async for update in turn]
    assert turn.stop_reason == "end_turn"
    assert updates[-1].update() == {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}
    streamed = [update.text for update in updates if update.kind == "agent_message_chunk"]
    assert len(streamed) > 2 and "".join(map(str, streamed)) == "I write it down. It is written down."
    (written,) = tool_calls(session)
    statuses = [update.update().get("status") for update in updates if update.kind == "tool_call_update"]
    assert statuses[0] == "pending" and set(statuses[1:-1]) == {"in_progress"} and statuses[-1] == "completed"
    assert (written.members["kind"], written.members["status"]) == ("edit", "completed")
    assert written.members["rawInput"] == {"path": "report.txt", "content": "It is 21 °C."}
    ((question, was_there),) = stage.asked
    assert question.call["toolCallId"] == written.key and not was_there
    assert stage.report.read_text() == "It is 21 °C."
    assert model.told()[-1]["role"] == "tool"
    assert [entry.entity for entry in session.history] == [
        "user_message",
        "agent_message",
        "tool_call_update",
        "agent_thought",
        "agent_message",
    ]
    assert said(session.history) == [
        ("user_message", "How warm is it?"),
        ("agent_message", "I write it down. "),
        ("agent_thought", "Was that all?"),
        ("agent_message", "It is written down."),
    ]


async def may_not_use_a_tool(stage: Stage, session: ClientSession, model: ModelServer) -> None:
    stage.willing = False
    assert await session.ask_text("Make it warmer") == "So I leave it."
    assert len(stage.asked) == 2
    assert [call.members["status"] for call in tool_calls(session)] == ["completed", "failed"]
    assert stage.report.read_text() == "It is 21 °C."
    assert model.told()[-1]["role"] == "tool"
    stage.willing = True


async def is_cancelled(session: ClientSession, model: ModelServer) -> None:
    async with session.prompt("Tell me more") as turn:
        async for update in turn:
            if update.kind == "agent_message_chunk":
                await session.cancel()
    assert turn.stop_reason == "cancelled"
    kind, text = said(session.history)[-1]
    assert kind == "agent_message" and text and "This will go on and on".startswith(text)
    await model.hung_up.wait()


async def goes_on(loaded: ClientSession, session: ClientSession, model: ModelServer) -> None:
    """It has the past it told before, but for what it adds to the user's words; the model is told it, too."""
    past = [each for each in said(loaded.history) if each[0] == "agent_message"]
    assert past == [each for each in said(session.history) if each[0] == "agent_message"]
    assert [(call.members["status"], call.members["kind"]) for call in tool_calls(loaded)] == [
        ("completed", "edit"),
        ("failed", "edit"),
    ]
    assert await loaded.ask_text("How warm was it?") == "It was 21 °C."
    told = [message["content"] for message in model.told() if message["role"] == "assistant"]
    assert "It is written down." in told and "So I leave it." in told


def tool_calls(session: ClientSession) -> list[Entry]:
    return [entry for entry in session.history if entry.entity == "tool_call_update"]


def descendants(pid: int | None = None) -> set[int]:
    """Find all processes that come from this one."""
    found: set[int] = set()
    with suppress(FileNotFoundError, ProcessLookupError):  # one that ends meanwhile
        for thread in Path(f"/proc/{pid or os.getpid()}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                found |= {child, *descendants(child)}
    return found
