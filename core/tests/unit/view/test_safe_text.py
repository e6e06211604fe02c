"""Text of strangers, as it is shown."""

from __future__ import annotations

import pytest

from holdfast.view.safe_text import safe_line, safe_text, terminal_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a␍b"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("\x9b31m\x7f\0", "\ufffd31m␡␀"),
        ("safe\u202etxt.exe\u2066", "safe\ufffdtxt.exe\ufffd"),
        ("\ud800", "\ufffd"),
        ("👩\u200d💻 é e\u0301 שלום", "👩\u200d💻 é e\u0301 שלום"),
    ],
)
def test_what_could_steer_is_shown_as_a_picture_of_itself(text: str, shown: str) -> None:
    assert safe_text(text) == shown


def test_one_line_is_one_line() -> None:
    assert safe_line(" a\n b\u2028c\t\x1bd ") == "a b c ␛d"


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (b"\x1b[1;31mred\x1b[0m\n", "red\n"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        (b" 10%\r 50%\r100%\ndone\r\n", "100%\ndone\n"),
        (b"N\x08NA\x08A", "NA"),
        (b"ab\x08\x08cd", "cd"),
        (b"\x1b(B\x1b=x", "x"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"\x1b[31", "␛[31"),
    ],
)
def test_output_of_a_terminal_is_what_was_there_in_the_end(output: bytes, shown: str) -> None:
    assert terminal_text(output) == shown
