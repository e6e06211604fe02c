"""Servers that fail, hang, die, flood and fork: the session works, the reason is seen, nothing is left (E2 to E5)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.tests.support.links import PATIENCE
from core.tests.support.mcp import QUICK, all_dead, hostile, marked, marks, toolbox, written
from core.tests.support.wire import wait_for_death
from holdfast.errors import McpError, ServerUnavailable, ToolFailed, ToolTimeout
from holdfast.mcp import Progress, StdioServer
from holdfast.model import Elicitation, ElicitationAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.mcp import ToolResult
    from holdfast.mcp.connection import ServerConnection

QUESTIONS = 8
"""So many may be open."""

SECRET = "hunter2-and-more"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "marks"


# How they start


@pytest.mark.requirement("E2")
async def test_a_server_starts_in_the_sessions_directory_with_a_trimmed_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_API_KEY", "ours alone")
    async with toolbox(hostile(KEY="given"), cwd=tmp_path) as box:
        assert (await box.call("it", "cwd")).text == str(tmp_path)
        env = json.loads((await box.call("it", "env")).text)
    assert env["KEY"] == "given"
    assert env["PATH"] == os.environ["PATH"]
    assert "OUR_API_KEY" not in env


@pytest.mark.requirement("E2")
@pytest.mark.parametrize("command", ["no-such-program", "/no/such/program", "./relative", "bin/relative"])
async def test_a_command_that_is_not_there_fails_that_server_only(command: str) -> None:
    async with toolbox(StdioServer("bad", command), hostile()) as box:
        bad, good = await box.ready()
        assert (bad.state, good.state) == ("failed", "ready")
        assert "cannot start" in (bad.reason or "")
        assert (await box.call("it", "echo", {"text": "hi"})).text == "hi"


@pytest.mark.requirement("E2")
@pytest.mark.parametrize("command", ["./relative", "bin/relative"])
async def test_a_command_that_is_a_relative_path_is_refused_although_it_is_there(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To whom would it be relative? Not to the session's directory, in which anybody may have put something."""
    program = tmp_path / command
    program.parent.mkdir(exist_ok=True)
    program.symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    async with toolbox(StdioServer("it", command, hostile().args), cwd=tmp_path) as box:
        (status,) = await box.ready()
        assert status.state == "failed"
        assert "a command is absolute, or a name to be found on PATH" in (status.reason or "")


@pytest.mark.requirement("E2")
async def test_a_command_is_found_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent) + ":" + os.environ["PATH"])
    server = StdioServer("it", Path(sys.executable).name, hostile().args)
    async with toolbox(server) as box:
        assert [it.state for it in await box.ready()] == ["ready"]


# How they fail


@pytest.mark.requirement("E3")
async def test_servers_connect_at_once(file: Path) -> None:
    servers = [hostile(name=str(n), MARKS=str(file), TOGETHER="3") for n in range(3)]
    async with toolbox(*servers) as box:
        assert [it.state for it in await box.ready()] == ["ready"] * 3


@pytest.mark.requirement("E3")
async def test_servers_that_hang_fail_alone(file: Path) -> None:
    servers = [hostile("silent", name=f"silent{n}", MARKS=str(file)) for n in range(3)]
    async with toolbox(*servers, hostile(), limits=QUICK._replace(start=5.0)) as box:
        assert (await box.call("it", "echo", {"text": "hi"})).text == "hi"
        states = await box.ready()
        assert [it.state for it in states] == ["failed"] * 3 + ["ready"]
        assert "not ready within 5 s" in (states[0].reason or "")
        assert sorted(box.fails()) == ["silent0", "silent1", "silent2"]
        assert {it.server for it in await box.tools()} == {"it"}
        assert all_dead(file) == 3


@pytest.mark.requirement("E3", "P10")
async def test_a_server_that_exits_at_start_is_quoted_without_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    async with toolbox(hostile("exit", KEY=SECRET)) as box:
        (status,) = await box.ready()
        assert status.state == "failed"
        assert "exited with status 3" in (status.reason or "")
        assert "the key [hidden] does not fit" in (status.reason or "")
        with pytest.raises(ServerUnavailable, match="does not fit"):
            await box.call("it", "echo")
    assert "does not fit" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.requirement("E3", "P10")
