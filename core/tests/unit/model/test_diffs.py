"""Patches of changes: as `difflib` makes them where texts are short, and in bounded time where they are long."""

from __future__ import annotations

import random
import subprocess
from difflib import unified_diff
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import diffs, line_matching
from holdfast.model.diffs import git_patch, version_2_members
from holdfast.model.line_matching import LineMatcher

if TYPE_CHECKING:
    from pathlib import Path

LINES = st.lists(st.sampled_from([f"{letter}\n" for letter in "abcdefgh"]), max_size=30)


def patched(old: list[str], matcher: LineMatcher, new: list[str]) -> list[str]:
    """Return what the operations of a matcher make of the old lines."""
    made: list[str] = []
    for tag, begin, end, begin_new, end_new in matcher.get_opcodes():
        made += old[begin:end] if tag == "equal" else new[begin_new:end_new]
    return made


@given(LINES, LINES)
def test_a_short_patch_is_that_of_difflib(old: list[str], new: list[str]) -> None:
    made = git_patch("/f", "".join(old), "".join(new)).splitlines(keepends=True)[1:]
    assert made[2:] == list(unified_diff(old, new))[2:]


@given(LINES, LINES, st.integers(0, 40))
def test_what_is_said_to_be_common_is_common_however_little_time_there_is(
    old: list[str], new: list[str], pairs: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_matching, "PAIRS", pairs)
        matcher = LineMatcher(old, new)
        end = (0, 0)
        for at, at_new, size in matcher.get_matching_blocks():
            assert at >= end[0] and at_new >= end[1] and old[at : at + size] == new[at_new : at_new + size]
            end = at + size, at_new + size
        assert patched(old, matcher, new) == new


def test_many_changes_in_a_long_file_are_shown_one_by_one_without_comparing_every_pair_of_lines() -> None:
    old = [f"line {n}\n" for n in range(20_000)]
    new = [line if n % 2 else f"new {n}\n" for n, line in enumerate(old)]
    matcher = LineMatcher(old, new)
    assert sum(size for _, _, size in matcher.get_matching_blocks()) == 10_000
    patch = git_patch("/f", "".join(old), "".join(new))
    assert patch.count("\n-line ") == patch.count("\n+new ") == 10_000


def test_a_long_text_in_which_no_line_is_unique_counts_as_replaced() -> None:
    drawn = random.Random(1)
    old, new = ([f"{drawn.randrange(9)}\n" for _ in range(4_000)] for _ in range(2))
    matcher = LineMatcher(old, new)
    assert [tag for tag, *_ in matcher.get_opcodes() if tag != "equal"] == ["replace"]
    assert patched(old, matcher, new) == new


