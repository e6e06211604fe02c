"""The agents that people have, and the names that each has."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast_app.importers import AGENTS
from holdfast_app.known_agents import KNOWN_AGENTS, name_of_wrapped, one_name

pytestmark = pytest.mark.requirement("F1")


def test_no_name_is_that_of_two_agents() -> None:
    names = Counter(name for key, agent in KNOWN_AGENTS.items() for name in (key, *agent.aliases))
    assert [name for name, times in names.items() if times > 1] == []


def test_each_agent_has_one_name_whatever_it_is_called() -> None:
    for name, agent in KNOWN_AGENTS.items():
        assert {one_name(alias) for alias in (name, *agent.aliases)} == {name}
    assert one_name("weather") == "weather"
    assert one_name("") == ""


@pytest.mark.parametrize("name", AGENTS)
def test_sessions_are_imported_for_a_known_agent(name: str) -> None:
    assert name in KNOWN_AGENTS


@pytest.mark.parametrize(
    ("given", "own", "command", "name"),
    [
        ("mine", "gemini-cli", "gemini --acp", "mine"),
        ("gemini-cli", None, "gemini --acp", "gemini"),
        (None, "@agentclientprotocol/claude-agent-acp", "npx -y @agentclientprotocol/claude-agent-acp", "claude"),
        (None, "@zed-industries/claude-code-acp", "claude-code-acp", "claude"),
        (None, "Copilot", "copilot --acp", "copilot"),
        (None, "Weather bot", "python weather.py", "Weather bot"),
        (None, None, "npx -y @aaif/goose acp", "goose"),
        (None, None, "/opt/bin/codex-acp", "codex"),
        (None, "Gemini 4", "gemini --acp", "gemini"),
        (None, "heron", "python gemini.py", "heron"),
        (None, None, "python weather.py", None),
        (None, None, "", None),
    ],
)
def test_a_wrapped_agent_has_one_name_whatever_starts_it(
    given: str | None, own: str | None, command: str, name: str | None
) -> None:
    assert name_of_wrapped(given, own, command.split()) == name
