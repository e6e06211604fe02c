"""A directory of a session that is replaced: by a link, by another directory, in a turn or between turns (P9)."""

from __future__ import annotations

import os
from asyncio import run
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.tests.unit.workspace.trees import SECRET, Tree, names, plant
from holdfast.errors import OutsideRoots, RootReplaced
from holdfast.workspace import Files, Workspace, openat2

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

pytestmark = pytest.mark.requirement("P9")


@pytest.fixture(params=["openat2", "walk"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Tree:
    wanted = request.param == "openat2"
    if wanted and not openat2.available():
        pytest.skip("this kernel has no openat2")
    return plant(tmp_path, openat2=wanted)


IN_A_TURN = pytest.mark.parametrize("in_a_turn", [True, False], ids=["in a turn", "between turns"])


def held(workspace: Workspace, in_a_turn: bool) -> AbstractContextManager[None]:
    return workspace.hold() if in_a_turn else nullcontext()


def every_operation(files: Files, root: Path) -> list[Awaitable[object]]:
    """Everything that can be done with files, in a root."""
    return [
        files.read_text(root / "secret.txt"),
        files.read_bytes(root / "secret.txt"),
        files.write_text(root / "secret.txt", "overwritten"),
        files.write_bytes(root / "new.txt", b"new"),
        files.write_text(root / "deep" / "new.txt", "new"),
        files.stat(root),
        files.stat(root / "secret.txt"),
        files.exists(root / "secret.txt"),
        files.list(root),
        files.glob(f"{root}/*"),
        files.search("what", root),
        files.mkdir(root / "new"),
        files.remove(root / "secret.txt"),
        files.rename(root / "secret.txt", root / "stolen.txt"),
    ]


def replace_by_link(root: Path, outside: Path) -> None:
    root.rename(f"{root}.old")
    root.symlink_to(outside)


def replace_by_directory(root: Path, outside: Path) -> None:
    root.rename(f"{root}.old")
    outside.rename(root)
    outside.symlink_to(root)  # what is outside is found there still


def replace_by_file(root: Path, outside: Path) -> None:
    root.rename(f"{root}.old")
    root.write_text(SECRET)


REPLACED = pytest.mark.parametrize("replace", [replace_by_link, replace_by_directory, replace_by_file])


@IN_A_TURN
@REPLACED
@pytest.mark.parametrize("which", ["root", "other"])
def test_a_directory_that_was_replaced_is_refused_whatever_is_done_with_it(
    tree: Tree, which: str, replace: Callable[[Path, Path], None], in_a_turn: bool
) -> None:
    workspace = tree.workspace
    files = Files(workspace, openat2=tree.openat2)
    root: Path = getattr(tree, which)
    with held(workspace, in_a_turn):
        before = names(root)
        replace(root, tree.outside)
        for attempt in every_operation(files, root):
            with pytest.raises(RootReplaced, match="no longer the directory it was when the session was opened") as e:
                run(attempt)  # pyright: ignore[reportArgumentType]
            assert e.value.path == str(root)
    assert names(tree.outside) == ["secret.txt"]
    assert (tree.outside / "secret.txt").read_text() == SECRET
    assert names(Path(f"{root}.old")) == before


@IN_A_TURN
def test_relative_paths_are_refused_when_the_working_directory_was_replaced(tree: Tree, in_a_turn: bool) -> None:
    workspace = tree.workspace
    files = Files(workspace, openat2=tree.openat2)
    with held(workspace, in_a_turn):
        replace_by_link(tree.root, tree.outside)
        for attempt in (files.read_text("secret.txt"), files.list(), files.glob("**"), files.search("what")):
            with pytest.raises(RootReplaced):
                run(attempt)  # pyright: ignore[reportArgumentType]
        assert run(files.read_text(tree.other / "c.txt")) == "c\n"


@IN_A_TURN
def test_a_directory_whose_way_was_replaced_is_refused(tree: Tree, in_a_turn: bool) -> None:
    """Its own name is as it was, but a directory above it is another one."""
    project, elsewhere = tree.root / "sub", tree.outside / "sub"
    elsewhere.mkdir()
    (elsewhere / "b.txt").write_text(SECRET)
    workspace = Workspace.resolve(project)
    files = Files(workspace, openat2=tree.openat2)
    with held(workspace, in_a_turn):
        replace_by_link(tree.root, tree.outside)
        with pytest.raises(RootReplaced):
            run(files.read_text("b.txt"))
        with pytest.raises(RootReplaced):
            run(files.write_text("new.txt", "new"))
    assert names(elsewhere) == ["b.txt"]


@IN_A_TURN
def test_a_directory_that_is_back_is_used_again(tree: Tree, in_a_turn: bool) -> None:
    workspace = tree.workspace
    files = Files(workspace, openat2=tree.openat2)
    with held(workspace, in_a_turn):
        replace_by_link(tree.root, tree.outside)
        with pytest.raises(RootReplaced):
            run(files.read_text("a.txt"))
        tree.root.unlink()
        Path(f"{tree.root}.old").rename(tree.root)
        assert run(files.read_text("a.txt")) == "a\n"


@IN_A_TURN
def test_a_link_to_the_same_directory_is_no_other_directory(tree: Tree, in_a_turn: bool) -> None:
    workspace = tree.workspace
    files = Files(workspace, openat2=tree.openat2)
    with held(workspace, in_a_turn):
        tree.root.rename(f"{tree.root}.old")
        tree.root.symlink_to(f"{tree.root}.old")
        assert run(files.read_text("a.txt")) == "a\n"


def test_a_directory_is_the_one_that_was_there_when_the_session_was_opened(tree: Tree) -> None:
    """Not the one that is there when a turn begins."""
    workspace = tree.workspace
    replace_by_link(tree.root, tree.outside)
    with workspace.hold(), pytest.raises(RootReplaced):
        run(Files(workspace, openat2=tree.openat2).read_text("secret.txt"))
    assert run(Files(tree.workspace, openat2=tree.openat2).read_text("secret.txt")) == SECRET


@IN_A_TURN
def test_a_nested_directory_that_was_replaced_is_not_reached_through_the_outer_one(tree: Tree, in_a_turn: bool) -> None:
    workspace = Workspace.resolve(tree.root, [tree.root / "sub"])
    files = Files(workspace, openat2=tree.openat2)
    (tree.root / "way").symlink_to("sub/secret.txt")
    with held(workspace, in_a_turn):
        replace_by_link(tree.root / "sub", tree.outside)
        with pytest.raises(RootReplaced):
            run(files.read_text("sub/secret.txt"))
        with pytest.raises((OutsideRoots, RootReplaced)):
            run(files.read_text("way"))
        assert run(files.read_text("a.txt")) == "a\n"


# One that is not there yet


def test_a_directory_that_appears_later_is_used_and_then_is_the_one(tree: Tree) -> None:
    late = tree.root.parent / "late"
    workspace = Workspace.resolve(tree.root, [late])
    files = Files(workspace, openat2=tree.openat2)
    with workspace.hold(), pytest.raises(FileNotFoundError, match="is gone"):
        run(files.read_text(late / "x"))
    late.mkdir()
    run(files.write_text(late / "x", "x"))
    late.rename(f"{late}.old")
    tree.outside.rename(late)
    with pytest.raises(RootReplaced):
        run(files.read_text(late / "secret.txt"))


@pytest.mark.parametrize("level", [0, 1])
def test_a_link_that_appears_where_a_directory_was_to_be_is_refused(tree: Tree, level: int) -> None:
    late = tree.root.parent / "late" / "deep"
    (tree.outside / "deep").mkdir()
    workspace = Workspace.resolve(tree.root, [late])
    files = Files(workspace, openat2=tree.openat2)
    if level:
        late.parent.symlink_to(tree.outside)
    else:
        late.parent.mkdir()
        late.symlink_to(tree.outside)
    for _ in range(2):
        with workspace.hold():
            for attempt in (files.read_text(late / "secret.txt"), files.write_text(late / "new", ""), files.list(late)):
                with pytest.raises(RootReplaced):
                    run(attempt)  # pyright: ignore[reportArgumentType]
    assert names(tree.outside) == ["deep", "secret.txt"]


# Descriptors


def descriptors() -> int:
    return len(names(Path("/dev/fd")))


def test_a_turn_holds_a_descriptor_for_each_directory_and_an_idle_session_none(tree: Tree) -> None:
    before = descriptors()
    idle = [tree.workspace for _ in range(100)]
    assert descriptors() == before
    with idle[0].hold():
        assert descriptors() == before + 2
        with idle[0].hold(), idle[1].hold():
            assert descriptors() == before + 4
        run(Files(idle[0], openat2=tree.openat2).read_text("a.txt"))
        assert descriptors() == before + 2
    assert descriptors() == before


def test_a_turn_begins_although_a_directory_is_missing_or_was_replaced(tree: Tree) -> None:
    workspace = Workspace.resolve(tree.root, [tree.other, tree.root / "missing"])
    replace_by_link(tree.other, tree.outside)
    before = descriptors()
    with workspace.hold():
        assert descriptors() == before + 1
        assert run(Files(workspace, openat2=tree.openat2).read_text("a.txt")) == "a\n"
    assert descriptors() == before


def test_what_is_done_when_a_turn_ends_is_done_in_the_directory_it_began_in(tree: Tree) -> None:
    """Whoever has a directory open keeps it open: its number is not another file's meanwhile."""
    workspace = tree.workspace
    root = workspace.locate(".").root
    with workspace.hold():
        descriptor = root.acquire()
    assert os.fstat(descriptor).st_ino == tree.root.stat().st_ino
    root.release()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