def test_git_takes_a_patch_of_a_long_file(tmp_path: Path) -> None:
    drawn = random.Random(2)
    old = [f"{drawn.randrange(6_000)}\n" for _ in range(5_000)]
    new = [line for line in old if drawn.random() > 0.1]
    for _ in range(300):
        new.insert(drawn.randrange(len(new)), f"added {drawn.random()}\n")
    file = tmp_path / "f"
    file.write_text("".join(old))
    patch = git_patch(str(file), "".join(old), "".join(new))
    command = ("git", "apply", "--unsafe-paths", f"--directory={tmp_path}", "-p0", "-")
    patch = patch.replace(str(file), "f")
    done = subprocess.run(command, input=patch, text=True, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert file.read_text() == "".join(new)


@given(st.text("ab"), st.text("ab"), st.text("ab"), st.text("ab"))
def test_there_is_a_patch_where_little_differs_however_long_the_texts(begin: str, old: str, new: str, end: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diffs, "MAX_PATCH_BYTES", 4)
        made = version_2_members("/f", begin + old + end, begin + new + end)
    if len(old) + len(new) <= 4:
        assert made["patch"]["text"] == git_patch("/f", begin + old + end, begin + new + end)
    if not begin and not end and old[:1] != new[:1] and old[-1:] != new[-1:]:
        assert ("patch" in made) == (len(old) + len(new) <= 4)


@given(LINES, LINES, st.integers(0, 12), st.integers(0, 12), st.booleans())
def test_what_long_texts_have_in_common_at_both_ends_is_not_compared_line_by_line(
    old: list[str], new: list[str], begin: int, end: int, is_ended: bool
) -> None:
    before, after = [f"begin {n}\n" for n in range(begin)], [f"end {n}\n" for n in range(end)]
    last = [] if is_ended else ["no newline"]
    texts = [*before, *old, *after, *last], [*before, *new, *after, *last]
    whole = git_patch("/f", *map("".join, texts))
    compared: list[int] = []

    class Compared(LineMatcher):
        def __init__(self, old: list[str], new: list[str], *, cut: bool = False) -> None:
            compared.extend([len(old), len(new)])
            super().__init__(old, new, cut=cut)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diffs, "LONG_TEXT", 0)
        patch.setattr(diffs, "_BLOCK", 7)
        patch.setattr(line_matching, "LineMatcher", Compared)
        made = git_patch("/f", *map("".join, texts))
    assert applied(texts[0], made) == texts[1] == applied(texts[0], whole)
    assert not bare_edges(len(texts[0]), made)
    assert max(compared) <= max(len(old), len(new)) + 2 * (diffs.CONTEXT + 1)
    if not set(old) & set(new):  # then there is only one way
        assert made == whole


def test_git_takes_a_patch_of_long_files_in_which_lines_were_copied(tmp_path: Path) -> None:
    """Where the same lines are there twice, it is a matter of taste which of them are new."""
    drawn = random.Random(3)
    for number in range(60):
        old = [f"line {n}\n" if drawn.random() < 0.5 else drawn.choice(["\n", "}\n", "pass\n"]) for n in range(80)]
        new, at = list(old), drawn.randrange(10, 60)
        for _ in range(drawn.randrange(1, 4)):
            begin = at + drawn.randrange(10)
            new[begin:begin] = old[at : at + drawn.randrange(1, 10)]
        (tmp_path / f"f{number}").write_text("".join(old))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(diffs, "LONG_TEXT", 0)
            made = git_patch(f"f{number}", "".join(old), "".join(new))
        command = ("git", "apply", "-p0", "-")
        done = subprocess.run(command, input=made, text=True, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{made}"
        assert (tmp_path / f"f{number}").read_text() == "".join(new)


def bare_edges(size: int, patch: str) -> list[str]:
    """Return the hunks that have less context than they could have, in a file of so many lines."""
    bare: list[str] = []
    for hunk in patch.split("\n@@ ")[1:]:
        head, *lines = hunk.replace("\n\\ No newline at end of file", "").rstrip("\n").split("\n")
        begin, _, length = head.split()[0][1:].partition(",")
        first, count = int(begin) - (length != "0"), int(length or 1)
        before = next(n for n, line in enumerate(lines) if not line.startswith(" "))
        behind = next(n for n, line in enumerate(reversed(lines)) if not line.startswith(" "))
        if before < min(diffs.CONTEXT, first + before) or behind < min(diffs.CONTEXT, size - first - count + behind):
            bare.append(hunk)
    return bare


def applied(old: list[str], patch: str) -> list[str]:
    """Return what a patch makes of lines; it is at the very place that it names."""
    made: list[str] = []
    at = 0
    lines = patch.replace("\n\\ No newline at end of file", "").splitlines(keepends=True)[1:]
    for line in (line.removesuffix("\n") if line[1:] == "no newline\n" else line for line in lines[2:]):
        if line.startswith("@@"):
            begin, _, size = line.split()[1][1:].partition(",")
            to = int(begin) - (size != "0")
            made += old[at:to]
            at = to
        elif line.startswith("+"):
            made.append(line[1:])
        else:
            assert old[at] == line[1:]
            made += [line[1:]] if line.startswith(" ") else []
            at += 1
    return made + old[at:]
