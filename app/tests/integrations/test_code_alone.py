"""The coding agent before it is used: how it is found, what it loads, what it says without its library."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from core.tests.support.acp import serving
from holdfast_app.cli.load_agent import load_agent
from holdfast_app.cli.main import main
from holdfast_app.code import CodeSettings, coding_agent, read_settings

if TYPE_CHECKING:
    from pathlib import Path

OURS = ("holdfast_app.code.coder", "holdfast_app.code.tools", "holdfast.integrations.pydantic_ai")


def test_the_agent_called_code_is_found_and_a_file_of_that_name_goes_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_MODEL", "openai:a, openai:b,,openai:a")
    monkeypatch.chdir(tmp_path)
    agent = load_agent("code")
    assert agent.name == "holdfast-code"
    (model,) = [it for it in agent.options if it.category == "model"]
    assert tuple(model.values()) == ("openai:a", "openai:b")
    assert model.default == "openai:a"
    (tmp_path / "code").write_text("from holdfast import Agent\nagent = Agent('mine')\n")
    with pytest.raises(Exception, match="not a Python file"):
        load_agent("code")


def test_what_is_set_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_MODEL", raising=False)
    monkeypatch.setenv("HOLDFAST_BASE_URL", "http://localhost:1/v1")
    assert read_settings() == CodeSettings((), "http://localhost:1/v1")


def test_nothing_of_pydantic_ai_is_loaded_before_it_is_used() -> None:
    program = (
        "import sys\n"
        "from holdfast_app.cli.load_agent import load_agent\n"
        "import holdfast.run.run_agent, holdfast.testing.demo_agent, holdfast.agent.port\n"
        "load_agent('code')\n"
        "print([it for it in sys.modules if it.partition('.')[0] in ('pydantic_ai', 'pydantic', 'openai', 'mcp')])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("version", [1, 2])
async def test_without_the_library_it_says_what_to_install(
    version: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [it for it in sys.modules if it.startswith(OURS)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    async with serving(coding_agent(CodeSettings(("openai:a",)))) as host:
        client = await host.client(version)
        session = await client.new()
        if version == 1:
            params = {"sessionId": session, "prompt": [{"type": "text", "text": "Hello?"}]}
            message = (await client.refusal("session/prompt", params)).message
        else:
            await client.prompt(session, "Hello?")
            message = client.updates("state_update")[-1]["error"]["message"]
        assert "pip install 'holdfast[code]'" in message


def test_the_command_line_knows_how_to_name_models(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    told = capsys.readouterr().out
    assert "--model PROVIDER:NAME" in told
    assert "--base-url URL" in told
    assert "holdfast run code" in told