async def test_a_server_that_quotes_its_arguments_is_quoted_without_the_secrets_among_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As they are, as part of an address, and in base64."""
    for secret in (("--token", SECRET), (f"https://me:{SECRET}@host.test/?key={SECRET}",), (f"--api-key={SECRET}",)):
        server = hostile("blab", "exit", *secret)
        async with toolbox(server) as box:
            (status,) = await box.ready()
            assert "does not fit" in (status.reason or "")
            for text in (status.reason or "", caplog.text):
                assert SECRET not in text
                assert all(b64encode(b"x" * n + SECRET.encode()).decode()[4:16] not in text for n in range(3))
    assert "blab exit" in caplog.text


@pytest.mark.requirement("E3")
async def test_a_server_that_greets_and_goes_is_noticed_although_nobody_calls() -> None:
    async with toolbox(hostile("brief")) as box:
        async with asyncio.timeout(PATIENCE):
            while not box.failures:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert "exited with status 4" in (box.failures[0].reason or "")
        assert [it.state for it in box.servers] == ["failed"]


@pytest.mark.requirement("E3")
async def test_of_much_that_a_server_said_before_it_failed_the_end_is_quoted() -> None:
    async with toolbox(hostile("stderr", "exit")) as box:
        (status,) = await box.ready()
        assert "the very last words\nthe key None does not fit" in (status.reason or "")
        assert len(status.reason or "") < 5_000


@pytest.mark.requirement("E3")
async def test_what_is_no_message_is_skipped() -> None:
    async with toolbox(hostile("garbage")) as box:
        assert (await box.call("it", "echo", {"text": "hi"})).text == "hi"


@pytest.mark.requirement("E3")
async def test_a_server_that_fills_its_stderr_is_not_held_up() -> None:
    async with toolbox(hostile("stderr")) as box:
        assert (await box.call("it", "echo", {"text": "hi"})).text == "hi"
        with pytest.raises(ServerUnavailable, match="I had None"):
            await box.call("it", "crash")


@pytest.mark.requirement("E3")
async def test_a_message_that_is_too_long_ends_the_connection_with_the_reason() -> None:
    async with toolbox(hostile()) as box:
        with pytest.raises(ServerUnavailable, match="more than 16777216 bytes"):
            await box.call("it", "long")
        assert (await box.call("it", "echo", {"text": "again"})).text == "again"


@pytest.mark.requirement("E3")
async def test_a_server_without_handshakes_is_spoken_to_without() -> None:
    async with toolbox(hostile("modern")) as box:
        assert [it.state for it in await box.ready()] == ["ready"]
        assert "echo" in {it.name for it in await box.tools()}


# How they are used


@pytest.mark.requirement("E4")
async def test_tools_resources_and_prompts_of_all_servers_are_listed_under_their_names() -> None:
    async with toolbox(hostile(name="a"), hostile(name="b")) as box:
        tools = await box.tools()
        assert len(tools) == 36  # in two pages each
        assert {(it.server, it.name) for it in tools} >= {("a", "echo"), ("b", "echo"), ("a", "roots")}
        assert [(it.server, it.uri) for it in await box.resources()] == [("a", "test://a"), ("b", "test://a")]
        assert await box.read("b", "test://a") == [{"uri": "test://a", "text": "read"}]
        assert [(it.server, it.name) for it in await box.prompts()] == [("a", "greet"), ("b", "greet")]
        (message,) = await box.prompt("a", "greet", {"who": "Ada"})
        assert message == {"role": "user", "content": {"type": "text", "text": "Greet Ada"}}


@pytest.mark.requirement("E4", "P13")
async def test_a_tool_is_not_believed_to_be_read_only_if_it_is_said_to_destroy_something_too() -> None:
    async with toolbox(hostile()) as box:
        tools = {tool.name: tool for tool in await box.tools()}
    assert (tools["cwd"].read_only, tools["cwd"].destructive) == (True, False)
    assert (tools["crash"].read_only, tools["crash"].destructive) == (False, True)
    assert (tools["echo"].read_only, tools["echo"].destructive) == (False, False)


@pytest.mark.requirement("E4")
async def test_a_server_that_cannot_list_has_nothing_to_offer_and_the_others_have_theirs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with toolbox(hostile("listless", name="a"), hostile("exit", name="b"), hostile(name="c")) as box:
        assert {it.server for it in await box.tools()} == {"c"}
        assert [it.server for it in await box.resources()] == ["a", "c"]
    assert "I have lost my list" in caplog.text


@pytest.mark.requirement("E4")
async def test_a_name_nobody_has_is_said_with_the_names_there_are() -> None:
    async with toolbox(hostile()) as box:
        with pytest.raises(ServerUnavailable, match="it has: it"):
            await box.call("other", "echo")
        with pytest.raises(ToolFailed, match="no tool nothing"):
            await box.call("it", "nothing")


@pytest.mark.requirement("E4", "P10")
@pytest.mark.parametrize("tool", ["fail", "refuse"])
async def test_a_tool_that_fails_says_why_without_secrets(tool: str) -> None:
    async with toolbox(hostile(KEY=SECRET)) as box:
        with pytest.raises(ToolFailed, match=r"\[hidden\]") as caught:
            await box.call("it", tool)
        assert SECRET not in str(caught.value)
        assert (await box.call("it", "echo", {"text": "hi"})).text == "hi"


@pytest.mark.requirement("E4")
async def test_a_call_that_is_cancelled_is_cancelled_over_there_too(file: Path) -> None:
    async with toolbox(hostile(MARKS=str(file))) as box:
        await box.ready()
        call = asyncio.ensure_future(box.call("it", "wait"))
        await written(file, "\n0\n")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await written(file, "\n-")
        assert (await box.call("it", "echo", {"text": "hi"})).text == "hi"


@pytest.mark.requirement("E4")
async def test_a_call_that_hears_nothing_for_too_long_is_given_up() -> None:
    async with toolbox(hostile()) as box:
        await box.ready()
        with pytest.raises(ToolTimeout, match=r"longer than 0\.2 s"):
            await box.call("it", "wait", timeout=0.2)
        assert (await box.call("it", "echo", {"text": "hi"})).text == "hi"


@pytest.mark.requirement("E4")
async def test_progress_is_heard_and_starts_the_clock_again() -> None:
    heard: list[Progress] = []

    async def hear(progress: Progress) -> None:
        heard.append(progress)

    async with toolbox(hostile()) as box:
        await box.ready()
        slowly = {"pause": 0.9}  # five times: longer than the limit, which each by itself is far from
        assert (await box.call("it", "creep", slowly, timeout=4.0, on_progress=hear)).text == "done"
        assert (await box.call("it", "progress", on_progress=hear)).text == "done"
    assert heard[-1] == Progress(3, 3, "step 3")
    assert str(heard[-1]) == "3/3 step 3"
    assert len(heard) == 8


@pytest.mark.requirement("E4")
async def test_no_progress_is_heard_after_the_end() -> None:
    heard: list[Progress] = []

    async def hear(progress: Progress) -> None:
        heard.append(progress)

    async with toolbox(hostile()) as box:
        for _ in range(20):
            await box.call("it", "parting", on_progress=hear)
            at_the_end = len(heard)
            await box.call("it", "echo")
            assert len(heard) == at_the_end


@pytest.mark.requirement("E4")
async def test_who_is_slow_to_hear_of_progress_hears_the_first_and_the_latest_and_holds_nobody() -> None:
    heard: list[float] = []
    listening, go_on = asyncio.Event(), asyncio.Event()

    async def hear(progress: Progress) -> None:
        heard.append(progress.done)
        listening.set()
        await go_on.wait()

    async with toolbox(hostile()) as box:
        hurrying = asyncio.ensure_future(box.call("it", "hurry", {"steps": 50}, on_progress=hear))
        async with asyncio.timeout(PATIENCE):
            await listening.wait()
        assert (await box.call("it", "echo", {"text": "after all 50"})).text == "after all 50"
        assert heard == [0]
        go_on.set()
        async with asyncio.timeout(PATIENCE):
            while len(heard) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await box.call("it", "echo")
        assert (await hurrying).text == "done"
    assert heard == [0, 49]


@pytest.mark.requirement("E4")
async def test_a_server_that_died_is_started_again_by_the_next_call(file: Path) -> None:
    async with toolbox(hostile(MARKS=str(file))) as box:
        with pytest.raises(ServerUnavailable, match=r"(?s)status 9.*I had None and it broke me"):
            await box.call("it", "crash")
        assert [it.state for it in box.servers] == ["failed"]
        assert box.fails() == ["it"]
        assert (await box.call("it", "echo", {"text": "again"})).text == "again"
        assert [it.state for it in box.servers] == ["ready"]
        assert len(marks(file)) == 2


@pytest.mark.requirement("E4")
async def test_a_server_of_which_it_is_just_being_noticed_that_it_is_gone_is_started_again_too(file: Path) -> None:
    async with toolbox(hostile(MARKS=str(file))) as box:
        await box.ready()
        connection: ServerConnection = vars(box)["_connections"]["it"]
        connection.connection_ended("it is gone")
        assert (await box.call("it", "echo", {"text": "again"})).text == "again"
        assert len(marks(file)) == 2


@pytest.mark.requirement("E4")
async def test_a_server_that_dies_again_and_again_is_started_ever_more_rarely(file: Path) -> None:
    async with toolbox(hostile("exit", MARKS=str(file)), limits=QUICK._replace(backoff=0.4)) as box:
        await box.ready()
        starts: list[tuple[float, float]] = []
        async with asyncio.timeout(PATIENCE):
            while len(marks(file)) < 4:
                count, asked = len(marks(file)), time.monotonic()
                with pytest.raises(ServerUnavailable):
                    await box.call("it", "echo")
                if len(marks(file)) > count:
                    starts.append((asked, time.monotonic()))
                await asyncio.sleep(0.02)
    # Each failed some time after it was asked for, and the next was there some time after it was started.
    at_once, then, later = starts
    assert then[1] - at_once[0] >= 0.4
    assert later[1] - then[0] >= 0.8


@pytest.mark.requirement("E4")
async def test_who_asks_for_a_server_that_is_not_started_again_yet_is_told_so(file: Path) -> None:
    async with toolbox(hostile("exit", MARKS=str(file)), limits=QUICK._replace(backoff=50.0)) as box:
        for _ in range(2):
            with pytest.raises(ServerUnavailable, match="does not fit"):
                await box.call("it", "echo")
        with pytest.raises(ServerUnavailable, match="not started again for"):
            await box.call("it", "echo")
        assert len(marks(file)) == 2


@pytest.mark.requirement("E4")
async def test_there_is_an_end_to_how_long_a_server_is_not_started_again(file: Path) -> None:
    async with toolbox(hostile("exit", MARKS=str(file)), limits=QUICK._replace(backoff=0.2, max_backoff=0.3)) as box:
        pauses: list[float] = []
        async with asyncio.timeout(PATIENCE):
            while len(marks(file)) < 5:
                with pytest.raises(ServerUnavailable) as caught:
                    await box.call("it", "echo")
                pauses += map(float, re.findall(r"not started again for ([\d.]+) s", str(caught.value)))
                await asyncio.sleep(0.02)
    assert 0 < max(pauses) <= 0.3


@pytest.mark.requirement("E4")
async def test_a_server_that_did_its_work_for_a_while_is_started_again_at_once() -> None:
    async with toolbox(hostile(), limits=QUICK._replace(backoff=30, max_backoff=0.5)) as box:
        for _ in range(2):
            await box.call("it", "echo")
            await asyncio.sleep(0.6)
            with pytest.raises(ServerUnavailable):
                await box.call("it", "crash")
        assert (await box.call("it", "echo", {"text": "again"})).text == "again"


@pytest.mark.requirement("E4")
async def test_listing_does_not_start_what_never_worked(file: Path) -> None:
    async with toolbox(hostile("exit", MARKS=str(file))) as box:
        for _ in range(3):
            assert await box.tools() == []
        assert len(marks(file)) == 1


@pytest.mark.requirement("E4")
async def test_calls_side_by_side_are_answered_each_with_its_own() -> None:
    async with toolbox(hostile()) as box:
        results = await asyncio.gather(*(box.call("it", "echo", {"text": str(n)}) for n in range(50)))
    assert [it.text for it in results] == [str(n) for n in range(50)]


@pytest.mark.requirement("E4")
async def test_all_who_wait_for_a_server_that_dies_are_told(file: Path) -> None:
    async with toolbox(hostile(MARKS=str(file))) as box:
        await box.ready()
        waiting = [asyncio.ensure_future(box.call("it", "wait")) for _ in range(5)]
        await written(file, "\n" + "0\n" * 5)
        with pytest.raises(ServerUnavailable):
            await box.call("it", "crash")
        for failure in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(failure, ServerUnavailable)


# Asking back


def accepting(asked: list[Elicitation]) -> Callable[[Elicitation], Awaitable[ElicitationAnswer | None]]:
    """A user who says yes to everything."""

    async def elicit(question: Elicitation) -> ElicitationAnswer | None:
        asked.append(question)
        return ElicitationAnswer("accept", {"name": "Ada"})

    return elicit


async def test_a_server_may_ask_the_user_by_a_form() -> None:
    asked: list[Elicitation] = []
    async with toolbox(hostile(), elicit=accepting(asked)) as box:
        assert json.loads((await box.call("it", "elicit")).text) == {"action": "accept", "content": {"name": "Ada"}}
    assert asked[0].mode == "form"
    assert asked[0].params["message"] == "Who?"
    assert asked[0].params["requestedSchema"]["properties"] == {"name": {"type": "string"}}


async def test_a_server_may_send_the_user_to_an_address() -> None:
    asked: list[Elicitation] = []
    async with toolbox(hostile(), elicit=accepting(asked)) as box:
        assert json.loads((await box.call("it", "visit")).text)["action"] == "accept"
    address = {"url": "https://a.test/sign-in", "elicitationId": "visit-1"}
    assert asked == [Elicitation("url", {"mode": "url", "message": "Sign in", **address})]


async def test_a_question_the_client_cannot_show_is_declined() -> None:
    asked: list[Elicitation] = []
    for mode, tool, other in (("form", "elicit", "visit"), ("url", "visit", "elicit")):
        async with toolbox(hostile(), elicit=accepting(asked), modes=lambda mode=mode: {mode}) as box:
            assert json.loads((await box.call("it", other)).text) == {"action": "decline"}
            assert json.loads((await box.call("it", tool)).text)["action"] == "accept"
    assert [it.mode for it in asked] == ["form", "url"]


async def test_a_question_nobody_answers_is_cancelled_and_one_nobody_can_be_asked_is_refused() -> None:
    async def nobody(_: Elicitation) -> ElicitationAnswer | None:
        return None

    async with toolbox(hostile(), elicit=nobody) as box:
        assert json.loads((await box.call("it", "elicit")).text) == {"action": "cancel"}
    async with toolbox(hostile()) as box:
        assert "not supported" in (await box.call("it", "elicit")).text
        assert "not supported" in (await box.call("it", "visit")).text


async def test_a_server_that_asks_and_asks_is_not_heard_beyond_a_few_questions(tmp_path: Path) -> None:
    asked: list[Elicitation] = []
    enough = asyncio.Event()

    async def think(question: Elicitation) -> ElicitationAnswer | None:
        asked.append(question)
        await enough.wait()
        return ElicitationAnswer("decline")

    async with toolbox(hostile(HEARD=str(tmp_path / "heard")), elicit=think) as box:
        nagging = asyncio.ensure_future(box.call("it", "nag", {"times": QUESTIONS + 4}))
        await written(tmp_path / "heard", "cancel " * 3 + "cancel\n")
        enough.set()
        heard = json.loads((await nagging).text)
        assert heard == ["cancel"] * 4 + ["decline"] * QUESTIONS
        assert len(asked) == QUESTIONS
        assert json.loads((await box.call("it", "nag", {"times": 2})).text) == ["decline"] * 2


async def test_a_server_is_told_the_roots_and_that_they_changed(tmp_path: Path) -> None:
    heard, kept = tmp_path / "heard", hostile(HEARD=str(tmp_path / "heard"))
    roots = [str(tmp_path)]
    async with toolbox(kept, cwd=tmp_path, roots=roots) as box:
        assert uris(await box.call("it", "roots")) == [tmp_path.as_uri()]
        await box.change([kept])
        roots.append("/somewhere else/ü")
        assert "list_changed" not in heard.read_text()
        await box.change([kept])
        await written(heard, "notifications/roots/list_changed")
        assert uris(await box.call("it", "roots")) == [tmp_path.as_uri(), "file:///somewhere%20else/%C3%BC"]
        await box.change([kept])
        await box.call("it", "echo")
        assert heard.read_text().count("list_changed") == 1


def uris(told: ToolResult) -> list[str]:
    return [it["uri"] for it in json.loads(told.text)["roots"]]


# How they end


@pytest.mark.requirement("E5")
@pytest.mark.parametrize("manners", [(), ("deaf",), ("family",), ("deaf", "family"), ("silent", "deaf", "family")])
async def test_closing_leaves_no_process(file: Path, manners: tuple[str, ...]) -> None:
    async with toolbox(hostile(*manners, MARKS=str(file))) as box:
        await marked(file, 4 if "family" in manners else 1)
        if "silent" not in manners:
            await box.ready()
    assert all_dead(file) == (4 if "family" in manners else 1)


@pytest.mark.requirement("E5")
async def test_closing_does_not_wait_for_a_server_to_be_ready(file: Path) -> None:
    """A server that exits when its input ends is not waited for any longer."""
    async with toolbox(
        hostile("silent", MARKS=str(file)), limits=QUICK._replace(start=10 * PATIENCE, stop=10 * PATIENCE)
    ):
        await marked(file, 1)
    assert all_dead(file) == 1


@pytest.mark.requirement("E5")
async def test_closing_ends_calls_and_cannot_be_undone(file: Path) -> None:
    async with toolbox(hostile(MARKS=str(file))) as box:
        await box.ready()
        call = asyncio.ensure_future(box.call("it", "wait"))
        await written(file, "\n0\n")
        await box.close()
        with pytest.raises(ServerUnavailable, match="closed"):
            await call
        with pytest.raises(ServerUnavailable, match="closed"):
            await box.call("it", "echo")
    assert all_dead(file) == 1


@pytest.mark.requirement("E5")
async def test_another_list_ends_the_servers_that_are_not_in_it_and_leaves_the_others_alone(file: Path) -> None:
    kept, gone = hostile(name="kept", MARKS=str(file)), hostile(name="gone")
    async with toolbox(kept, gone) as box:
        await box.ready()
        await box.change([kept, hostile(name="new")])
        assert [(it.name, it.state) for it in await box.ready()] == [("kept", "ready"), ("new", "ready")]
        assert len(marks(file)) == 1
        with pytest.raises(McpError):
            await box.call("gone", "echo")


@pytest.mark.requirement("E5")
async def test_a_server_that_is_named_with_something_else_is_another_one(file: Path) -> None:
    async with toolbox(hostile(MARKS=str(file), KEY="old")) as box:
        await box.ready()
        old = marks(file)
        await box.change([hostile(MARKS=str(file), KEY="new")])
        wait_for_death(old)
        assert json.loads((await box.call("it", "env")).text)["KEY"] == "new"
        assert len(marks(file)) == 2
