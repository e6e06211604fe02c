from __future__ import annotations

from asyncio import run
from typing import TYPE_CHECKING

import pytest

from holdfast.errors import OutsideRoots, UsageError
from holdfast.workspace import Match, search_files

if TYPE_CHECKING:
    from core.tests.unit.workspace.trees import Tree


def test_a_search_gives_path_number_and_text_of_each_line(tree: Tree) -> None:
    (tree.root / "code.py").write_bytes(b"one\r\nTODO two\r\nthree TODO")
    (tree.root / "sub" / "more.py").write_text("\n\nTODO\n")
    assert run(tree.files.search("TODO")).items == (
        Match("code.py", 2, "TODO two"),
        Match("code.py", 3, "three TODO"),
        Match("sub/more.py", 3, "TODO"),
    )


def test_a_search_stays_where_it_is_told_to(tree: Tree) -> None:
    (tree.root / "x.py").write_text("hit")
    (tree.root / "sub" / "x.md").write_text("hit")
    (tree.root / "sub" / "deep").mkdir()
    (tree.root / "sub" / "deep" / "y.py").write_text("hit")
    assert [match.path for match in run(tree.files.search("hit", "sub"))] == ["sub/x.md", "sub/deep/y.py"]
    assert [match.path for match in run(tree.files.search("hit", glob="*.py"))] == ["x.py", "sub/deep/y.py"]
    assert [match.path for match in run(tree.files.search("hit", glob="sub/*"))] == ["sub/x.md"]
    assert [match.path for match in run(tree.files.search("hit", "x.py"))] == ["x.py"]
    assert [match.path for match in run(tree.files.search("c", tree.other))] == [str(tree.other / "c.txt")]
    with pytest.raises(OutsideRoots):
        run(tree.files.search("what", tree.outside))
    with pytest.raises(FileNotFoundError):
        run(tree.files.search("what", "missing"))


def test_plain_text_is_not_a_regular_expression_unless_it_is_said_to_be(tree: Tree) -> None:
    (tree.root / "x").write_text("a.c\nabc\n")
    assert [match.line for match in run(tree.files.search("a.c", "x"))] == [1]
    assert [match.line for match in run(tree.files.search("a.c", "x", regex=True))] == [1, 2]
    assert [match.line for match in run(tree.files.search("^abc$", "x", regex=True))] == [2]
    assert [match.line for match in run(tree.files.search("ABC", "x", ignore_case=True))] == [2]
    assert [match.line for match in run(tree.files.search(r"[^x]c", "x", regex=True, ignore_case=True))] == [1, 2]


def test_an_empty_line_matches_where_there_is_one(tree: Tree) -> None:
    (tree.root / "x").write_text("a\n\nb\n")
    assert [match.line for match in run(tree.files.search("^$", "x", regex=True))] == [2]


@pytest.mark.parametrize("text", ["", "two\nlines"])
def test_what_is_in_no_line_cannot_be_searched_for(tree: Tree, text: str) -> None:
    with pytest.raises(UsageError, match="without a line break"):
        run(tree.files.search(text))


def test_a_broken_regular_expression_is_a_mistake(tree: Tree) -> None:
    with pytest.raises(UsageError, match=r"'\(' is not a regular expression: missing \)"):
        run(tree.files.search("(", regex=True))


def test_binary_files_links_and_git_are_passed_over(tree: Tree) -> None:
    (tree.root / "binary").write_bytes(b"\0hit")
    (tree.root / "link").symlink_to("real")
    (tree.root / "out").symlink_to(tree.outside)
    (tree.root / "secret").symlink_to(tree.outside / "secret.txt")
    (tree.root / ".git").mkdir()
    (tree.root / ".git" / "config").write_text("hit")
    (tree.root / "real").write_text("hit")
    assert [match.path for match in run(tree.files.search("hit"))] == ["real"]
    assert not run(tree.files.search("what is outside"))
    assert [match.path for match in run(tree.files.search("hit", ".git"))] == [".git/config"]


def test_text_in_another_encoding_is_searched_as_far_as_it_can_be_read(tree: Tree) -> None:
    (tree.root / "latin").write_bytes(b"caf\xe9\nhit\n")
    (tree.root / "marked").write_bytes(b"\xef\xbb\xbfhit\n")
    found = run(tree.files.search("^hit", regex=True))
    assert [(match.path, match.line) for match in found] == [("latin", 2), ("marked", 1)]


def test_a_search_gives_no_more_than_asked_for(tree: Tree) -> None:
    (tree.root / "x").write_text("hit\n" * 5)
    results = run(tree.files.search("hit", limit=3))
    assert (len(results), results.truncated) == (3, True)
    assert not run(tree.files.search("hit", limit=5)).truncated


def test_a_search_reads_no_more_than_its_allowance(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_files, "MAX_SEARCH_BYTES", 1)
    results = run(tree.files.search("b"))
    assert (results.items, results.truncated) == ((), True)


def test_lines_keep_their_numbers_across_blocks(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_files, "_BLOCK", 7)
    lines = [f"{'x' * (number % 11)}{number}" for number in range(1, 200)]
    (tree.root / "x").write_text("\n".join(lines))
    for number in (1, 99, 100, 199):
        found = run(tree.files.search(f"{number}$", "x", regex=True))
        assert (number, lines[number - 1]) in [(match.line, match.text) for match in found]
        assert all(lines[match.line - 1] == match.text for match in found)


def test_a_very_long_line_is_searched_in_pieces_and_shown_in_part(tree: Tree) -> None:
    (tree.root / "min.js").write_text("x" * 3_000_000 + "hit" + "y" * 1000 + "\nhit\n")
    found = run(tree.files.search("hit"))
    assert [match.line for match in found] == [1, 2]
    assert "hit" in found[0].text
    assert found[0].text.startswith("…x")
    assert found[0].text.endswith("y…")
    assert len(found[0].text) <= search_files.MAX_SHOWN + 2
