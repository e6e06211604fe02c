"""Programs that should be agents and are not, or not yet: whoever connects hears in time what they did instead."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

import holdfast
from core.tests.support.clients import odd
from core.tests.support.links import PATIENCE
from holdfast import Agent, Turn
from holdfast.errors import MethodNotFound, ProcessExited, RemoteError, StartTimeout

if TYPE_CHECKING:
    from holdfast.client.handshake import ProtocolChoice


async def test_a_program_that_says_nothing_is_given_up_in_time() -> None:
    with pytest.raises(StartTimeout, match=r"has not answered `initialize` for 0\.5 seconds; it wrote nothing"):
        async with holdfast.connect(sys.executable, "-c", "import time; time.sleep(600)", timeout=0.5):
            pass


async def test_what_it_did_instead_is_quoted() -> None:
    script = "import sys, time; print('Usage: mytool FILE', flush=True); sys.stderr.write('no file'); time.sleep(600)"
    for seconds in (2, 10, 50):  # on a busy machine it may take long to begin
        with pytest.raises(StartTimeout) as caught:
            async with holdfast.connect(sys.executable, "-c", script, timeout=seconds):
                pass
        if caught.value.stderr:
            break
    assert "it wrote to stdout:\nUsage: mytool FILE" in str(caught.value)
    assert (caught.value.stdout, caught.value.stderr) == ("Usage: mytool FILE", "no file")


async def test_who_does_not_want_to_be_limited_is_not() -> None:
    async with odd(timeout=None) as agent:
        assert agent.protocol == 1


async def test_what_a_program_prints_before_it_exits_is_quoted() -> None:
    with pytest.raises(ProcessExited, match="Please log in first:\n  odd login") as caught:
        async with odd("dies talking"):
            pass
    assert caught.value.returncode == 4
    assert caught.value.stdout == "Please log in first:\n  odd login"


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_the_reason_in_the_data_of_an_error_is_told(version: str) -> None:
    async with odd(version) as agent:
        session = await agent.new_session()
        watching = session.updates()
        with pytest.raises(RemoteError, match=r"Internal error \(-32603\): The key has expired") as caught:
            await session.prompt("explain")
        assert caught.value.reason == "The key has expired"
        assert caught.value.data == {"details": "The key has expired"}
        await session.close()
        ends = [update.update() async for update in watching if update.kind == "state_update"]
        assert ends[-1]["error"]["data"] == {"details": "The key has expired"}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (None, "No (1)"),
        ({}, "No (1)"),
        ("because", "No (1): because"),
        ({"details": "because"}, "No (1): because"),
        ({"error": {"message": "because"}}, "No (1): because"),
        ({"status": 401}, 'No (1): {"status": 401}'),
        ("No", "No (1)"),
        ("x" * 9_000, f"No (1): {'x' * 2_000}…"),
    ],
)
def test_an_error_quotes_what_its_data_says(data: object, text: str) -> None:
    assert str(RemoteError(1, "No", data)) == text


def test_the_ids_of_logins_are_for_programs_and_not_quoted() -> None:
    assert str(RemoteError(-32000, "Log in first", {"methods": ["pin"]})) == "Log in first (-32000)"
    assert RemoteError(-32000, "Log in first", {"methods": [], "details": "it expired"}).reason == "it expired"


@pytest.mark.parametrize(
    ("status", "how"),
    [(0, "exited with status 0"), (3, "exited with status 3"), (137, "was killed (signal 9)"),
     (-15, "was killed (signal 15)"), (255, "exited with status 255"), (None, "is gone")],
)  # fmt: skip
def test_how_a_process_ended_is_told_in_words(status: int | None, how: str) -> None:
    assert str(ProcessExited("gemini", status, "")) == f"gemini {how}; it wrote nothing to stderr"


CHATTER = """
[session/create] id=1 phase=ready
2026-11-16T14:41:27.005Z  INFO codex_core: ready
2026-11-16 14:41:27,005 - root - DEBUG - ready
INFO:     ready
[perf] event loop stall of 312 ms
level=info msg=ready
{"level":"debug","msg":"ready"}
(node:4242) ExperimentalWarning: SQLite is young
(Use `node --trace-warnings ...` to show where the warning was created)
/lib/site.py:12: DeprecationWarning: this is old
  import old
