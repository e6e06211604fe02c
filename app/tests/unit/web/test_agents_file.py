"""`agents.toml`: which agents the page may start, and who has said so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.errors import UsageError
from holdfast.server.host import Host
from holdfast_app.web.agents import PageAgent
from holdfast_app.web.agents_file import AgentEntry, AgentsFile, AgentsOfFile
from holdfast_app.web.no_agent import NoAgent

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_put_in_is_read_again_whatever_characters_it_has(tmp_path: Path) -> None:
    odd = AgentEntry(command=("/opt/a b/run", '--say="ü\n\x7f\\"', "[x]"))
    file = AgentsFile(tmp_path / "agents.toml")
    assert file.put('my "agent".x', odd) and file.put("weather", AgentEntry(run="/home/ada/weather.py:agent"))
    assert not file.put('my "agent".x', odd)
    again = AgentsFile(tmp_path / "agents.toml")
    assert again.entries() == {'my "agent".x': odd, "weather": AgentEntry(run="/home/ada/weather.py:agent")}
    assert again.remove("weather") and not again.remove("weather")
    assert list(file.entries()) == ['my "agent".x']


def test_only_its_user_can_read_the_file(tmp_path: Path) -> None:
    file = AgentsFile(tmp_path / "agents.toml")
    file.put("a", AgentEntry(command=("a",)))
    assert file.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("P13")
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    file = AgentsFile(tmp_path / "agents.toml")
    file.put("a", AgentEntry(command=("a",)))
    file.path.chmod(mode)
    with pytest.raises(UsageError, match="chmod go-w"):
        file.entries()


@pytest.mark.parametrize(
    "text",
    [
        "agents = 3",
        "[agents.a]",
        '[agents.a]\ncommand = ["x"]\nrun = "y"',
        '[agents.a]\nshell = "x"',
        "[agents.a",
        "\x00",
    ],
)
def test_a_file_that_makes_no_sense_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "agents.toml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(UsageError, match="makes no sense"):
        AgentsFile(path).entries()


def test_an_agent_that_cannot_be_made_takes_no_other_with_it_and_says_why(tmp_path: Path) -> None:
    file = AgentsFile(tmp_path / "agents.toml")
    for name in ("good", "broken", "gone"):
        file.put(name, AgentEntry(command=(name,)))

    def make(name: str, _: AgentEntry) -> PageAgent:
        if name == "broken":
            raise ZeroDivisionError("its author divides by zero")
        if name == "gone":
            raise UsageError("there is no such file")
        return PageAgent(name, Host(NoAgent(), store=":memory:"))

    agents = AgentsOfFile(file, make)
    assert list(agents.known()) == ["good"]
    assert "divides by zero" in agents.trouble("broken")
    assert agents.trouble("gone") == "there is no such file"
    assert agents.trouble("good") == agents.trouble("unknown") == ""
    file.path.chmod(0o666)
    assert agents.known() == {} and "chmod go-w" in agents.trouble("good")
