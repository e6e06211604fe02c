"""What a client does for an agent: nothing by default, and what is allowed only in the session's directories."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

import holdfast
from core.tests.support.clients import odd, processes_with
from core.tests.support.wire import wait_for_death
from holdfast.errors import ProcessExited
from holdfast.model import ElicitationAnswer
from holdfast.testing.demo_agent import agent as demo_agent

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast import ClientSession
    from holdfast.client.handshake import ProtocolChoice
    from holdfast.model import Elicitation, Permission

versions = pytest.mark.parametrize("protocol", [1, 2])


async def ask(session: ClientSession, method: str, **params: object) -> Any:
    """Have the agent ask the client for something; give what it was answered."""
    return json.loads(await session.ask_text(f"request {method} {json.dumps(params)}"))


# Permissions


@pytest.mark.requirement("C8")
@versions
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        *(("deny", "failed"), ("allow", "completed"), ("allow_always", "completed"), ("reject_once", "failed")),
        *((True, "completed"), (False, "failed"), (None, "failed"), ("what?", "failed"), (ZeroDivisionError, "failed")),
    ],
)
async def test_permission_is_what_was_said_clearly(protocol: ProtocolChoice, answer: Any, status: str) -> None:
    asked: list[Permission] = []

    async def decide(session: ClientSession, question: Permission) -> str | bool | None:
        assert session.running
        asked.append(question)
        if isinstance(answer, type):
            raise answer()
        return answer

    permissions: Any = answer if answer in ("deny", "allow") else decide
    async with holdfast.connect(demo_agent, protocol=protocol, permissions=permissions) as agent:
        session = await agent.new_session()
        await session.prompt("/ask")
        (call,) = [entry for entry in session.history if entry.entity == "tool_call_update"]
        assert call.members["status"] == status
        assert call.members["title"] == "Launch the rocket"
        for question in asked:
            assert question.title == "May I launch the rocket?"
            assert question.call["toolCallId"] == call.key
            assert [option.kind for option in question.options] == [
                "allow_once",
                "allow_always",
                "reject_once",
                "reject_always",
            ]


@pytest.mark.requirement("C8")
@versions
async def test_nobody_is_asked_for_permission_who_did_not_say_how(protocol: ProtocolChoice) -> None:
    async with holdfast.connect(demo_agent, protocol=protocol) as agent:
        session = await agent.new_session()
        await session.prompt("/ask")
        assert "Tool: Launch the rocket (execute, failed)" in session.history.markdown()


@pytest.mark.requirement("C8", "P13")
@pytest.mark.parametrize("known", ["", "known", "titled"])
async def test_who_is_asked_sees_all_that_is_known_of_the_call(known: str) -> None:
    """Vibe sends nothing but the id of the call, kimi-code and goose a title that says little, Gemini everything."""
    asked: list[Permission] = []

    async def refuse(_: ClientSession, question: Permission) -> bool:
        asked.append(question)
        return False

    async with odd(permissions=refuse) as agent:
        session = await agent.new_session()
        await session.prompt(f"propose {known}".strip())
    (question,) = asked
    assert question.title == ("Write" if known == "titled" else "Write a file")
    assert question.call == {
        "toolCallId": "c",
        "title": "Write a file",
        "kind": "edit",
        "status": "pending",
        "content": [{"type": "content", "content": {"type": "text", "text": "all of it"}}],
        "locations": [{"path": "/f"}],
        "rawInput": {"path": "/f"},
    }


async def test_a_call_that_only_a_question_announced_is_in_the_history_if_it_is_refused() -> None:
    async with odd() as agent:
        session = await agent.new_session()
        await session.prompt("propose")
        call = session.history.get("tool_call_update", "c")
        assert call is not None
        assert (call.members["title"], call.members["kind"], call.text()) == ("Write a file", "edit", "all of it")


# Forms


@pytest.mark.requirement("C9")
@versions
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        *(({"name": "Ada"}, "Hello, Ada."), (ElicitationAnswer("accept", {"name": "Bob"}), "Hello, Bob.")),
        *((None, "You did not say."), (ElicitationAnswer("cancel"), "You did not say.")),
    ],
)
async def test_a_form_is_filled_in_by_whoever_said_they_would(protocol: ProtocolChoice, answer: Any, said: str) -> None:
    async def fill_in(session: ClientSession | None, question: Elicitation) -> Any:
        assert session is not None
        assert question.mode == "form"
        assert "name" in question.params["requestedSchema"]["properties"]
        return answer

    async with holdfast.connect(demo_agent, protocol=protocol, questions=fill_in) as agent:
        assert await (await agent.new_session()).ask_text("/form") == said
    async with holdfast.connect(demo_agent, protocol=protocol) as agent:
        assert await (await agent.new_session()).ask_text("/form") == "You did not say."


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_form_that_nobody_said_they_would_fill_in_is_declined(version: str) -> None:
    async with odd(version) as agent:
        session = await agent.new_session()
        assert await ask(session, "elicitation/create", mode="form", message="?") == {"action": "decline"}
        assert (await ask(session, "elicitation/create", mode="dance", message="?"))["code"] == -32602


# Files


@pytest.mark.requirement("C11", "P9")
async def test_files_are_read_and_written_in_the_sessions_directories_only(tmp_path: Path) -> None:
    inside, more, outside = (tmp_path / name for name in ("inside", "more", "outside"))
    for directory in (inside, more, outside):
        directory.mkdir()
        (directory / "f").write_text("one\ntwo\nthree\n")
    (inside / "link").symlink_to(outside)
    async with odd(files=True) as agent:
        session = await agent.new_session(inside)
        assert await ask(session, "fs/read_text_file", path=f"{inside}/f") == {"content": "one\ntwo\nthree\n"}
        assert await ask(session, "fs/read_text_file", path=f"{inside}/f", line=2, limit=1) == {"content": "two\n"}
        assert await ask(session, "fs/write_text_file", path=f"{inside}/new/g", content="é") == {}
        assert (inside / "new" / "g").read_text() == "é"
        missing = await ask(session, "fs/read_text_file", path=f"{inside}/missing")
        assert missing["code"] == -32002
        for path in (f"{outside}/f", f"{inside}/../outside/f", f"{inside}/link/f", "/etc/passwd", f"{inside}/\0"):
            assert (await ask(session, "fs/read_text_file", path=path))["code"] == -32602
            assert (await ask(session, "fs/write_text_file", path=path, content="x"))["code"] == -32602
        assert (await ask(session, "fs/read_text_file", path=f"{inside}/new"))["code"] == -32602
        assert (await ask(session, "fs/read_text_file", path=f"{inside}/f", sessionId="other"))["code"] == -32602
        assert (outside / "f").read_text() == "one\ntwo\nthree\n"
    async with odd(files=[more]) as agent:
        session = await agent.new_session(inside)
        assert (await ask(session, "fs/read_text_file", path=f"{inside}/f"))["code"] == -32602
        assert (await ask(session, "fs/read_text_file", path=f"{more}/f"))["content"].startswith("one")


# Terminals


@pytest.mark.requirement("C11", "P8")
async def test_commands_are_run_watched_and_ended(tmp_path: Path) -> None:
    async with odd(terminals=True) as agent:
        session = await agent.new_session(tmp_path)

        async def run(command: str, *args: str, **more: object) -> dict[str, Any]:
            return await ask(session, "terminal/create", command=command, args=args, **more)

        script = "import os; print(os.getcwd(), os.environ['ODD'])"
        terminal = await run(sys.executable, "-c", script, env=[{"name": "ODD", "value": "é"}])
        assert await ask(session, "terminal/wait_for_exit", **terminal) == {"exitCode": 0, "signal": None}
        assert await ask(session, "terminal/output", **terminal) == {
            "output": f"{tmp_path} é\n",
            "truncated": False,
            "exitStatus": {"exitCode": 0, "signal": None},
        }
        assert await ask(session, "terminal/release", **terminal) == {}
        assert (await ask(session, "terminal/output", **terminal))["code"] == -32602

        terminal = await ask(session, "terminal/create", command="printf 'ééé' && exit 3", outputByteLimit=3)
        assert await ask(session, "terminal/wait_for_exit", **terminal) == {"exitCode": 3, "signal": None}
        output = await ask(session, "terminal/output", **terminal)
        assert (output["output"], output["truncated"]) == ("é", True)

        terminal = await run("sleep", "600")
        assert "exitStatus" not in await ask(session, "terminal/output", **terminal)
        assert await ask(session, "terminal/kill", **terminal) == {}
        assert await ask(session, "terminal/wait_for_exit", **terminal) == {"exitCode": None, "signal": "9"}

        assert (await run("no-such-program"))["code"] == -32602
        assert (await run("ls", cwd="/"))["code"] == -32602


@pytest.mark.requirement("P8")
@pytest.mark.parametrize("how", ["close", "leave", "die"])
async def test_a_command_ends_with_its_session(how: str, tmp_path: Path) -> None:
    async with odd(terminals=True) as agent:
        session = await agent.new_session(tmp_path)
        script = "sleep 600 & echo $! > pid; mv pid pids; wait"
        terminal = await ask(session, "terminal/create", command="sh", args=["-c", script])
        while not (tmp_path / "pids").exists():
            await ask(session, "terminal/output", **terminal)
        pid = int((tmp_path / "pids").read_text())
        os.kill(pid, 0)
        if how == "close":
            await session.close()
            wait_for_death([pid])
        elif how == "die":
            with pytest.raises(ProcessExited):
                await session.prompt("die")
    wait_for_death([pid])


async def test_a_waiting_agent_that_dies_is_waited_for_by_nobody(tmp_path: Path) -> None:
    """The runner of these tests fails the one that leaves a task."""
    token = uuid4().hex
    async with odd(token, terminals=True) as agent:
        session = await agent.new_session(tmp_path)
        terminal = await ask(session, "terminal/create", command="sleep", args=["600"])
        async with session.prompt(f"request terminal/wait_for_exit {json.dumps(terminal)}") as turn:
            await anext(turn)
            *_, its_own = sorted(map(int, processes_with(token)))  # the other is its guard
            os.kill(its_own, signal.SIGKILL)
            with pytest.raises(ProcessExited, match=r"was killed \(signal 9\)"):
                async for _ in turn:
                    pass


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.requirement("P13")
async def test_whoever_answers_sees_the_command_and_why_it_is_asked(protocol: ProtocolChoice) -> None:
    agent = holdfast.Agent("asking")

    @agent.prompt
    async def ask(turn: holdfast.Turn) -> None:
        await turn.allow("Run this?", command="make clean", description="The build is stale.")

    asked: list[Permission] = []

    async def decide(_: ClientSession, question: Permission) -> bool:
        asked.append(question)
        return False

    async with holdfast.connect(agent, protocol=protocol, permissions=decide) as connection:
        session = await connection.new_session(cwd="/tmp")
        await session.prompt("go")
        assert len(session.history) <= 2  # in version 1 a call stands for the command
    (question,) = asked
    shown = question.shown_call()
    assert shown["kind"] == "execute" and shown["rawInput"] == {"command": "make clean", "cwd": "/tmp"}
    assert "make clean" in str(shown["content"])
    assert question.description == ("The build is stale." if protocol == 2 else None)
    assert protocol == 2 or "The build is stale." in str(shown["content"])


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.requirement("C9")
async def test_the_caller_is_told_when_an_address_is_done_with(protocol: ProtocolChoice) -> None:
    agent = holdfast.Agent("asking")

    @agent.prompt
    async def ask(turn: holdfast.Turn) -> None:
        assert await turn.ask_url("Log in there", "https://example.org", id="login-1")
        await turn.complete_url("never asked for")
        await turn.complete_url("login-1")
        await turn.complete_url("login-1")

    done: list[Elicitation] = []

    async def visited(_: ClientSession | None, question: Elicitation) -> dict[str, Any]:
        assert question.mode == "url"
        return {}

    async def completed(question: Elicitation) -> None:
        done.append(question)

    async with holdfast.connect(agent, protocol=protocol, questions=visited, on_complete=completed) as connection:
        session = await connection.new_session(cwd="/tmp")
        await session.prompt("go")
    assert [question.params["url"] for question in done] == ["https://example.org"]
