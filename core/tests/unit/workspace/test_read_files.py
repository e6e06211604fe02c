from __future__ import annotations

import os
import socket
from asyncio import run
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import FileRefused, FileTooLarge, NotText, UsageError
from holdfast.workspace import MAX_READ_BYTES, Files, Workspace

if TYPE_CHECKING:
    from core.tests.unit.workspace.trees import Tree


def test_bytes_come_as_they_are(tree: Tree) -> None:
    (tree.root / "x").write_bytes(b"\x00\xff\r\n")
    assert run(tree.files.read_bytes("x")) == b"\x00\xff\r\n"


def test_line_ends_come_as_they_are(tree: Tree) -> None:
    (tree.root / "x").write_bytes(b"one\r\ntwo\nthree\rfour")
    assert run(tree.files.read_text("x")) == "one\r\ntwo\nthree\rfour"
    assert run(tree.files.read_text("x", line=2)) == "two\nthree\rfour"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_says_the_encoding_and_is_left_out(tree: Tree, encoding: str) -> None:
    (tree.root / "x").write_bytes("Grüße\nzwei\n".encode(encoding))
    assert run(tree.files.read_text("x")) == "Grüße\nzwei\n"
    assert run(tree.files.read_text("x", line=1, limit=1)) == "Grüße\n"
    assert run(tree.files.read_text("x", line=2)) == "zwei\n"


def test_an_encoding_that_is_named_is_used(tree: Tree) -> None:
    (tree.root / "x").write_bytes("é".encode("latin-1"))
    assert run(tree.files.read_text("x", encoding="latin-1")) == "é"
    with pytest.raises(UsageError, match="no encoding 'klingon'"):
        run(tree.files.read_text("x", encoding="klingon"))


@pytest.mark.parametrize("line", [None, 1])
def test_what_is_no_text_is_refused_and_told_what_to_do(tree: Tree, line: int | None) -> None:
    (tree.root / "latin").write_bytes(b"caf\xe9 au lait")
    with pytest.raises(NotText, match=r"'latin' is not utf-8 text \(byte 0xe9 does not fit\)\. Name its encoding, or"):
        run(tree.files.read_text("latin", line=line))
    (tree.root / "binary").write_bytes(b"\x7fELF\0\0")
    with pytest.raises(NotText, match=r"is a binary file\. Read it with read_bytes\."):
        run(tree.files.read_text("binary", line=line))
    (tree.root / "cut").write_bytes("é".encode()[:1])
    with pytest.raises(NotText):
        run(tree.files.read_text("cut", line=line))


def test_a_file_over_the_limit_is_refused_before_it_is_read(tree: Tree) -> None:
    with (tree.root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    for attempt in (tree.files.read_text("huge"), tree.files.read_bytes("huge")):
        with pytest.raises(FileTooLarge, match=f"has 1,099,511,627,776 bytes; at most {MAX_READ_BYTES:,} may be read"):
            run(attempt)


def test_the_limit_is_the_last_size_that_is_read(tree: Tree) -> None:
    assert run(tree.files.read_bytes("a.txt", max_bytes=2)) == b"a\n"
    with pytest.raises(FileTooLarge):
        run(tree.files.read_bytes("a.txt", max_bytes=1))
    assert run(tree.files.read_text("a.txt", line=1, max_bytes=2)) == "a\n"
    with pytest.raises(FileTooLarge, match="has more in these lines; at most 1 may be read"):
        run(tree.files.read_text("a.txt", line=1, max_bytes=1))


def test_some_lines_of_a_file_of_any_size_can_be_read(tree: Tree) -> None:
    with (tree.root / "log").open("w") as file:
        file.writelines(f"line {number}\n" for number in range(1, 10_001))
    assert run(tree.files.read_text("log", line=9_999, max_bytes=100)) == "line 9999\nline 10000\n"
    assert run(tree.files.read_text("log", limit=2, max_bytes=100)) == "line 1\nline 2\n"
    assert run(tree.files.read_text("log", line=5, limit=1)) == "line 5\n"


def test_lines_that_are_not_there_are_empty(tree: Tree) -> None:
    assert run(tree.files.read_text("a.txt", line=2)) == ""
    assert run(tree.files.read_text("a.txt", line=99, limit=5)) == ""
    assert run(tree.files.read_text("a.txt", limit=0)) == ""


def test_lines_are_counted_from_one(tree: Tree) -> None:
    with pytest.raises(UsageError, match="counted from 1"):
        run(tree.files.read_text("a.txt", line=0))
    with pytest.raises(UsageError, match="cannot be -1"):
        run(tree.files.read_text("a.txt", limit=-1))


@given(st.text(st.sampled_from("ab\r\né\U0001f600"), max_size=30), st.data())
def test_lines_put_together_are_the_file(text: str, data: st.DataObject) -> None:
    line = data.draw(st.integers(1, 8))
    limit = data.draw(st.none() | st.integers(0, 8))
    with TemporaryDirectory() as directory:
        files = Files(Workspace.resolve(directory))
        (Path(directory) / "x").write_bytes(text.encode())
        assert run(files.read_text("x")) == text
        lines = [part + "\n" for part in text.split("\n")]
        lines[-1] = lines[-1][:-1]
        end = None if limit is None else line - 1 + limit
        assert run(files.read_text("x", line=line, limit=limit)) == "".join(lines[line - 1 : end])


def test_a_directory_is_no_file(tree: Tree) -> None:
    for path in ("sub", "sub/", ".", tree.other):
        with pytest.raises(IsADirectoryError):
            run(tree.files.read_text(path))


@pytest.mark.timeout(60)
def test_pipes_sockets_and_devices_are_refused_without_waiting(tree: Tree) -> None:
    os.mkfifo(tree.root / "pipe")
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        here = Path.cwd()
        os.chdir(tree.root)  # the name of a socket must be short
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        for name in ("pipe", "socket"):
            files = tree.files
            for attempt in (files.read_bytes(name), files.read_text(name, line=1), files.write_text(name, "x")):
                with pytest.raises(FileRefused, match=f"'{name}' is a pipe, a socket or a device"):
                    run(attempt)
            assert run(tree.files.stat(name)).kind == "other"
    with pytest.raises(FileRefused, match="a device"):
        run(Files(Workspace.resolve("/dev"), openat2=tree.openat2).read_bytes("zero"))


def test_a_file_that_says_it_is_empty_is_read_to_its_end(tree: Tree) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc")
    files = Files(Workspace.resolve("/proc"), openat2=tree.openat2)
    assert "Pid:" in run(files.read_text(f"{os.getpid()}/status"))
    with pytest.raises(FileTooLarge, match="is growing"):
        run(files.read_text(f"{os.getpid()}/status", max_bytes=10))
