"""Roots, titles and ids of sessions."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidParams
from holdfast.model import checked_roots, new_id, new_session_id, title_from


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("cwd", ["/", "/home/me", "/with space/é\U0001f600", "C:\\work", "\\\\server\\share\\dir"])
def test_an_absolute_directory_is_taken_as_it_is(cwd: str) -> None:
    assert checked_roots(cwd) == (cwd, ())


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    "cwd",
    [
        "",
        ".",
        "relative",
        "./here",
        "~",
        "~/home",
        "C:",
        "C:relative",
        "/nul\0byte",
        "/not\udcffunicode",
        None,
        1,
        True,
        [],
        {},
        b"/x",
    ],
)
def test_what_is_not_an_absolute_directory_is_refused(cwd: object) -> None:
    with pytest.raises(InvalidParams, match="cwd"):
        checked_roots(cwd)
    with pytest.raises(InvalidParams, match="additionalDirectories"):
        checked_roots("/work", ["/fine", cwd])


@pytest.mark.requirement("B3")
def test_other_directories_keep_their_order_without_duplicates_and_without_cwd() -> None:
    assert checked_roots("/w", ["/b", "/a", "/b", "/w", "/a/", "/A"]) == ("/w", ("/b", "/a", "/a/", "/A"))
    assert checked_roots("/w", []) == ("/w", ())


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("others", ["/a", None, {"/a": 1}, 3, {"/a"}])
def test_directories_that_are_no_list_are_refused(others: object) -> None:
    with pytest.raises(InvalidParams, match="additionalDirectories"):
        checked_roots("/w", others)


@pytest.mark.requirement("B17")
@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Fix the bug", "Fix the bug"),
        ("  Fix \t the   bug  \nand more", "Fix the bug"),
        ("\n\n   \r\n## Fix **the** `bug`\n", "Fix **the** `bug`"),
        ("#123 is broken", "#123 is broken"),
        ("Why is my_module.__init__ slow?", "Why is my_module.__init__ slow?"),
        ("use ghp_a1B2 and sk_live_9", "use ghp_a1B2 and sk_live_9"),
        ("> ## nested > marks # stay", "nested > marks # stay"),
        ("> quoted\ntext", "quoted"),
        ("[link](http://x) <b>", "[link](http://x) <b>"),
        ("***\n---\nreal", "real"),
        ("```\ncode\n```", "code"),
        ("~~~ python\ncode", "code"),
        ("```inline``` code", "```inline``` code"),
        ("???", "???"),
        ("half of \ud83d it", "half of it"),
        ("\u2028second", "second"),
        ("\x1b[31mred\x07\x00", "[31mred"),
        ("for\u202ereversed\u2066", "for reversed"),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
        ("Übergröße \U0001f600", "Übergröße \U0001f600"),
        ("", None),
        (" \n\t\n", None),
        ("***\n###", None),
    ],
)
def test_a_title_is_the_first_line_that_says_something_as_it_was_written(prompt: str, title: str | None) -> None:
    assert title_from(prompt) == title


@pytest.mark.requirement("B17")
def test_a_long_title_is_cut_and_says_so() -> None:
    assert title_from("x" * 80) == "x" * 80
    assert title_from("x" * 81) == "x" * 79 + "…"
    assert title_from("x" * 78 + " yyyyy") == "x" * 78 + "…"
    assert title_from("my key is " + "k" * 100) == "my key is…", "half of a key is not left"
    assert title_from("\U0001f600" * 1_000) == "\U0001f600" * 79 + "…"


@pytest.mark.requirement("B17")
@given(st.text())
def test_whatever_the_prompt_a_title_is_short_and_fit_to_be_shown_on_one_line(prompt: str) -> None:
    title = title_from(prompt)
    if title is not None:
        assert 0 < len(title) <= 80
        assert len(title.splitlines()) == 1
        assert title == title.strip()
        assert not any(unicodedata.category(character) == "Cc" for character in title)
        words = title.removesuffix("…").split()
        written = re.split(r"[\s\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+", prompt)
        assert all(any(word in theirs for theirs in written) for word in words)


@pytest.mark.requirement("B1")
def test_session_ids_are_unguessable_and_never_the_same() -> None:
    ids = {new_session_id() for _ in range(1_000)}
    assert len(ids) == 1_000
    assert all(len(bytes.fromhex(session.removeprefix("sess_"))) * 8 >= 128 for session in ids)


def test_ids_inside_a_session_say_what_they_are_of() -> None:
    assert new_id("msg").startswith("msg_")
    assert new_id("msg") != new_id("msg")