"""


def test_what_a_process_wrote_in_passing_is_not_quoted_as_its_last_words() -> None:
    assert str(ProcessExited("qwen", 1, CHATTER)) == "qwen exited with status 1; it wrote no error to stderr"
    error = "Error: INFO is no key\n    at start (agent.js:1)\n  level 3"
    assert str(ProcessExited("qwen", 1, f"{CHATTER}{error}{CHATTER}")).endswith(f"it wrote to stderr:\n{error}")
    for word in ("INFORMATION", "[error] no key", "WARN: no key", "Information: no key", "[perform] no"):
        assert str(ProcessExited("qwen", 1, word)).endswith(word)
    assert ProcessExited("qwen", 1, CHATTER).stderr == CHATTER


@pytest.mark.parametrize(
    ("code", "name"),
    [(("-m", "holdfast", "run", "nothing.py"), "holdfast run nothing.py"), (("nothing.py",), "nothing.py")],
)
async def test_a_program_that_python_runs_is_told_by_its_own_name(code: tuple[str, ...], name: str) -> None:
    with pytest.raises(ProcessExited, match=f"^{name} exited with status"):
        async with holdfast.connect(sys.executable, *code):
            pass


# Who we are, and what we see


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_client_has_the_name_it_gives_itself(protocol: ProtocolChoice) -> None:
    habit = "v2" if protocol == 2 else "v1"
    async with odd(habit, protocol=protocol, name="my-editor", version="7", meta={"my/thing": 1}) as agent:
        session = await agent.new_session(meta={"my/new": 2})
        await session.prompt("say hello", meta={"my/prompt": 3})
        hello, new, prompt, *_ = json.loads(await session.ask_text("heard"))
    about = {"name": "my-editor", "version": "7"}
    assert hello["params"]["clientInfo" if protocol == 1 else "info"] == about
    assert hello["params"]["_meta"] == {"my/thing": 1}
    assert new["params"]["_meta"] == {"my/new": 2}
    assert prompt["params"]["_meta"] == {"my/prompt": 3}


async def test_a_client_without_a_name_of_its_own_has_ours_and_says_nothing_more() -> None:
    async with odd() as agent:
        hello, new, *_ = json.loads(await (await agent.new_session()).ask_text("heard"))
    assert hello["params"]["info"]["name"] == "holdfast"
    assert "_meta" not in hello["params"]
    assert "_meta" not in new["params"]


async def test_every_line_of_the_conversation_can_be_watched() -> None:
    frames: list[tuple[str, bytes]] = []

    def watch(direction: str, line: bytes) -> None:
        frames.append((direction, line))

    async with odd(on_frame=watch) as agent:
        session = await agent.new_session()
        await session.ask_text("say hi")
    sent = [json.loads(line)["method"] for direction, line in frames if direction == "out"]
    assert sent == ["initialize", "session/new", "session/prompt"]
    received = [json.loads(line) for direction, line in frames if direction == "in"]
    assert received[0]["result"]["protocolVersion"] == 1
    assert received[-1]["result"] == {"stopReason": "end_turn"}


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_methods_that_are_not_of_the_protocol_are_answered_by_whoever_can(version: str) -> None:
    notified: list[tuple[str, Any]] = []

    async def answer(method: str, params: Any) -> object:
        if method == "_odd/clock":
            return {"now": 12, "asked": params["zone"]}
        raise MethodNotFound(f"What is {method}?")

    async def note(method: str, params: Any) -> None:
        notified.append((method, params))
        raise ZeroDivisionError  # harms nobody

    async with odd(version, on_request=answer, on_notification=note) as agent:
        session = await agent.new_session()
        said = json.loads(await session.ask_text('request _odd/clock {"zone": "UTC"}'))
        assert said == {"now": 12, "asked": "UTC"}
        refused = json.loads(await session.ask_text("request unprefixed"))
        assert (refused["code"], refused["message"]) == (-32601, "What is unprefixed?")
        await session.prompt('notify _odd/weather {"warm": true}')
        await session.prompt("notify weather")
        assert notified == [("_odd/weather", {"warm": True}), ("weather", {})]


async def test_an_agent_of_this_process_can_take_its_time() -> None:
    slow = Agent("slow", version="1")

    @slow.prompt
    async def answer(turn: Turn) -> None:
        await asyncio.sleep(0.2)
        await turn.say("done")

    async with holdfast.connect(slow, timeout=PATIENCE) as agent:
        assert await (await agent.new_session()).ask_text("go") == "done"
