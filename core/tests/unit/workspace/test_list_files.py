from __future__ import annotations

from asyncio import run
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import OutsideRoots, UsageError
from holdfast.workspace import Files, Workspace, list_files
from holdfast.workspace.glob_pattern import GlobPattern

if TYPE_CHECKING:
    from core.tests.unit.workspace.trees import Tree


def fits(pattern: str, path: str) -> bool:
    compiled = GlobPattern.compile(pattern)
    state = compiled.start
    for name in path.split("/"):
        state = compiled.step(state, name)
    return compiled.matches(state)


def test_a_listing_is_by_name_and_says_what_each_is(tree: Tree) -> None:
    (tree.root / "link").symlink_to(tree.outside)
    listed = run(tree.files.list())
    assert [(entry.name, entry.path, entry.kind) for entry in listed] == [
        ("a.txt", "a.txt", "file"),
        ("link", "link", "link"),
        ("sub", "sub", "directory"),
    ]
    assert listed[0].size == 2
    assert listed[0].modified == (tree.root / "a.txt").stat().st_mtime
    assert not listed.truncated


def test_paths_in_a_listing_can_be_used_again(tree: Tree) -> None:
    for directory in ("sub", tree.other, tree.root / "sub"):
        for entry in run(tree.files.list(directory)):
            assert run(tree.files.read_text(entry.path))
    assert run(tree.files.list("sub"))[0].path == "sub/b.txt"
    assert run(tree.files.list(tree.other))[0].path == str(tree.other / "c.txt")


def test_a_listing_is_no_longer_than_its_limit(tree: Tree) -> None:
    listed = run(tree.files.list(limit=1))
    assert len(listed) == 1
    assert listed.truncated
    assert not run(tree.files.list(limit=2)).truncated


def test_only_directories_are_listed(tree: Tree) -> None:
    with pytest.raises(NotADirectoryError):
        run(tree.files.list("a.txt"))
    with pytest.raises(FileNotFoundError):
        run(tree.files.list("missing"))


def test_a_path_is_told_with_what_stands_behind_it(tree: Tree) -> None:
    (tree.root / "link").symlink_to("sub/b.txt")
    assert run(tree.files.stat("link")).kind == "file"
    assert run(tree.files.stat("link")).size == 2
    assert run(tree.files.stat("sub/")).kind == "directory"
    assert run(tree.files.stat(".")).path == "."
    assert run(tree.files.stat(tree.other)).path == str(tree.other)


def test_what_exists_is_told_from_what_does_not(tree: Tree) -> None:
    assert run(tree.files.exists("a.txt"))
    assert run(tree.files.exists("."))
    assert not run(tree.files.exists("missing"))
    assert not run(tree.files.exists("missing/deeper"))
    assert not run(tree.files.exists("a.txt/x"))
    assert not run(tree.files.exists("a.txt/"))
    with pytest.raises(OutsideRoots):
        run(tree.files.exists("../outside/secret.txt"))


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a.txt", "z.py"]),
        ("*.py", ["z.py"]),
        ("**/*.txt", ["a.txt", "sub/b.txt", "sub/deep/d.txt"]),
        ("**", ["a.txt", "z.py", "sub/b.txt", "sub/.env", "sub/deep/d.txt"]),
        ("sub/**", ["sub/b.txt", "sub/.env", "sub/deep/d.txt"]),
        ("sub/*.txt", ["sub/b.txt"]),
        ("s*/*/*", ["sub/deep/d.txt"]),
        ("**/deep/*", ["sub/deep/d.txt"]),
        ("sub/**/d.*", ["sub/deep/d.txt"]),
        ("[a-c].txt", ["a.txt"]),
        ("?.p?", ["z.py"]),
        ("{a,z}.{txt,py}", ["a.txt", "z.py"]),
        ("{sub/b,sub/deep/d}.txt", ["sub/b.txt", "sub/deep/d.txt"]),
        ("sub/b.txt", ["sub/b.txt"]),
        ("./sub/./*.txt", ["sub/b.txt"]),
        ("sub/../*.py", ["z.py"]),
        ("*/", ["sub/"]),
        ("**/", ["sub/", "sub/deep/"]),
        ("nothing*", []),
        (".git/*", [".git/config"]),
        ("**/.git/*", [".git/config"]),
    ],
)
def test_a_pattern_finds_files_in_order_of_their_directories(tree: Tree, pattern: str, found: list[str]) -> None:
    for path in ("z.py", "sub/deep/d.txt", "sub/.env", ".git/config"):
        (tree.root / path).parent.mkdir(exist_ok=True)
        (tree.root / path).touch()
    results = run(tree.files.glob(pattern))
    assert sorted(results) == sorted(path.rstrip("/") for path in found)
    assert not results.truncated


