"""The coding agent over ACP, with a provider of ours that says what a script tells it to."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.coding import coding
from core.tests.support.acp import conversation, patiently, serving, text
from core.tests.support.mcp import wire
from core.tests.support.recording import LIKE_OTHERS, judge
from holdfast.testing.model_server import Say, calls
from holdfast_app.code import NO_MODEL, CodeSettings, coding_agent

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.coding import Coding

VERSIONS = pytest.mark.parametrize("version", [1, 2])

EDIT = ("edit", {"path": "hello.py", "old": "hello", "new": "goodbye"})
READING = {"read", "list", "search"}
PIXEL = b64encode(b"\x89PNG no picture").decode()


def results(it: Coding, request: int = -1) -> list[str]:
    """What the model was told that its tools gave."""
    return [message["content"] for message in it.server.told(request) if message["role"] == "tool"]


@VERSIONS
async def test_it_streams_thoughts_and_text_and_tells_the_model_where_it_works(version: int, project: Path) -> None:
    (project / "AGENTS.md").write_text("Always whisper.\n")
    async with coding(version, project, Say("It is small.", thought="Let me see. ")) as it:
        assert await it.prompt("What is this?") == "end_turn"
        assert it.client.said() == "It is small."
        assert it.client.said("agent_thought") == "Let me see. "
        assert len(it.client.updates("agent_message_chunk")) > 1
        assert it.server.tools() == READING | {"edit", "write", "run"}
        (told,) = [m["content"] for m in it.server.requests[0]["messages"] if m["role"] == "system"]
        assert str(project) in told
        assert "Always whisper." in told


@VERSIONS
async def test_it_looks_around_in_several_steps(version: int, project: Path) -> None:
    script = [
        calls(("list", {}), ("search", {"text": "hello", "glob": "*.py"}), text="Let me look. "),
        calls(("read", {"path": "hello.py"})),
        Say("It says hello."),
    ]
    async with coding(version, project, *script) as it:
        assert await it.prompt("What does it say?") == "end_turn"
        assert results(it) == ["hello.py", 'hello.py:1: print("hello")', 'print("hello")\n']
        assert [(c["title"], c["kind"], c["name"]) for c in it.calls] == [
            ("List", "read", "list"),
            ("Search for hello", "search", "search"),
            ("Read hello.py", "read", "read"),
        ]
        assert it.calls[2]["rawInput"] == {"path": "hello.py"}
        assert it.calls[2]["locations"] == [{"path": str(project / "hello.py")}]
        assert it.calls[2]["content"] == [{"type": "content", "content": text('print("hello")\n')}]
        assert it.statuses(2) == ["pending", "in_progress", "completed"]
        assert [m["content"][0]["text"] for m in it.entries("agent_message")] == ["Let me look. ", "It says hello."]


@pytest.mark.requirement("C8")
@VERSIONS
async def test_an_edit_is_shown_as_a_diff_before_the_user_is_asked_and_made_when_allowed(
    version: int, project: Path
) -> None:
    async with coding(version, project, calls(EDIT), Say("Done.")) as it:
        prompted = asyncio.ensure_future(it.prompt("Say goodbye"))
        asked = await it.client.question()
        (call,) = it.calls
        assert (call["status"], call["title"]) == ("pending", "Edit hello.py")
        (diff,) = call["content"]
        assert diff["type"] == "diff"
        assert diff.get("path", str(project / "hello.py")) == str(project / "hello.py")
        assert (diff["oldText"], diff["newText"]) == ('print("hello")\n', 'print("goodbye")\n')
        about = asked.params["toolCall"] if version == 1 else asked.params["subject"]["toolCall"]
        assert about["toolCallId"] == call["toolCallId"]
        assert (project / "hello.py").read_text() == 'print("hello")\n'
        asked.select("allow_once")
        assert await patiently(prompted) == "end_turn"
        assert (project / "hello.py").read_text() == 'print("goodbye")\n'
        assert it.statuses() == ["pending", "in_progress", "completed"]
        assert it.calls[0]["content"] == [diff]


@pytest.mark.requirement("C8")
@VERSIONS
async def test_what_the_user_rejects_is_not_done_and_the_model_hears_of_it(version: int, project: Path) -> None:
    script = [calls(EDIT, ("run", {"command": "touch made"})), Say("As you wish.")]
    async with coding(version, project, *script) as it:
        asked = it.answer("reject_once")
        assert await it.prompt("Say goodbye") == "end_turn"
        assert len(asked) == 2
        assert (project / "hello.py").read_text() == 'print("hello")\n'
        assert not (project / "made").exists()
        assert all("did not allow" in said for said in results(it))
        assert it.statuses(0) == it.statuses(1) == ["pending", "failed"]


@VERSIONS
async def test_an_answer_for_ever_holds_for_the_tool_and_for_commands_only_for_the_same(
    version: int, project: Path
) -> None:
    script = [
        calls(EDIT, ("edit", {"path": "hello.py", "old": "goodbye", "new": "hi"})),
        calls(("run", {"command": "true"}), ("run", {"command": "true"}), ("run", {"command": "false"})),
        Say("Done."),
    ]
    async with coding(version, project, *script) as it:
        asked = it.answer("allow_always")
        assert await it.prompt("go") == "end_turn"
        titles = [(p["toolCall"] if version == 1 else p)["title"] for p in asked]
        assert titles == ["Edit hello.py", "Run true", "Run false"]
        assert (project / "hello.py").read_text() == 'print("hi")\n'


@VERSIONS
async def test_a_command_runs_in_a_terminal_without_the_keys_of_our_environment(
    version: int, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    script = [calls(("run", {"command": "pwd; echo key=$OPENAI_API_KEY; exit 3"})), Say("It failed.")]
    async with coding(version, project, *script) as it:
        it.answer("allow_once")
        assert await it.prompt("Where are we?") == "end_turn"
        (call,) = it.calls
        assert call["kind"] == "execute"
        assert results(it) == [f"{project}\nkey=\n[exit status 3]"]
        if version == 1:
            assert [c["content"]["text"] for c in call["content"]] == [f"```\n{project}\nkey=\n```"]
        else:
            (terminal,) = it.entries("terminal_update")
            assert call["content"] == [{"type": "terminal", "terminalId": terminal["terminalId"]}]
            assert terminal["exitStatus"] == {"exitCode": 3}
            assert terminal["cwd"] == str(project)


@VERSIONS
async def test_in_mode_ask_it_only_reads_and_in_mode_auto_it_asks_for_nothing(version: int, project: Path) -> None:
    write = ("write", {"path": "new/file.txt", "text": "new\n"})
    async with coding(version, project, calls(write), Say("No."), calls(write), Say("Yes.")) as it:
        await it.choose("mode", "ask")
        assert await it.prompt("Write") == "end_turn"
        assert it.server.tools() == READING
        assert it.statuses() == ["pending", "failed"]
        assert not (project / "new").exists()
        await it.choose("mode", "auto")
        assert await it.prompt("Write now") == "end_turn"
        assert (project / "new/file.txt").read_text() == "new\n"
        assert not it.client.asked
        assert it.calls[1]["content"][0]["oldText"] is None


@VERSIONS
async def test_it_does_not_leave_the_directories_of_the_session(version: int, project: Path) -> None:
    (project / "link").symlink_to(project.parent / "outside.txt")
    paths = ["../outside.txt", str(project.parent / "outside.txt"), "link", "/etc/passwd", "missing.txt"]
    script = [
        calls(*(("read", {"path": path}) for path in paths)),
        calls(*(("write", {"path": path, "text": "x"}) for path in paths[:4])),
        calls(("list", {"path": ".."}), ("search", {"text": "the", "path": ".."}), ("list", {"pattern": "../*"})),
        Say("I cannot."),
    ]
    async with coding(version, project, *script) as it:
        await it.choose("mode", "auto")
        assert await it.prompt("Leave") == "end_turn"
        assert all(status[-1] == "failed" for status in map(it.statuses, range(len(it.calls))))
        assert (project.parent / "outside.txt").read_text() == "the outside\n"
        assert "the outside" not in str(it.client.heard)
        assert any("missing.txt" in said for said in results(it))


@VERSIONS
async def test_an_edit_that_does_not_fit_is_refused_without_a_question(version: int, project: Path) -> None:
    (project / "twice.txt").write_text("one one\r\ntwo\r\n")
    edits: list[dict[str, Any]] = [
        {"path": "hello.py", "old": "nowhere", "new": ""},
        {"path": "twice.txt", "old": "one", "new": "1"},
        {"path": "twice.txt", "old": "", "new": "1"},
        {"path": "missing.txt", "old": "one", "new": "1"},
        {"path": "twice.txt", "old": "one one\ntwo\n", "new": "1\n2\n"},
    ]
    async with coding(version, project, calls(*(("edit", edit) for edit in edits)), Say("Done.")) as it:
        asked = it.answer("allow_once")
        assert await it.prompt("Edit") == "end_turn"
        assert len(asked) == 1
        assert [it.statuses(n)[-1] for n in range(5)] == ["failed"] * 4 + ["completed"]
        assert (project / "twice.txt").read_bytes() == b"1\r\n2\r\n"


@pytest.mark.requirement("D4")
@VERSIONS
async def test_the_model_can_be_switched_in_the_session(version: int, project: Path) -> None:
    async with coding(version, project, Say("I am small."), Say("I am large.")) as it:
        await it.prompt("Who are you?")
        if version == 1:
            await it.client.ask("session/set_model", {"sessionId": it.session, "modelId": "large"})
        else:
            await it.choose("model", "large")
        await it.prompt("And now?")
        assert [request["model"] for request in it.server.requests] == ["small", "large"]
        assert [m["content"] for m in it.server.told()] == ["Who are you?", "I am small.", "And now?"]


@pytest.mark.requirement("C1")
@VERSIONS
async def test_images_and_resources_reach_the_model_now_and_later(version: int, project: Path) -> None:
    blocks = [
        text("Look:"),
        {"type": "image", "mimeType": "image/png", "data": PIXEL},
        {"type": "resource", "resource": {"uri": "file:///a.py", "text": "x = 1"}},
        {"type": "resource_link", "name": "b.py", "uri": "file:///b.py"},
    ]
    async with coding(version, project, Say("I see."), Say("Still.")) as it:
        await patiently(it.client.begin("session/prompt", {"sessionId": it.session, "prompt": blocks}))
        await it.client.until(lambda: version == 1 or it.client.ends(it.session) == 1)
        await it.prompt("Still there?")
        for request in (0, 1):
            content = it.server.told(request)[0]["content"]
            assert [part["type"] for part in content] == ["text", "image_url", "text", "text"]
            assert content[1]["image_url"]["url"] == f"data:image/png;base64,{PIXEL}"
            assert content[2]["text"] == '<resource uri="file:///a.py">\nx = 1\n</resource>'


@pytest.mark.requirement("E4")
@VERSIONS
async def test_tools_of_mcp_servers_are_tools_of_the_model(version: int, project: Path) -> None:
    script = [calls(("mcp_it_echo", {"text": "hi"}), ("mcp_it_fail", {})), Say("Done.")]
    async with coding(version, project, *script, mcpServers=[wire(version=version)]) as it:
        asked = it.answer("allow_once")
        assert await it.prompt("Use them") == "end_turn"
        assert len(asked) == 2
        assert [c["title"] for c in it.calls] == ["it: echo", "it: fail"]
        assert [it.statuses(n)[-1] for n in (0, 1)] == ["completed", "failed"]
        assert "hi" in results(it)[0]
        assert "tool 'fail' failed" in results(it)[1]


async def test_tools_of_mcp_servers_are_under_the_modes_too(project: Path) -> None:
    script = [Say("None."), calls(("mcp_it_echo", {"text": "hi"})), Say("Done.")]
    async with coding(2, project, *script, mcpServers=[wire(version=2)]) as it:
        await it.choose("mode", "ask")
        await it.prompt("Which tools have you?")
        # One says that it only reads. Another says that, and that it destroys something.
        assert it.server.tools() == READING | {"mcp_it_cwd"}
        await it.choose("mode", "auto")
        await it.prompt("And now?")
        assert "mcp_it_echo" in it.server.tools()
        assert it.statuses() == ["pending", "in_progress", "completed"]
        assert not it.client.asked


@VERSIONS
async def test_without_a_model_it_says_what_to_set(version: int, project: Path) -> None:
    async with serving(coding_agent(CodeSettings())) as host:
        client = await host.client(version)
        assert await client.prompt(await client.new(str(project)), "Hello?") == "end_turn"
        assert client.said() == NO_MODEL
        assert "HOLDFAST_MODEL" in NO_MODEL


@VERSIONS
async def test_a_model_that_cannot_be_used_is_a_clear_failure(
    version: int, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for choice, said in (
        (CodeSettings(("openai:gpt-5.2",)), "OPENAI_API_KEY"),
        (CodeSettings(("nobody:nothing",)), "nobody"),
        (CodeSettings(("small",), "localhost:11434"), "must be an address"),
        (CodeSettings(("small",), "http://local host/"), "must be an address"),
    ):
        async with serving(coding_agent(choice)) as host:
            client = await host.client(version)
            session = await client.new(str(project))
            if version == 1:
                params = {"sessionId": session, "prompt": [text("Hello?")]}
                message = (await client.refusal("session/prompt", params)).message
            else:
                assert await client.prompt(session, "Hello?") == "error"
                message = client.updates("state_update")[-1]["error"]["message"]
            assert said in message


async def test_sessions_of_one_version_go_on_in_the_other(project: Path, tmp_path: Path) -> None:
    async with coding(1, project, Say("one"), Say("two"), store=tmp_path / "s.db") as it:
        await it.prompt("first")
        other = await it.host.client(2)
        await other.resume(it.session, str(project), replayFrom={"type": "start"})
        assert [m["sessionUpdate"] for m in conversation(other.updates())][:2] == ["user_message", "agent_message"]
        assert await other.prompt(it.session, "second") == "end_turn"
        assert [m["content"] for m in it.server.told()] == ["first", "one", "second"]


@pytest.mark.requirement("C7")
@VERSIONS
async def test_all_that_it_shows_and_asks_is_what_the_official_schemas_want(version: int, project: Path) -> None:
    script = [
        Say("Let me look. ", (("read", {"path": "hello.py"}), ("read", {"path": "../no"})), thought="Well. "),
        calls(EDIT, ("write", {"path": "new.txt", "text": "x"}), ("run", {"command": "echo out; exit 2"})),
        calls(("no_such_tool", {})),
        Say("Done.", finish="length"),
    ]
    async with coding(version, project, *script) as it:
        it.answer("allow_once")
        assert await it.prompt("Everything") == "max_tokens"
        sent = [message for message in it.client.heard if "method" in message]
        assert {message["method"] for message in sent} == {"session/update", "session/request_permission"}
        faults = [fault for message in sent for fault in judge(version, message["method"], encoded(message))]
        assert faults == []


def encoded(message: dict[str, Any]) -> bytes:
    return LIKE_OTHERS.sub(b"1", json.dumps(message).encode())
