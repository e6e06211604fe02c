from __future__ import annotations

import errno
import os
import threading
from asyncio import run
from pathlib import Path

import pytest

from core.tests.unit.workspace.trees import SECRET, Tree, names
from holdfast.errors import FileRefused, OutsideRoots, UsageError


def test_what_is_written_can_be_read(tree: Tree) -> None:
    run(tree.files.write_text("report.txt", "21 °C"))
    assert (tree.root / "report.txt").read_bytes() == "21 °C".encode()
    run(tree.files.write_bytes("report.txt", b"\0\1"))
    assert run(tree.files.read_bytes("report.txt")) == b"\0\1"
    run(tree.files.write_text(tree.other / "there.txt", "x\r\ny\n", sync=True))
    assert (tree.other / "there.txt").read_bytes() == b"x\r\ny\n"


def test_directories_on_the_way_are_made(tree: Tree) -> None:
    (tree.root / "link").symlink_to("sub/new")
    run(tree.files.write_text("one/two/three.txt", "3"))
    run(tree.files.write_text("link/deep/four.txt", "4"))
    assert (tree.root / "one" / "two" / "three.txt").read_text() == "3"
    assert (tree.root / "sub" / "new" / "deep" / "four.txt").read_text() == "4"


def test_nothing_but_the_file_is_left(tree: Tree) -> None:
    run(tree.files.write_text("a.txt", "new"))
    assert names(tree.root) == ["a.txt", "sub"]


def test_a_new_file_has_the_usual_permissions_and_an_old_one_keeps_its_own(tree: Tree) -> None:
    usual = tree.root / "usual"
    usual.touch()
    run(tree.files.write_text("new", "x"))
    assert (tree.root / "new").stat().st_mode == usual.stat().st_mode
    (tree.root / "script").write_text("old")
    (tree.root / "script").chmod(0o751)
    run(tree.files.write_text("script", "new"))
    assert (tree.root / "script").stat().st_mode & 0o7777 == 0o751


def test_the_owner_is_kept(tree: Tree) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(tree.root / "a.txt", 1234, 5678)
    run(tree.files.write_text("a.txt", "new"))
    info = (tree.root / "a.txt").stat()
    assert (info.st_uid, info.st_gid) == (1234, 5678)


def test_a_file_that_is_write_protected_stays_as_it_is(tree: Tree) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is protected from root")
    (tree.root / "a.txt").chmod(0o444)
    with pytest.raises(PermissionError) as caught:
        run(tree.files.write_text("a.txt", "new"))
    assert caught.value.filename == "a.txt"
    assert (tree.root / "a.txt").read_text() == "a\n"


def test_a_link_is_written_through_and_stays_a_link(tree: Tree) -> None:
    (tree.root / "link").symlink_to("sub/b.txt")
    (tree.root / "absolute").symlink_to(tree.other / "c.txt")
    run(tree.files.write_text("link", "new b"))
    run(tree.files.write_text("absolute", "new c"))
    assert (tree.root / "link").is_symlink()
    assert (tree.root / "sub" / "b.txt").read_text() == "new b"
    assert (tree.other / "c.txt").read_text() == "new c"


def test_the_byte_order_mark_of_a_file_is_kept(tree: Tree) -> None:
    for mark, codec in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        (tree.root / "x").write_bytes(mark + "alt".encode(codec))
        run(tree.files.write_text("x", "neu ü"))
        assert (tree.root / "x").read_bytes() == mark + "neu ü".encode(codec)
        assert run(tree.files.read_text("x")) == "neu ü"
        run(tree.files.write_text("x", "neu", encoding="utf-8"))
        assert (tree.root / "x").read_bytes() == b"neu"


def test_text_that_cannot_be_written_changes_nothing(tree: Tree) -> None:
    with pytest.raises(UsageError, match="cannot be written as ascii"):
        run(tree.files.write_text("a.txt", "ü", encoding="ascii"))
    with pytest.raises(UsageError, match="cannot be written as utf-8"):
        run(tree.files.write_text("a.txt", "\ud800"))
    with pytest.raises(UsageError, match="no encoding 'klingon'"):
        run(tree.files.write_text("a.txt", "", encoding="klingon"))
    assert (tree.root / "a.txt").read_text() == "a\n"


def test_a_directory_cannot_be_written(tree: Tree) -> None:
    for path in ("sub", "sub/", "new/", "new/."):
        with pytest.raises(IsADirectoryError):
            run(tree.files.write_text(path, "x"))
    assert names(tree.root) == ["a.txt", "sub"]


