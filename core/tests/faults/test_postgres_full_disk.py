"""A PostgreSQL whose disk is full: what clients see, and that nothing they saw is lost."""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from core.tests.support import postgres
from core.tests.support.full_disks import SmallDisk
from core.tests.support.sessions import CWD, Recorder, begin, engine_at, history, run, texts, watch
from holdfast.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from holdfast.engine import Engine, LiveSession

pytestmark = [pytest.mark.timeout(300), pytest.mark.requirement("P1", "P2", "P6")]

CAPACITY = 192 << 20
PATIENCE = 120.0


class SmallServer(postgres.Cluster):
    """A server whose data are on a disk of their own, which can be filled."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.disk = SmallDisk(self.data)
        self.disk.place = self.data / "x"

    def start_again(self) -> None:
        """Start it where it has ended for want of room."""
        with suppress(subprocess.CalledProcessError):
            self.stop("immediate")
        self.start()


@pytest.fixture
def server() -> Generator[SmallServer]:
    if postgres.GIVEN in os.environ:
        pytest.skip(f"{postgres.GIVEN} names a server whose disk is not ours to fill")
    directory = postgres.new_directory()
    small = SmallServer(directory)
    with mounted(small.data):
        try:
            small.create(max_wal_size="48MB", min_wal_size="32MB", shared_buffers="32MB")
            small.start()
            yield small
        finally:
            small.disk.free()
            small.remove()


@contextmanager
def mounted(directory: Path) -> Generator[None]:
    """Mount a small file system; skip the test where that is not allowed."""
    directory.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={CAPACITY},mode=0700", "tmpfs", str(directory)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a file system of its own can be mounted by root only")
    try:
        if os.getuid() == 0:
            os.chown(directory, postgres.NOBODY, postgres.NOBODY)
        yield
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


async def outcome(engine: Engine, session: LiveSession, text: str) -> str:
    """Prompt; return why that failed, or nothing."""
    turn = begin(engine, session, f"say {text}")
    async with asyncio.timeout(PATIENCE):
        try:
            await turn.accepted
        except RequestError as e:
            return e.message
        end = await turn.ended
    return end.error or ""


async def until_it_works(engine: Engine, session: LiveSession, text: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while await outcome(engine, session, text):  # noqa: ASYNC110
            await asyncio.sleep(0.2)


async def test_prompts_are_refused_with_the_reason_while_tables_have_no_room_and_work_again_when_they_have(
    server: SmallServer,
) -> None:
    async with engine_at(server.address) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "say before")
        server.disk.fill()
        failures = [await outcome(engine, session, f"{number} " + "word " * 20_000) for number in range(6)]
        failed = [failure for failure in failures if failure]
        assert failed and all("no space left" in failure for failure in failed), failures
        server.disk.free()
        await until_it_works(engine, session, "after")
        stored = await history(engine, session)
        assert texts(stored)[0] == "before" and texts(stored)[-1] == "after"
        assert recorder.history() == stored
    async with engine_at(server.address) as again:
        assert await history(again, await again.restore(session.id, CWD)) == stored


async def test_a_server_that_ends_because_its_log_has_no_room_loses_nothing_that_was_seen(server: SmallServer) -> None:
    async with engine_at(server.address) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "say before")
        server.disk.fill()
        for _ in range(100):  # it has some of its log ready, and ends when that is used up
            try:
                await postgres.run_sql(
                    server.address, "SELECT pg_logical_emit_message(true, 'x', repeat('x', 1000000))"
                )
            except Exception:  # noqa: BLE001  (whatever it is that the driver raises then)
                break
        else:
            pytest.fail("it has not ended")
        refusal = await outcome(engine, session, "meanwhile")
        assert "cannot be reached" in refusal
        seen = recorder.history()
        server.disk.free()
        await asyncio.to_thread(server.start_again)
        await until_it_works(engine, session, "after")
        stored = await history(engine, session)
        assert texts(stored)[0] == "before" and texts(stored)[-1] == "after"
        assert recorder.history() == stored
        assert stored[: len(seen)] == seen
        late = await watch(engine, session, Recorder())
        assert late.history() == stored
