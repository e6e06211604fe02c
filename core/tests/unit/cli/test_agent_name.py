"""FILE:NAME on a command line: which colon separates, and which belongs to the path."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.agent_name import split_agent_name


@pytest.mark.parametrize(
    ("given", "file", "name"),
    [
        ("weather.py", "weather.py", ""),
        ("weather.py:agent", "weather.py", "agent"),
        (r"C:\agents\weather.py", r"C:\agents\weather.py", ""),
        (r"C:\agents\weather.py:agent", r"C:\agents\weather.py", "agent"),
        ("C:/agents/weather.py", "C:/agents/weather.py", ""),
        ("a:b/weather.py", "a:b/weather.py", ""),
    ],
)
def test_the_colon_before_a_name_separates_and_any_other_is_part_of_the_path(given: str, file: str, name: str) -> None:
    assert split_agent_name(given) == (file, name)


def test_a_file_whose_own_name_has_a_colon_is_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("weather.py:agent").touch()
    assert split_agent_name("weather.py:agent") == ("weather.py:agent", "")
