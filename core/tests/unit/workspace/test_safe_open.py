from __future__ import annotations

import errno
import os
from asyncio import run
from pathlib import Path

import pytest

from core.tests.unit.workspace.trees import SECRET, Tree, names
from holdfast.errors import FileRefused, OutsideRoots
from holdfast.workspace import Files, Workspace, openat2, safe_open
from holdfast.workspace.safe_open import READ


def descriptors() -> int:
    return len(names(Path("/dev/fd")))


def test_files_in_every_root_are_opened(tree: Tree) -> None:
    assert run(tree.files.read_text("a.txt")) == "a\n"
    assert run(tree.files.read_text("sub/b.txt")) == "b\n"
    assert run(tree.files.read_text("sub/../a.txt")) == "a\n"
    assert run(tree.files.read_text(tree.other / "c.txt")) == "c\n"
    assert run(tree.files.read_text("../other/c.txt")) == "c\n"


def test_no_descriptor_is_left_open(tree: Tree) -> None:
    async def work() -> None:
        (tree.root / "up").symlink_to("sub/../a.txt")
        (tree.root / "out").symlink_to(tree.outside)
        (tree.root / "loop").symlink_to("loop")
        await tree.files.read_text("a.txt")
        before = descriptors()
        for path in ("a.txt", "up", "out/secret.txt", "loop", "missing/x", "a.txt/x", "sub", "sub/b.txt"):
            for attempt in (tree.files.read_text(path), tree.files.write_text(path, "new"), tree.files.stat(path)):
                try:
                    await attempt
                except (OSError, FileRefused):
                    continue
        assert descriptors() == before

    run(work())


@pytest.mark.parametrize("target", ["a.txt", "sub/b.txt", "sub/../a.txt", "./sub/.././a.txt", "sub//b.txt"])
def test_a_relative_link_that_stays_inside_is_followed(tree: Tree, target: str) -> None:
    (tree.root / "link").symlink_to(target)
    assert run(tree.files.read_text("link")) == (tree.root / target).read_text()


def test_an_absolute_link_that_stays_inside_is_followed(tree: Tree) -> None:
    (tree.root / "sub" / "file").symlink_to(tree.root / "a.txt")
    (tree.root / "dir").symlink_to(tree.root / "sub")
    assert run(tree.files.read_text("sub/file")) == "a\n"
    assert run(tree.files.read_text("dir/file")) == "a\n"


def test_a_link_from_one_root_into_another_is_followed(tree: Tree) -> None:
    (tree.root / "absolute").symlink_to(tree.other)
    (tree.root / "relative").symlink_to("../other/c.txt")
    (tree.other / "back").symlink_to(tree.root / "sub")
    assert run(tree.files.read_text("absolute/c.txt")) == "c\n"
    assert run(tree.files.read_text("relative")) == "c\n"
    assert run(tree.files.read_text("absolute/back/b.txt")) == "b\n"


def test_a_link_climbs_from_where_its_directory_really_is(tree: Tree) -> None:
    (tree.root / "sub" / "deep").mkdir()
    (tree.root / "sub" / "deep" / "up").symlink_to("../b.txt")
    (tree.root / "short").symlink_to("sub/deep")
    (tree.root / "through").symlink_to("short/../b.txt")
    assert run(tree.files.read_text("short/up")) == "b\n"
    assert run(tree.files.read_text("through")) == "b\n"


@pytest.mark.parametrize(
    "target", ["../outside", "{outside}", "sub/../../outside", "chain", "/proc/self/root{outside}"]
)
def test_a_link_that_leaves_is_refused(tree: Tree, target: str) -> None:
    (tree.root / "chain").symlink_to("sub/chain")
    (tree.root / "sub" / "chain").symlink_to("../../outside")
    (tree.root / "link").symlink_to(target.format(outside=tree.outside))
    for attempt in (
        tree.files.read_text("link/secret.txt"),
        tree.files.write_text("link/secret.txt", "overwritten"),
        tree.files.write_text("link/new.txt", "new"),
        tree.files.write_text("link/deep/new.txt", "new"),
        tree.files.mkdir("link/new"),
        tree.files.list("link"),
        tree.files.stat("link"),
        tree.files.exists("link/secret.txt"),
        tree.files.remove("link/secret.txt"),
        tree.files.rename("link/secret.txt", "stolen.txt"),
        tree.files.rename("a.txt", "link/a.txt"),
        tree.files.glob("link/*"),
        tree.files.search("what", "link"),
    ):
        with pytest.raises(OutsideRoots, match=r"leads, through a link to .*, outside the session's directories"):
            run(attempt)
    assert names(tree.outside) == ["secret.txt"]
    assert (tree.outside / "secret.txt").read_text() == SECRET


