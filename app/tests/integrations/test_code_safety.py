"""What a person allows is what a person sees (P13), commands see no secrets (P10), odd file names harm nobody (A2)."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.coding import coding
from core.tests.support.acp import patiently, text
from core.tests.support.mcp import wire
from holdfast.testing.model_server import Say, calls
from holdfast_app.code import tools as code_tools

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.coding import Coding

VERSIONS = pytest.mark.parametrize("version", [1, 2])

LONG = "echo " + " ".join(f"word{n}" for n in range(200)) + "; touch HIDDEN"


def results(it: Coding, request: int = -1) -> list[str]:
    """What the model was told that its tools gave."""
    return [message["content"] for message in it.server.told(request) if message["role"] == "tool"]


# What is asked


@pytest.mark.requirement("C8", "P13")
@VERSIONS
async def test_a_long_command_is_shown_whole_before_it_is_allowed(version: int, project: Path) -> None:
    async with coding(version, project, calls(("run", {"command": LONG})), Say("Done.")) as it:
        prompted = asyncio.ensure_future(it.prompt("Run it"))
        asked = await it.client.question()
        (call,) = it.calls
        assert call["title"] == f"Run {LONG}"
        assert call["rawInput"] == {"command": LONG}
        assert (call["kind"], call["status"]) == ("execute", "pending")
        assert "touch HIDDEN" in json.dumps(asked.params)
        asked.select("reject_once")
        await patiently(prompted)
        assert not (project / "HIDDEN").exists()


@pytest.mark.requirement("C8", "P13")
@VERSIONS
async def test_a_command_of_several_lines_is_shown_as_it_is(version: int, project: Path) -> None:
    """In one line its second line would look like a part of the comment."""
    command = "# nothing but `a` comment ```\ntouch HIDDEN\n"
    async with coding(version, project, calls(("run", {"command": command})), Say("Done.")) as it:
        prompted = asyncio.ensure_future(it.prompt("Run it"))
        asked = await it.client.question()
        (call,) = it.calls
        assert call["title"] == "Run # nothing but `a` comment ``` ⏎ touch HIDDEN"
        assert call["content"] == [{"type": "content", "content": text(f"````sh\n{command}\n````")}]
        asked.select("allow_once")
        assert await patiently(prompted) == "end_turn"
        assert (project / "HIDDEN").exists()


@pytest.mark.requirement("C8", "P13")
async def test_a_command_whose_title_does_not_say_it_exactly_is_shown_as_it_is(project: Path) -> None:
    """`rm "a  b"` removes another file than `rm "a b"`, and a title has no two blanks in a row."""
    commands = ('rm "a  b"', "rm a\tb", "rm a\u202eb", "rm \x1b[8ma")
    script = [calls(*[("run", {"command": command}) for command in commands]), Say("Done.")]
    async with coding(2, project, *script) as it:
        asked = it.answer("reject_once")
        assert await it.prompt("Run them") == "end_turn"
        assert len(asked) == len(commands)
        for call, command in zip(it.calls, commands, strict=True):
            assert call["content"][0]["content"] == text(f"```sh\n{command}\n```")


@pytest.mark.requirement("P13")
@VERSIONS
async def test_of_a_large_file_the_change_is_shown_and_what_is_too_long_to_show_is_not_asked_for(
    version: int, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_tools, "MAX_DIFF", 1_000)
    large = project / "large.txt"
    large.write_text("needle\n" + "hay\n" * 250)
    edits: list[tuple[str, dict[str, Any]]] = [
        ("edit", {"path": "large.txt", "old": "needle", "new": "pin"}),
        ("write", {"path": "large.txt", "text": "short\n"}),
        ("write", {"path": "huge.txt", "text": "x" * 1_001}),
    ]
    async with coding(version, project, calls(*edits), Say("Done.")) as it:
        asked = it.answer("allow_once")
        assert await it.prompt("Change them") == "end_turn"
        assert len(asked) == 2
        shown = [call["content"][0]["content"]["text"] for call in it.calls]
        assert shown[0] == "In large.txt, replace once\n\n```\nneedle\n```\n\nby\n\n```\npin\n```"
        assert shown[1].endswith("characters of large.txt by\n\n```\nshort\n\n```")
        assert "too long to be shown" in shown[2]
        assert [it.statuses(n)[-1] for n in range(3)] == ["completed", "completed", "failed"]
        assert large.read_text() == "short\n"
        assert not (project / "huge.txt").exists()


@pytest.mark.requirement("P13", "E4")
async def test_a_tool_of_a_server_is_asked_for_in_the_mode_in_which_it_is_called(project: Path) -> None:
    """The model was offered it in `auto`; the user has switched the mode since."""
    script = [
        calls(("run", {"command": "until [ -e switched ]; do sleep 0.01; done"}), ("mcp_it_echo", {"text": "hi"})),
        Say("Done."),
    ]
    async with coding(2, project, *script, mcpServers=[wire(version=2)]) as it:
        await it.choose("mode", "auto")
        prompted = asyncio.ensure_future(it.prompt("Call it"))
        await it.client.until(lambda: it.server.requests)
        await it.choose("mode", "code")
        (project / "switched").touch()
        asked = await it.client.question()
        assert asked.method == "session/request_permission"
        while not prompted.done():
            for question in it.client.asked:
                question.select("reject_once")
            it.client.asked.clear()
            await asyncio.sleep(0.01)
        assert await prompted == "end_turn"
        assert "did not allow" in results(it)[-1]


@pytest.mark.requirement("P13", "E4")
async def test_in_mode_ask_a_tool_that_reads_only_and_destroys_is_none_that_reads_only(project: Path) -> None:
    """A server may mark a tool as both; what could destroy something is not called without a question."""
    script = [calls(("mcp_it_cwd", {}), ("mcp_it_crash", {})), Say("Done.")]
    async with coding(2, project, *script, mcpServers=[wire(version=2)]) as it:
        await it.choose("mode", "ask")
        assert await it.prompt("Call both") == "end_turn"
        offered = {tool["function"]["name"] for tool in it.server.requests[0]["tools"]}
        assert "mcp_it_cwd" in offered and "mcp_it_crash" not in offered
        assert not it.client.asked


# What commands see


@pytest.mark.requirement("P10")
async def test_commands_see_no_variable_that_nobody_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = ("DATABASE_URL", "MYSQL_PWD", "GH_PAT", "API_KEY_PROD", "HOLDFAST_API_KEY", "WHATEVER")
    for name in (*secret, "NAMED"):
        monkeypatch.setenv(name, f"value of {name}")
    script = [calls(("run", {"command": "env"})), Say("Seen.")]
    async with coding(2, project, *script, pass_env=("NAMED",)) as it:
        it.answer("allow_once")
        assert await it.prompt("Look") == "end_turn"
        (told,) = results(it)
    assert "value of NAMED" in told
    assert f"PATH={os.environ['PATH']}" in told
    assert not [name for name in secret if name in told]


# Names that are not UTF-8


@pytest.mark.requirement("A2", "P9")
@VERSIONS
async def test_a_file_whose_name_is_not_utf_8_is_listed_found_read_and_changed(version: int, project: Path) -> None:
    latin = project / os.fsdecode(b"caf\xe9.txt")
    try:
        latin.write_text("a latin word\n")
    except OSError:
        pytest.skip("this file system has only UTF-8 names")
    script = [
        calls(("list", {}), ("list", {"pattern": "**/*.txt"}), ("search", {"text": "latin"})),
        calls(("read", {"path": r"caf\xe9.txt"}), ("edit", {"path": r"caf\xe9.txt", "old": "latin", "new": "french"})),
        Say("Done."),
    ]
    async with coding(version, project, *script) as it:
        await it.choose("mode", "auto")
        assert await it.prompt("Look") == "end_turn"
        listed, globbed, found, read, _ = results(it)
        assert r"caf\xe9.txt" in listed.split("\n")
        assert globbed == r"caf\xe9.txt"
        assert found == r"caf\xe9.txt:1: a latin word"
        assert read == "a latin word\n"
        assert latin.read_text() == "a french word\n"
        assert it.calls[3]["title"] == r"Read caf\xe9.txt"
