from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from holdfast.workspace import Files, Workspace, list_files, search_files, write_files

if TYPE_CHECKING:
    from pathlib import Path


def test_a_cancelled_write_is_over_when_the_cancellation_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    really = write_files.write_text

    def slow(*args: object, **kwargs: object) -> None:
        begun.set()
        assert go_on.wait(40)
        really(*args, **kwargs)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(write_files, "write_text", slow)

    async def work() -> None:
        write = asyncio.create_task(Files(Workspace.resolve(tmp_path)).write_text("a", "whole"))
        await asyncio.to_thread(begun.wait, 10)
        for _ in range(3):
            write.cancel()
            await asyncio.sleep(0)
        assert not write.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await write
        assert (tmp_path / "a").read_text() == "whole"

    asyncio.run(work())


def test_a_cancelled_write_that_fails_is_cancelled_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def fail(*_: object, **__: object) -> None:
        begun.set()
        assert go_on.wait(40)
        raise OSError(5, "the disk is broken")

    monkeypatch.setattr(write_files, "mkdir", fail)

    async def work() -> None:
        change = asyncio.create_task(Files(Workspace.resolve(tmp_path)).mkdir("a"))
        await asyncio.to_thread(begun.wait, 10)
        change.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await change

    asyncio.run(work())


@pytest.mark.parametrize("how", ["glob", "search"])
def test_a_cancelled_search_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def look(*args: object, **kwargs: object) -> None:
        flag = kwargs.get("stopped") or args[-1]
        assert isinstance(flag, threading.Event)
        begun.set()
        if flag.wait(40):
            stopped.set()

    monkeypatch.setattr(list_files, "glob", look)
    monkeypatch.setattr(search_files, "search", look)

    async def work() -> None:
        files = Files(Workspace.resolve(tmp_path))
        task = asyncio.create_task(files.glob("**") if how == "glob" else files.search("x"))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(stopped.wait, 10)

    asyncio.run(work())


def test_the_flag_that_stops_a_scan_is_heeded(tmp_path: Path) -> None:
    from holdfast.workspace.glob_pattern import GlobPattern
    from holdfast.workspace.safe_open import SafeOpener

    (tmp_path / "a").write_text("x")
    stopped = threading.Event()
    stopped.set()
    opener = SafeOpener(Workspace.resolve(tmp_path))
    place = opener.workspace.locate(".")
    assert list_files.glob(opener, place, GlobPattern.compile("**"), 10, (), stopped).truncated


def test_the_loop_runs_on_while_a_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.workspace import read_files

    go_on = threading.Event()

    def slow(*_: object) -> bytes:
        assert go_on.wait(40)
        return b"read"

    monkeypatch.setattr(read_files, "read_bytes", slow)

    async def work() -> None:
        read = asyncio.create_task(Files(Workspace.resolve(tmp_path)).read_bytes("a"))
        await asyncio.sleep(0)
        assert not read.done()
        go_on.set()
        assert await read == b"read"

    asyncio.run(work())


def test_many_writers_of_one_file_leave_one_of_their_contents(tmp_path: Path) -> None:
    async def work() -> None:
        files = Files(Workspace.resolve(tmp_path))
        contents = [str(number) * 1000 for number in range(50)]
        await asyncio.gather(*(files.write_text("d/f", content) for content in contents))
        assert await files.read_text("d/f") in contents
        assert [path.name for path in (tmp_path / "d").iterdir()] == ["f"]

    asyncio.run(work())