def test_a_link_to_a_file_outside_is_neither_read_nor_written_nor_replaced(tree: Tree) -> None:
    link = tree.root / "link.txt"
    link.symlink_to(tree.outside / "secret.txt")
    with pytest.raises(OutsideRoots):
        run(tree.files.read_text("link.txt"))
    with pytest.raises(OutsideRoots):
        run(tree.files.write_text("link.txt", "new"))
    assert link.is_symlink()
    assert (tree.outside / "secret.txt").read_text() == SECRET


def test_the_chain_of_links_may_be_long_but_not_endless(tree: Tree) -> None:
    for number in range(60):
        (tree.root / f"link{number}").symlink_to(f"link{number + 1}" if number < 59 else "a.txt")
    assert run(tree.files.read_text("link25")) == "a\n"
    with pytest.raises(OSError, match="symbolic links") as caught:
        run(tree.files.read_text("link0"))
    assert caught.value.errno == errno.ELOOP


@pytest.mark.parametrize("target", ["loop", "sub/../loop", "./other-loop"])
def test_a_loop_of_links_ends_in_an_error(tree: Tree, target: str) -> None:
    (tree.root / "loop").symlink_to(target)
    (tree.root / "other-loop").symlink_to(tree.root / "loop")
    for attempt in (tree.files.read_text("loop"), tree.files.write_text("loop", ""), tree.files.stat("loop/x")):
        with pytest.raises(OSError, match="symbolic links"):
            run(attempt)


def test_a_link_to_nowhere_is_not_found_and_writing_makes_its_target(tree: Tree) -> None:
    (tree.root / "link").symlink_to("sub/new.txt")
    assert not run(tree.files.exists("link"))
    run(tree.files.write_text("link", "new"))
    assert (tree.root / "link").is_symlink()
    assert (tree.root / "sub" / "new.txt").read_text() == "new"


def test_a_link_to_a_root_is_that_root(tree: Tree) -> None:
    (tree.root / "self").symlink_to(".")
    (tree.root / "there").symlink_to(tree.other)
    assert run(tree.files.read_text("self/self/a.txt")) == "a\n"
    assert run(tree.files.stat("there")).kind == "directory"
    assert [entry.name for entry in run(tree.files.list("self/sub"))] == ["b.txt"]
    with pytest.raises(FileRefused, match="is a directory of the session itself"):
        run(tree.files.write_text("there", "x"))


def test_a_root_that_is_a_link_works_under_both_its_names(tree: Tree) -> None:
    (tree.root.parent / "alias").symlink_to(tree.root)
    (tree.root / "absolute").symlink_to(tree.root / "a.txt")
    (tree.root / "by-alias").symlink_to(tree.root.parent / "alias" / "a.txt")
    files = Files(Workspace.resolve(tree.root.parent / "alias"), openat2=tree.openat2)
    for path in ("a.txt", tree.root / "a.txt", tree.root.parent / "alias" / "a.txt", "absolute", "by-alias"):
        assert run(files.read_text(path)) == "a\n"


def test_a_root_that_is_deleted_says_so(tree: Tree) -> None:
    (tree.other / "c.txt").unlink()
    files = tree.files
    tree.other.rmdir()
    for attempt in (
        files.read_text(tree.other / "c.txt"),
        files.list(tree.other),
        files.write_text(tree.other / "d", ""),
    ):
        with pytest.raises(FileNotFoundError, match="directory of the session is gone") as caught:
            run(attempt)
        assert caught.value.filename == str(tree.other)


