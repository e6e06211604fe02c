"""MarkdownStream Markdown, cut where later text changes nothing."""

from __future__ import annotations

import pytest

from holdfast.view.markdown_stream import CODE_LINES, PART_CHARS, PART_LINES, MarkdownPart, MarkdownStream


def parts(text: str) -> list[MarkdownPart]:
    streamed = MarkdownStream()
    return [*streamed.feed(text), *streamed.finish()]


def texts(text: str) -> list[str]:
    return [part.text for part in parts(text)]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("one\ntwo\n\nthree", ["one\ntwo", "three"]),
        ("# head\ntext", ["# head", "text"]),
        ("text\n## head\n", ["text", "## head"]),
        ("- a\n- b\n  more\n- c", ["- a", "- b\n  more", "- c"]),
        ("- a\n  - inner\n  - inner\n- b", ["- a\n  - inner\n  - inner", "- b"]),
        ("- a\n\n  of a\n\nnot of a", ["- a\n\n  of a", "not of a"]),
        ("1. a\n2. b\n10. c", ["1. a", "2. b", "10. c"]),
        ("in 2020\n2020. was a year", ["in 2020\n2020. was a year"]),
        ("text\n- item", ["text", "- item"]),
        ("- a\n  ```\n  - no item\n\n  ```\n- b", ["- a\n  ```\n  - no item\n\n  ```", "- b"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\nend", ["| a | b |\n|---|---|\n| 1 | 2 |", "end"]),
        ("a\n\n---\n\nb", ["a", "---", "b"]),
        ("- - -\nb", ["- - -\nb"]),
        ("", []),
        ("\n\n\n", []),
    ],
)
def test_text_is_cut_into_what_belongs_together(text: str, cut: list[str]) -> None:
    assert texts(text) == cut


def test_an_empty_line_stands_where_one_stood_and_around_headings_and_code() -> None:
    assert [part.gap for part in parts("a\n\nb\n# c\nd\n```\ne\n```\nf")] == [False, True, True, True, True, True]
    assert [part.gap for part in parts("- a\n- b\n\n- c\n\nd")] == [False, False, True, True]


def test_code_comes_with_its_language_and_as_it_is() -> None:
    (part,) = parts("```python title=x\ndef f():\n\n    # no heading\n```\n")
    assert part == MarkdownPart("def f():\n\n    # no heading", language="python")


def test_a_block_of_code_that_never_ends_ends_with_the_message() -> None:
    (part,) = parts("~~~\n```\nstill code")
    assert part == MarkdownPart("```\nstill code", language="")


def test_a_fence_is_closed_by_one_that_is_as_long() -> None:
    assert texts("````\n```\n````\nafter") == ["```", "after"]


def test_long_code_comes_in_several_parts() -> None:
    found = parts("```\n" + "x\n" * (2 * CODE_LINES + 1) + "```\n")
    assert [(part.text.count("\n") + 1, part.opens, part.closes) for part in found] == [
        (CODE_LINES, True, False),
        (CODE_LINES, False, False),
        (1, False, True),
    ]
    assert [part.gap for part in found] == [False, False, False]


def test_a_paragraph_without_an_end_is_not_waited_for() -> None:
    streamed = MarkdownStream()
    found = list(streamed.feed("line\n" * (PART_LINES + 1)))
    assert [part.text.count("\n") + 1 for part in found] == [PART_LINES]


def test_a_line_without_an_end_is_cut_between_words() -> None:
    streamed = MarkdownStream()
    found = list(streamed.feed("word " * PART_CHARS))
    assert all(PART_CHARS // 2 < len(part.text) <= PART_CHARS and part.text.endswith("word") for part in found)
    found += streamed.finish()
    assert " ".join(part.text.strip() for part in found) == ("word " * PART_CHARS).strip()


def test_what_is_not_finished_can_be_looked_at() -> None:
    streamed = MarkdownStream()
    assert streamed.rest(100) is None
    assert list(streamed.feed("done\n\nnot ")) == [MarkdownPart("done")]
    assert streamed.rest(100) == MarkdownPart("not ", gap=True)
    assert list(streamed.feed("yet\nfinished")) == []
    assert streamed.rest(100) == MarkdownPart("not yet\nfinished", gap=True)
    assert streamed.rest(4) == MarkdownPart("shed", gap=True)
    assert list(streamed.finish()) == [MarkdownPart("not yet\nfinished", gap=True)]
    assert streamed.rest(100) is None


def test_code_that_is_not_finished_is_looked_at_as_code() -> None:
    streamed = MarkdownStream()
    assert list(streamed.feed("```sh\nls\n")) == []
    assert streamed.rest(100) == MarkdownPart("ls", language="sh", closes=False)


def test_nothing_that_steers_a_terminal_is_left() -> None:
    assert texts("a\x1b[2Jb\x07\x9bc\r\nd") == ["a␛[2Jb␇�c\nd"]


def test_a_carriage_return_hides_nothing() -> None:
    assert texts("rm -rf /\rls") == ["rm -rf /\nls"]
