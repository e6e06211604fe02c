"""What an agent is called that a command line names."""

from __future__ import annotations

import pytest

from holdfast.agent_name import name_of_command


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("gemini --acp", "gemini"),
        ("/usr/local/bin/opencode acp", "opencode"),
        ("python weather.py", "weather"),
        ("/usr/bin/python3.12 -u -W error agents/weather.py --acp", "weather"),
        ("python -m weather.serve --acp", "weather"),
        ("python -c pass", "python"),
        ("python", "python"),
        ("node --no-warnings dist/weather.mjs", "weather"),
        ("bash ./weather.sh", "weather"),
        ("npx -y @google/gemini-cli --acp", "gemini-cli"),
        ("npx -y claude-agent-acp@1.2.3", "claude-agent-acp"),
        ("uv run weather.py", "weather"),
        ("uv run python weather.py", "weather"),
        ("uvx fast-agent-acp -x", "fast-agent-acp"),
        ("npx", "npx"),
        ("./weather.py", "weather"),
    ],
)
def test_a_command_is_called_after_what_it_runs(command: str, name: str) -> None:
    assert name_of_command(command.split()) == name