def test_a_nested_root_that_is_a_link_out_was_granted_and_is_followed(tree: Tree) -> None:
    (tree.root / "granted").symlink_to(tree.outside)
    files = Files(Workspace.resolve(tree.root, [tree.root / "granted"]), openat2=tree.openat2)
    assert run(files.read_text("granted/secret.txt")) == SECRET


def test_a_link_from_an_inner_root_into_the_outer_one_is_followed(tree: Tree) -> None:
    (tree.root / "sub" / "up").symlink_to("../a.txt")
    files = Files(Workspace.resolve(tree.root, [tree.root / "sub"]), openat2=tree.openat2)
    assert run(files.read_text("sub/up")) == "a\n"


def test_the_root_of_the_file_system_can_be_the_root(tree: Tree) -> None:
    files = Files(Workspace.resolve("/", [tree.other]), openat2=tree.openat2)
    (tree.root / "absolute").symlink_to(tree.outside / "secret.txt")
    assert run(files.read_text(tree.root / "a.txt")) == "a\n"
    assert run(files.read_text(str(tree.root)[1:] + "/a.txt")) == "a\n"
    assert run(files.read_text(tree.root / "absolute")) == SECRET
    run(files.write_text(tree.root / "new.txt", "new"))
    assert (tree.root / "new.txt").read_text() == "new"


def test_a_sibling_whose_name_begins_like_the_root_stays_closed(tree: Tree) -> None:
    sibling = tree.root.parent / "root-and-more"
    sibling.mkdir()
    (sibling / "x").write_text(SECRET)
    (tree.root / "link").symlink_to(sibling)
    for path in (sibling / "x", "../root-and-more/x", "link/x"):
        with pytest.raises(OutsideRoots):
            run(tree.files.read_text(path))


def test_a_file_is_no_directory_on_the_way(tree: Tree) -> None:
    with pytest.raises(NotADirectoryError):
        run(tree.files.read_text("a.txt/x"))
    with pytest.raises(NotADirectoryError):
        run(tree.files.read_text("a.txt/"))
    with pytest.raises(NotADirectoryError):
        run(tree.files.write_text("a.txt/x", ""))


def test_errors_name_the_path_that_the_caller_wrote(tree: Tree) -> None:
    for path in ("sub/./missing/x.txt", str(tree.root / "sub" / "nothing")):
        with pytest.raises(FileNotFoundError) as caught:
            run(tree.files.read_text(path))
        assert caught.value.filename == path


def test_a_name_that_is_too_long_is_an_error_of_the_system(tree: Tree) -> None:
    for attempt in (tree.files.read_text("x" * 300), tree.files.write_text("x" * 300, ""), tree.files.mkdir("y" * 300)):
        with pytest.raises(OSError, match="too long") as caught:
            run(attempt)
        assert caught.value.errno == errno.ENAMETOOLONG
    assert names(tree.root) == ["a.txt", "sub"]


def test_a_path_longer_than_the_system_takes_at_once_is_still_a_path(tree: Tree) -> None:
    path = "/".join(["d" * 200] * 30) + "/deep.txt"
    run(tree.files.write_text(path, "deep"))
    assert run(tree.files.read_text(path)) == "deep"
    assert run(tree.files.glob("**/deep.txt")).items == (path,)
    run(tree.files.remove("d" * 200, recursive=True))


@pytest.mark.requirement("A2")
def test_names_that_are_not_utf_8_are_shown_as_text_and_work_like_others(tree: Tree) -> None:
    name, shown = os.fsdecode(b"caf\xe9.txt"), r"caf\xe9.txt"
    try:
        run(tree.files.write_text(name, "latin"))
    except OSError:
        pytest.skip("this file system has only UTF-8 names")
    assert name in names(tree.root)
    assert run(tree.files.list()).items[1].path == shown
    assert run(tree.files.search("latin"))[0].path == shown
    assert run(tree.files.glob("caf*")).items == (shown,)
    assert run(tree.files.glob(r"**/caf\xe9.*")).items == (shown,)
    assert run(tree.files.glob(r"**/caf?.txt")).items == ()
    for path in (name, shown, shown.replace("e9", "E9"), tree.root / shown):
        assert run(tree.files.read_text(path)) == "latin"
        assert run(tree.files.stat(path)).path == shown
    run(tree.files.write_text(shown, "changed"))
    assert (tree.root / name).read_text() == "changed"
    assert tree.workspace.absolute(shown) == tree.root / name
    run(tree.files.remove(shown))
    assert names(tree.root) == ["a.txt", "sub"]


