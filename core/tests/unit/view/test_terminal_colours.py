"""What a terminal showed, with its colours."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.model import Entry
from holdfast.view.entries import view_entry
from holdfast.view.safe_text import terminal_text
from holdfast.view.terminal_colours import PLAIN, TextRun, TextStyle, terminal_runs

PIECES = (
    "\x1b[31m", "\x1b[0m", "\x1b[m", "\x1b[1;38;5;200;4m", "\x1b[48;2;10;200;30m", "\x1b[38;5m", "\x1b[38;9;1m",
    "\x1b[99999999999m", "\x1b[K", "\x1b[2A", "\x1b]0;title\x07", "\r", "\n", "\r\n", "\x08", "a", "bc ", "é",
    "\x1b", "\x9b7m",
)  # fmt: skip
RED = TextStyle(foreground=1)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example("\x1b[31mab\r\x1b[0m\n")
@example("\x1b[31ma\x1b[0m\x08b")
def test_colours_change_nothing_about_the_text(output: str) -> None:
    data = output.encode()
    runs = terminal_runs(data)
    assert not runs or "".join(run.text for run in runs) == terminal_text(data)
    assert all(run.text for run in runs)


@pytest.mark.parametrize(
    ("output", "runs"),
    [
        ("a\x1b[31mb\x1b[39mc", [("a", PLAIN), ("b", RED), ("c", PLAIN)]),
        ("\x1b[1;32mok\x1b[22;39m", [("ok", TextStyle(foreground=2, bold=True))]),
        ("\x1b[95;104mx", [("x", TextStyle(foreground=13, background=12))]),
        ("\x1b[38;5;208mx", [("x", TextStyle(foreground=208))]),
        ("\x1b[38;2;255;0;0mx", [("x", TextStyle(foreground=196))]),
        ("\x1b[38:2:128:128:128mx", [("x", TextStyle(foreground=244))]),
        ("\x1b[7mx\x1b[27m", [("x", TextStyle(swapped=True))]),
        ("\x1b[31m10%\r\x1b[32m100%", [("100%", TextStyle(foreground=2))]),
    ],
)
def test_colours_are_those_the_program_asked_for(output: str, runs: list[tuple[str, TextStyle]]) -> None:
    assert list(terminal_runs(output.encode())) == [TextRun(*run) for run in runs]


def test_an_output_without_colours_has_no_runs() -> None:
    assert terminal_runs(b"plain\x1b[2Ktext") == ()
    assert terminal_runs(b"\x1b[31m" + b"x" * (1 << 20)) == ()


@pytest.mark.requirement("P13")
@pytest.mark.parametrize(
    "hidden", ["rm -rf ~\r\x1b[0mls", "rm\x08\x08\x1b[0mls", "rm -rf ~\x1b[2K\x1b[Gls", "\x1b[8mrm\x1b[0m"]
)
def test_what_a_tool_gave_cannot_hide_a_part_of_it(hidden: str) -> None:
    entry = Entry("tool_call_update", "c", whole=True)
    entry.append({"type": "content", "content": {"type": "text", "text": hidden}}, {})
    (part,) = view_entry(entry).parts
    assert "rm" in part.text
