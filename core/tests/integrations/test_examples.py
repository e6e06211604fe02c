"""The examples, each run as its reader would run it, with scripted models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.tests.support.acp import serving
from core.tests.support.libraries import told
from core.tests.support.mcp import wire
from core.tests.support.scripted import allow, calls, statuses
from holdfast.run.load_agent import load_agent
from holdfast.testing.model_server import ModelServer, Say
from holdfast.testing.model_server import calls as calling

EXAMPLES = Path(__file__).parent.parent.parent.parent / "examples"

VERSIONS = pytest.mark.parametrize("version", [1, 2])


def example(name: str) -> Any:
    return load_agent(str(EXAMPLES / name))


@VERSIONS
async def test_the_agent_with_modes_and_options(version: int) -> None:
    async with serving(example("modes_and_options.py")) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "Hello")
        assert client.said() == "Hallo"
        assert "small, word" in client.said("agent_thought")
        params = {"sessionId": session, "configId": "language", "value": "ja"}
        await client.ask("session/set_config_option", params)
        client.forget()
        await client.prompt(session, "Hello")
        assert client.said() == "こんにちは"


@VERSIONS
async def test_the_agent_with_mcp_tools(version: int, tmp_path: Path) -> None:
    async with serving(example("mcp_tools.py")) as host:
        client = await host.client(version)
        allow(client)
        session = await client.new(str(tmp_path), mcpServers=[wire(version=version)])
        await client.prompt(session, "What is there?")
        assert "- it echo: " in client.said()
        client.forget()
        await client.prompt(session, 'it echo {"text": "hello"}')
        assert "hello" in client.said()
        assert statuses(client)[-1] == "completed"
        client.forget()
        await client.prompt(session, "it fail")
        assert "That did not work" in client.said()


@VERSIONS
async def test_the_agent_written_with_pydantic_ai(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    script = [
        calling(("temperature", {"place": "sun"}), ("water", {"minutes": 5}), text="Let me see. "),
        Say("I watered it."),
        Say("34.5 °C."),
    ]
    async with ModelServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-for-nobody")
        async with serving(example("pydantic_agent.py")) as host:
            client = await host.client(version)
            asked = allow(client)
            session = await client.new()
            assert await client.prompt(session, "It is hot") == "end_turn"
            assert [it["title"] for it in calls(client)] == ["Read the thermometer in the sun", "Water for 5 minutes"]
            assert len(asked) == 1
            assert client.said() == "Let me see. I watered it."
            await client.prompt(session, "How hot?")
            assert [it["role"] for it in server.told()] == ["user", "assistant", "tool", "tool", "assistant", "user"]
            usage = client.updates("usage_update")[-1]
            assert usage["used"] == 110
            assert usage["cost"]["amount"] > 0
            assert usage["cost"]["currency"] == "USD"


@pytest.mark.parametrize("name", ["langgraph_agent.py", "openai_agents_agent.py"])  # once: they share HTTP clients
async def test_the_gardeners_written_with_other_libraries(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = [
        calling(("temperature", {"place": "sun"}), ("water", {"minutes": 5}), text="Let me see. "),
        Say("I watered it."),
        Say("34.5 °C."),
    ]
    async with ModelServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-for-nobody")
        monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
        async with serving(example(name)) as host:
            client = await host.client(2)
            asked = allow(client)
            session = await client.new()
            assert await client.prompt(session, "It is hot") == "end_turn"
            assert [it["title"] for it in calls(client)] == ["Read the thermometer in the sun", "Water for 5 minutes"]
            assert len(asked) == 1
            assert client.said() == "Let me see. I watered it."
            await client.prompt(session, "How hot?")
            said = [text for _, text in told(server)]
            assert [text for text in said if text in ("It is hot", "How hot?")] == ["It is hot", "How hot?"]
            assert "The tap was open for 5 minutes." in said
            assert client.updates("usage_update")[-1]["used"] == 110


@VERSIONS
async def test_the_agent_on_plain_clients(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ModelServer([Say("One."), Say("Two.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-for-nobody")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-for-nobody")
        async with serving(example("plain_clients.py")) as host:
            client = await host.client(version)
            session = await client.new()
            assert await client.prompt(session, "first") == "end_turn"
            params = {"sessionId": session, "configId": "model", "value": "claude-opus-4-7"}
            await client.ask("session/set_config_option", params)
            assert await client.prompt(session, "second") == "end_turn"
            assert client.said() == "One.Two."
            assert [it["content"] for it in server.requests[1]["messages"]] == ["first", "One.", "second"]
            assert [it["model"] for it in server.requests] == ["gpt-5.2", "claude-opus-4-7"]


MISTAKEN = """def mean(values):
    return sum(values) / (len(values) - 1)
"""


@VERSIONS
async def test_the_agent_that_mends(version: int, tmp_path: Path) -> None:
    (tmp_path / "stats.py").write_text(MISTAKEN)
    (tmp_path / "test_stats.py").write_text("import stats\nassert stats.mean([1, 2, 3]) == 2\n")
    async with serving(example("mender.py")) as host:
        client = await host.client(version)
        asked = allow(client)
        session = await client.new(str(tmp_path))
        assert await client.prompt(session, "The mean is too large") == "end_turn"
        assert len(asked) == 1
        assert [it["title"] for it in calls(client)] == ["Read stats.py", "Edit stats.py", "Run test_stats.py"]
        assert "The test **passes**" in client.said()
        client.forget()
        await client.prompt(session, "And now?")
        assert client.said() == "There is nothing to mend."


@pytest.mark.timeout(150)
@pytest.mark.skipif(sys.platform != "linux", reason="it finds what to kill in /proc")
def test_the_agent_that_forgets_is_wrapped_killed_and_told_again() -> None:
    command = (sys.executable, str(EXAMPLES / "wrapped_and_killed.py"))
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "every word that was read is there: True" in shown.stdout
    assert shown.stdout.rstrip().endswith("It was heron.")