@pytest.mark.requirement("A2")
def test_a_name_that_looks_like_one_that_is_not_utf_8_is_told_from_it(tree: Tree) -> None:
    literal, latin = r"caf\xe9.txt", os.fsdecode(b"caf\xe9.txt")
    for name in (literal, latin, r"a\b", r"x\x41"):
        try:
            (tree.root / name).write_text(name.encode(errors="surrogateescape").hex())
        except OSError:
            pytest.skip("this file system has only UTF-8 names")
    for name in (literal, latin, r"a\b", r"x\x41"):
        shown = tree.workspace.show(tree.workspace.locate(".").root, (name,))
        assert run(tree.files.read_text(shown)) == name.encode(errors="surrogateescape").hex()
    assert {entry.path for entry in run(tree.files.list())} == {
        "a.txt", r"a\b", r"caf\x5cxe9.txt", r"caf\xe9.txt", "sub", r"x\x41",
    }  # fmt: skip


@pytest.mark.parametrize("kernel_says", [errno.EAGAIN, errno.EXDEV, errno.ENAMETOOLONG])
def test_what_the_kernel_cannot_tell_the_walk_finds_out(
    tree: Tree, kernel_says: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(directory: int, path: str, flags: int) -> int:
        raise OSError(kernel_says, os.strerror(kernel_says), path)

    monkeypatch.setattr(openat2, "open_beneath", refuse)
    assert run(tree.files.read_text("sub/b.txt")) == "b\n"
    run(tree.files.write_text("sub/b.txt", "new"))
    with pytest.raises(FileNotFoundError):
        run(tree.files.read_text("missing"))


def test_the_kernel_is_asked_again_when_it_could_not_tell(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    if not tree.openat2:
        pytest.skip("about openat2")
    answers = [errno.EAGAIN, errno.EAGAIN]
    really = openat2.open_beneath

    def hesitate(directory: int, path: str, flags: int) -> int:
        if answers:
            raise OSError(answers.pop(), "try again", path)
        return really(directory, path, flags)

    def never(*_: object, **__: object) -> int:
        raise AssertionError("the walk was not needed")

    monkeypatch.setattr(openat2, "open_beneath", hesitate)
    monkeypatch.setattr(safe_open, "walk_to", never)
    assert run(tree.files.read_text("a.txt")) == "a\n"


def test_a_link_that_appears_between_two_looks_is_looked_at_again(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk opens `sub` as a link, and finds a directory when it asks where the link leads."""
    real_open = os.open
    refusals = [errno.ENOTDIR, errno.ELOOP]

    def flicker(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "sub" and refusals:
            raise OSError(refusals.pop(), "a link, this very moment", path)
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", flicker)
    fd = safe_open.walk_to(tree.workspace, tree.workspace.locate("sub/b.txt"), READ)
    os.close(fd)
    assert not refusals


def test_directories_that_may_only_be_passed_through_are(tree: Tree) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is closed to root")
    (tree.root / "sub").chmod(0o311)
    try:
        assert run(tree.files.read_text("sub/b.txt")) == "b\n"
        with pytest.raises(PermissionError):
            run(tree.files.list("sub"))
    finally:
        (tree.root / "sub").chmod(0o755)


def test_the_same_descriptor_is_read_whatever_becomes_of_the_name(tree: Tree) -> None:
    with tree.opener.open(tree.workspace.locate("a.txt"), READ) as fd:
        (tree.root / "a.txt").unlink()
        (tree.root / "a.txt").symlink_to(tree.outside / "secret.txt")
        assert os.read(fd, 10) == b"a\n"