def test_patterns_reach_other_roots_but_not_the_outside(tree: Tree) -> None:
    assert run(tree.files.glob(f"{tree.other}/*")).items == (str(tree.other / "c.txt"),)
    assert run(tree.files.glob("../other/*.txt")).items == (str(tree.other / "c.txt"),)
    for pattern in ("../*", "../outside/*", "/*", f"{tree.outside}/**"):
        with pytest.raises(OutsideRoots):
            run(tree.files.glob(pattern))


def test_links_in_a_scan_are_what_they_lead_to_but_not_followed(tree: Tree) -> None:
    (tree.root / "file").symlink_to("a.txt")
    (tree.root / "directory").symlink_to("sub")
    (tree.root / "out").symlink_to(tree.outside / "secret.txt")
    (tree.root / "nowhere").symlink_to("missing")
    (tree.root / "sub" / "loop").symlink_to("..")
    assert run(tree.files.glob("**")).items == ("a.txt", "file", "sub/b.txt")
    assert run(tree.files.glob("*/")).items == ("directory", "sub")
    assert run(tree.files.glob("directory/*")).items == ("directory/b.txt",)


def test_a_scan_gives_no_more_than_asked_for(tree: Tree) -> None:
    results = run(tree.files.glob("**", limit=1))
    assert (results.items, results.truncated) == (("a.txt",), True)
    assert not run(tree.files.glob("**", limit=2)).truncated


def test_a_scan_over_too_much_says_that_it_did_not_see_everything(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_files, "MAX_SCANNED", 2)
    results = run(tree.files.glob("**"))
    assert (results.items, results.truncated) == (("a.txt",), True)


def test_names_to_skip_are_passed_over(tree: Tree) -> None:
    assert run(tree.files.glob("**/*", skip=["sub"])).items == ("a.txt",)


@pytest.mark.parametrize(
    ("pattern", "why"), [("", "is empty"), ("*/../x", r"holds '\.\.'"), ("{a,b}" * 8, "more than 100 patterns")]
)
def test_a_pattern_that_means_nothing_is_a_mistake(tree: Tree, pattern: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        run(tree.files.glob(pattern))


def test_a_pattern_of_many_stars_takes_no_longer_for_it() -> None:
    assert not fits("**/" * 30 + "x", "/".join("a" * 60))
    assert fits("**/" * 30 + "x", "/".join("a" * 60) + "/x")


names = st.sampled_from(["a", "b", "ab", ".c"])
pieces = st.sampled_from(["a", "b", "*", "?", "**", "a*", "[ab]", "*b"])


@given(
    st.sets(st.lists(names, min_size=1, max_size=3).map("/".join), max_size=8), st.lists(pieces, min_size=1, max_size=4)
)
def test_patterns_find_what_those_of_pathlib_find(paths: set[str], pattern: list[str]) -> None:
    with TemporaryDirectory() as directory:
        root = Path(directory)
        for path in sorted(paths):
            try:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).touch()
            except (FileExistsError, NotADirectoryError):
                continue
        text = "/".join(pattern)
        # Before Python 3.13 a `**` at the end found directories only.
        expected = root.glob(f"{text}/*" if text.endswith("**") else text)
        files = sorted({str(path.relative_to(root)) for path in expected if path.is_file()})
        try:
            found = sorted(run(Files(Workspace.resolve(root)).glob(text)))
        except (FileNotFoundError, NotADirectoryError):
            found = []  # of the part before the first wildcard
        assert found == files