@pytest.mark.parametrize("failing", ["write", "fsync", "rename", "fchmod"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    tree: Tree, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, full)
        with pytest.raises(OSError, match="No space left") as caught:
            run(tree.files.write_text("a.txt", "new", sync=True))
    assert caught.value.filename == "a.txt"
    assert (tree.root / "a.txt").read_text() == "a\n"
    assert names(tree.root) == ["a.txt", "sub"]


def test_a_reader_sees_the_old_file_or_the_new_one(tree: Tree) -> None:
    contents = {"x" * 200_000, "y" * 300_000}
    run(tree.files.write_text("f", min(contents)))
    seen: set[str] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            seen.add((tree.root / "f").read_text())

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for _ in range(50):
            for content in contents:
                run(tree.files.write_text("f", content))
    finally:
        over.set()
        reader.join()
    assert seen <= contents


def test_a_link_put_in_place_at_the_last_moment_is_replaced_not_followed(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.rename

    def swap_then_rename(*args: str, **kwargs: int) -> None:
        (tree.root / "a.txt").unlink()
        (tree.root / "a.txt").symlink_to(tree.outside / "secret.txt")
        real(*args, **kwargs)

    monkeypatch.setattr(os, "rename", swap_then_rename)
    run(tree.files.write_text("a.txt", "new"))
    assert not (tree.root / "a.txt").is_symlink()
    assert (tree.outside / "secret.txt").read_text() == SECRET


def test_directories_are_made_with_those_they_are_in(tree: Tree) -> None:
    run(tree.files.mkdir("x/y/z/"))
    run(tree.files.mkdir("x/y"))
    run(tree.files.mkdir("."))
    assert (tree.root / "x" / "y" / "z").is_dir()
    with pytest.raises(NotADirectoryError):
        run(tree.files.mkdir("a.txt"))
    with pytest.raises(OutsideRoots):
        run(tree.files.mkdir("../x"))


def test_removing_takes_files_links_and_empty_directories(tree: Tree) -> None:
    (tree.root / "empty").mkdir()
    (tree.root / "link").symlink_to(tree.outside)
    for path in ("a.txt", "empty", "link"):
        run(tree.files.remove(path))
    assert names(tree.root) == ["sub"]
    assert names(tree.outside) == ["secret.txt"]
    with pytest.raises(FileNotFoundError):
        run(tree.files.remove("a.txt"))
    with pytest.raises(NotADirectoryError):
        run(tree.files.remove("sub/b.txt/"))


def test_a_full_directory_is_only_removed_when_asked_for(tree: Tree) -> None:
    (tree.root / "sub" / "out").symlink_to(tree.outside)
    with pytest.raises(OSError, match="not empty"):
        run(tree.files.remove("sub"))
    run(tree.files.remove("sub", recursive=True))
    assert names(tree.root) == ["a.txt"]
    assert names(tree.outside) == ["secret.txt"]


def test_a_root_can_neither_be_removed_nor_renamed(tree: Tree) -> None:
    for path in (".", tree.other, "sub/.."):
        with pytest.raises(FileRefused, match=r"is a directory of the session itself\. Name something inside it\."):
            run(tree.files.remove(path, recursive=True))
        with pytest.raises(FileRefused):
            run(tree.files.rename(path, "x"))


def test_renaming_works_across_roots_and_makes_directories(tree: Tree) -> None:
    run(tree.files.rename("a.txt", tree.other / "new" / "a.txt"))
    assert (tree.other / "new" / "a.txt").read_text() == "a\n"
    assert not (tree.root / "a.txt").exists()


def test_renaming_replaces_nothing_unless_told_to(tree: Tree) -> None:
    with pytest.raises(FileExistsError) as caught:
        run(tree.files.rename("a.txt", "sub/b.txt"))
    assert caught.value.filename == "sub/b.txt"
    run(tree.files.rename("a.txt", "sub/b.txt", replace=True))
    assert (tree.root / "sub" / "b.txt").read_text() == "a\n"


def test_renaming_moves_a_link_and_not_what_it_leads_to(tree: Tree) -> None:
    (tree.root / "link").symlink_to(tree.outside / "secret.txt")
    run(tree.files.rename("link", "moved"))
    assert (tree.root / "moved").readlink() == tree.outside / "secret.txt"
    assert (tree.outside / "secret.txt").read_text() == SECRET


def test_hard_links_keep_the_old_content(tree: Tree) -> None:
    Path(tree.root / "twin").hardlink_to(tree.root / "a.txt")
    run(tree.files.write_text("a.txt", "new"))
    assert (tree.root / "twin").read_text() == "a\n"
