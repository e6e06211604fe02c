"""Texts compared line by line: the patch always makes the new text of the old one, however long they are."""

from __future__ import annotations

import re
from difflib import unified_diff
from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.view.line_diff import unified_patch

lines = st.lists(st.sampled_from(["a", "b", "c", "", "longer", "-x", "+y"]), max_size=30)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def patched(old: list[str], patch: list[str]) -> list[str]:
    """Return what a patch makes of a text; it must fit the text."""
    new: list[str] = []
    at = 0
    for line in patch[2:]:
        if hunk := _HUNK.fullmatch(line):
            start = int(hunk[1]) - (hunk[2] != "0")
            new += old[at:start]
            at = start
            assert len(new) == int(hunk[3]) - (hunk[4] != "0")
        elif line[0] == "+":
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [old[at]] if line[0] == " " else []
            at += 1
    return new + old[at:]


@given(lines, lines)
@example([], ["a"])
@example(["a"], [])
@example(["a", "b", "c", "a"], ["c", "a", "b", "a"])
def test_a_patch_makes_the_new_text_of_the_old_one(old: list[str], new: list[str]) -> None:
    patch = list(unified_patch(old, new, "x", "y"))
    assert bool(patch) == (old != new)
    assert patched(old, patch) == new


def test_a_patch_of_usual_texts_is_the_one_that_everybody_makes() -> None:
    old = [f"line {number}" for number in range(60)]
    new = [*old[:10], "changed", *old[11:40], *old[43:], "at the end"]
    assert list(unified_patch(old, new, "a", "b")) == list(unified_diff(old, new, "a", "b", lineterm=""))


def test_long_texts_are_compared_at_once() -> None:
    random = Random(7)
    for old in ([f"line {number}" for number in range(10_000)], [random.choice("ab") for _ in range(10_000)]):
        new = [f"{line} changed" if at % 2 else line for at, line in enumerate(old)]
        assert patched(old, list(unified_patch(old, new, "x", "y"))) == new
