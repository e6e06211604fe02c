"""Tracebacks begin with the author's own code."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.agent import checked_function
from holdfast.diagnostics.tracebacks import LEFT_OUT, MAX_FRAMES, format_failure, is_of_author
from holdfast.errors import UsageError


def failure_of(call: Any) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        call()
    return caught.value


def test_frames_of_holdfast_come_after_those_of_the_author() -> None:
    def mine() -> None:
        checked_function(print, "a thing")

    text = format_failure(failure_of(mine))
    first, _, rest = text.partition(LEFT_OUT)
    assert "in mine" in first and "UsageError: a thing must be an async function" in first
    assert "holdfast/agent/agent.py" not in first and "holdfast/agent/agent.py" in rest


def test_a_failure_without_a_frame_of_the_author_is_shown_whole() -> None:
    text = format_failure(UsageError("never raised"))
    assert text == "holdfast.errors.UsageError: never raised"


def test_what_caused_a_failure_is_shown_too_and_groups_with_their_parts() -> None:
    def mine() -> None:
        try:
            _ = dict[str, int]()["first"]
        except KeyError as e:
            raise ExceptionGroup("several", [ValueError("second"), OSError("third")]) from e

    text = format_failure(failure_of(mine))
    assert all(word in text for word in ("KeyError: 'first'", "ValueError: second", "OSError: third", "direct cause"))


def test_a_stack_without_end_is_cut_in_the_middle() -> None:
    def mine(n: int) -> None:
        if n == 0:
            raise ValueError("bottom")
        (mine if n % 2 else other)(n - 1)

    def other(n: int) -> None:
        mine(n - 1) if n else mine(0)

    text = format_failure(failure_of(lambda: mine(MAX_FRAMES * 3)))
    assert text.count("\n") < 12 * MAX_FRAMES and "more frames" in text and text.rstrip().endswith("ValueError: bottom")


@pytest.mark.parametrize(
    ("filename", "mine"),
    [
        ("/home/ada/weather.py", True),
        ("weather.py", True),
        (asyncio.__file__, False),
        (pytest.__file__, False),
        (str(Path(is_of_author.__code__.co_filename)), False),
        ("<frozen importlib._bootstrap>", False),
    ],
)
def test_whose_code_a_file_is(filename: str, mine: bool) -> None:
    assert is_of_author(filename) is mine
