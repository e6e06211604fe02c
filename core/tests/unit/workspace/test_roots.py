from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import FileRefused, OutsideRoots, UsageError
from holdfast.workspace import Workspace


def test_relative_paths_are_read_against_cwd() -> None:
    workspace = Workspace.resolve("/w", ["/x"])
    assert workspace.absolute("a/b") == Path("/w/a/b")
    assert workspace.absolute(Path("a")) == Path("/w/a")


def test_absolute_paths_in_any_root_are_taken() -> None:
    workspace = Workspace.resolve("/w", ["/x"])
    assert workspace.absolute("/w/a") == Path("/w/a")
    assert workspace.absolute("/x") == Path("/x")


@pytest.mark.parametrize(
    "path", ["..", "../y", "a/../../b", "/", "/etc/passwd", "/w/../etc", "//etc", "/wide", "../wide"]
)
def test_a_path_outside_is_refused_and_told_where_it_may_be(path: str) -> None:
    with pytest.raises(
        OutsideRoots, match=r"outside the session's directories \(/w, /x\)\. Use a path inside"
    ) as caught:
        Workspace.resolve("/w", ["/x"]).absolute(path)
    assert caught.value.path == path


def test_a_root_whose_name_begins_like_another_directory_does_not_open_it() -> None:
    with pytest.raises(OutsideRoots):
        Workspace.resolve("/a/b").absolute("/a/bc/d")


def test_dots_that_lead_into_another_root_are_fine() -> None:
    assert Workspace.resolve("/p/w", ["/p/x"]).absolute("../x/y") == Path("/p/x/y")


def test_the_innermost_of_nested_roots_answers() -> None:
    workspace = Workspace.resolve("/p", ["/p/q/r", "/p/q"])
    assert workspace.locate("q/r/s").root.given == "/p/q/r"
    assert workspace.locate("/p/q/s").root.given == "/p/q"
    assert workspace.locate("s").root.given == "/p"


def test_the_whole_file_system_can_be_a_root() -> None:
    workspace = Workspace.resolve("/")
    assert workspace.absolute("etc/hosts") == Path("/etc/hosts")
    assert workspace.absolute("/") == Path("/")
    assert workspace.absolute("../..") == Path("/")
    assert workspace.locate("/etc/hosts").parts == ("etc", "hosts")


def test_order_is_kept_and_duplicates_are_dropped() -> None:
    assert Workspace.resolve("/w", ["/z", "/a", "/w", "/z"]).roots == (Path("/w"), Path("/z"), Path("/a"))


def test_the_roots_of_a_workspace_do_not_change() -> None:
    workspace = Workspace.resolve("/w", ["/x"])
    with pytest.raises(AttributeError):
        workspace.cwd = Path("/etc")  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError):
        workspace.roots = (Path("/etc"),)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("cwd", ["", "relative", "./w", "~", "/w\0", b"/w"])
def test_a_root_that_is_not_absolute_is_a_mistake(cwd: str) -> None:
    with pytest.raises(UsageError, match="must be an absolute path"):
        Workspace.resolve(cwd)


def test_a_root_may_be_named_by_where_it_really_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    workspace = Workspace.resolve(tmp_path / "link")
    assert workspace.absolute(tmp_path / "real" / "a") == tmp_path / "link" / "a"


def test_a_root_with_dots_is_what_the_system_takes_it_for(tmp_path: Path) -> None:
    (tmp_path / "far" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("far/deep")
    assert Workspace.resolve(f"{tmp_path}/link/..").cwd == tmp_path / "far"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "is empty"),
        ("a\0b", "holds a NUL"),
        ("~", "starts with '~'"),
        ("~/x", "starts with '~'"),
        ("\ud800", "holds a character"),
    ],
)
def test_a_path_that_can_be_no_file_is_refused_with_the_reason(path: str, why: str) -> None:
    with pytest.raises(FileRefused, match=why):
        Workspace.resolve("/w").absolute(path)


def test_a_tilde_elsewhere_is_a_letter_like_any_other() -> None:
    assert Workspace.resolve("/w").absolute("./~/x") == Path("/w/~/x")
    assert Workspace.resolve("/w").absolute("~lock") == Path("/w/~lock")


def test_bytes_are_no_path() -> None:
    with pytest.raises(UsageError, match="a path is text, not bytes"):
        Workspace.resolve("/w").absolute(b"a")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("path", "directory"), [("a", False), ("a/", True), ("a/.", True), ("a/b/..", True), ("...", False)]
)
def test_a_slash_at_the_end_says_directory(path: str, directory: bool) -> None:
    assert Workspace.resolve("/w").locate(path).directory is directory


names = st.sampled_from(["..", ".", "", "w", "x", "a", "wa", "...", "é", "\udcff"])


@given(st.lists(names, max_size=8).map("/".join), st.booleans())
def test_what_is_taken_is_inside_and_what_is_inside_is_taken(path: str, absolute: bool) -> None:
    path = f"/{path}" if absolute else path.lstrip("/")
    workspace = Workspace.resolve("/w/a", ["/x"])
    normal = os.path.normpath(path if absolute else f"/w/a/{path}")
    normal = f"/{normal.lstrip('/')}"
    inside = any(normal == root or normal.startswith(f"{root}/") for root in ("/w/a", "/x"))
    try:
        resolved = workspace.absolute(path)
    except OutsideRoots:
        assert not inside
    except FileRefused:
        assert not path
    else:
        assert inside
        assert str(resolved) == normal
        place = workspace.locate(path)
        assert workspace.absolute(workspace.show(place.root, place.parts)) == resolved
