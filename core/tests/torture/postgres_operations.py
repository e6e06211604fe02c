"""What operators do to a PostgreSQL with sessions in it: a standby is promoted, a backup is taken back to a moment.

    python -m core.tests.torture.postgres_operations

*Failover*: a standby follows the primary, which is killed while turns run; the standby is promoted, and a node whose
address names both servers goes on there. With `synchronous_standby_names` all that clients saw is on it; without,
how much is missing is counted. *Recovery*: a base backup and archived WAL, recovered to a moment between two turns.
"""

# ruff: noqa: T201

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from core.tests.support import postgres
from core.tests.support.sessions import CWD, ScriptedAgent, begin, ended, engine_at, watch
from holdfast.errors import HoldfastError
from holdfast.format import fold

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine import Engine, LiveSession

PATIENCE = 120.0


class Server(postgres.Cluster):
    """A server that can be copied, killed and promoted."""

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as the user that the server runs as."""
        self._run(program, *arguments)

    def copy_of(self, other: Server, *arguments: str) -> None:
        """Become a base backup of another server."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        self._programs = other._programs
        if self._as:
            os.chown(self.directory, postgres.NOBODY, postgres.NOBODY)
        self.run("pg_basebackup", "-h", str(other.directory), "-U", "postgres", "-D", str(self.data), *arguments)
        self.configure(f"unix_socket_directories = '{self.directory}'")

    def configure(self, *lines: str) -> None:
        """Add settings."""
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write("\n".join(["", *lines, ""]))

    def promote(self) -> None:
        """Make a primary of a standby."""
        self._control("promote")

    def kill(self) -> None:
        """Stop it as a crash would."""
        self.stop("immediate")


def _new_server() -> Server:
    return Server(postgres.new_directory())


async def fail_over(*, synchronous: bool) -> str:
    """Kill a primary in mid-turn, promote its standby, and go on there; say what became of what was seen."""
    primary, standby = _new_server(), _new_server()
    try:
        await asyncio.to_thread(primary.create, wal_level="replica", max_wal_senders="4")
        await asyncio.to_thread(primary.start)
        await asyncio.to_thread(standby.copy_of, primary, "-R", "-C", "-S", "standby")
        await asyncio.to_thread(standby.start)
        if synchronous:
            await postgres.run_sql(primary.address, "ALTER SYSTEM SET synchronous_standby_names = '*'")
            await postgres.run_sql(primary.address, "SELECT pg_reload_conf()")
            await _until(primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
        hosts = f"{primary.directory},{standby.directory}"
        address = f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write&lease=2"
        return await _story(address, primary, standby)
    finally:
        for server in (standby, primary):  # whose programs it uses
            await asyncio.to_thread(server.remove)


async def _story(address: str, primary: Server, standby: Server) -> str:
    async with engine_at(address, ScriptedAgent()) as engine, asyncio.timeout(PATIENCE):
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, *[f"say {n}. \ntick 5" for n in range(400)])
        while recorder.said().count(".") < 20:  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.01)
        await asyncio.to_thread(primary.kill)
        await asyncio.to_thread(standby.promote)
        end = await ended(turn)
        seen = recorder.said()
        opened = await _restored(engine, session.id)
        after = await ended(begin(engine, opened, "say again"))
        stored = await _texts(engine, opened)
    kept = next((n for n, pair in enumerate(zip(seen, stored[0], strict=False)) if pair[0] != pair[1]), len(stored[0]))
    lost = max(len(seen) - kept, 0)
    return f"the turn ended with {end.reason}, the next with {after.reason}; {lost} of {len(seen)} characters lost"


async def _restored(engine: Engine, session: str) -> LiveSession:
    while True:
        try:
            return await engine.restore(session, CWD)
        except HoldfastError:
            await asyncio.sleep(0.1)


async def _texts(engine: Engine, session: LiveSession) -> list[str]:
    blocks = [block async for some in engine.store.read(session.id, 0, session.journal.lines) for block in some]
    entries = fold(line for block in blocks for line in block.split(b"\n") if line)
    return [entry.text() for entry in entries if entry.entity == "agent_message"]


async def recover() -> str:
    """Take a base backup, go on, and recover to a moment between two turns from the backup and the archive."""
    primary, restored = _new_server(), _new_server()
    archive = primary.directory / "archive"
    try:
        copy = f"'test ! -f {archive}/%f && cp %p {archive}/%f'"
        await asyncio.to_thread(primary.create, wal_level="replica", archive_mode="on", archive_command=copy)
        archive.mkdir()
        if os.getuid() == 0:
            shutil.chown(archive, postgres.NOBODY, postgres.NOBODY)
        await asyncio.to_thread(primary.start)
        session, moment = await _turns_around_a_moment(primary, restored)
        await asyncio.to_thread(primary.kill)
        restored.configure(
            f"restore_command = 'cp {archive}/%f %p'",
            f"recovery_target_time = '{moment.isoformat()}'",
            "recovery_target_action = 'promote'",
        )
        _touch(restored.data / "recovery.signal")
        await asyncio.to_thread(restored.start)
        await _until(restored, "SELECT count(*) WHERE NOT pg_is_in_recovery()")
        async with engine_at(restored.address, ScriptedAgent()) as engine:
            opened = await engine.restore(session, CWD)
            end = await ended(begin(engine, opened, "say four"))
            return f"{await _texts(engine, opened)}, and the next turn ended with {end.reason}"
    finally:
        for server in (restored, primary):  # whose programs it uses
            await asyncio.to_thread(server.remove)


async def _turns_around_a_moment(primary: Server, restored: Server) -> tuple[str, datetime]:
    async with engine_at(primary.address, ScriptedAgent()) as engine:
        session = await engine.create(CWD)
        await ended(begin(engine, session, "say one"))
        await asyncio.to_thread(restored.copy_of, primary)
        await ended(begin(engine, session, "say two"))
        await asyncio.sleep(1.0)
        moment = datetime.now(UTC)
        await asyncio.sleep(1.0)
        await ended(begin(engine, session, "say three"))
        await postgres.run_sql(primary.address, "SELECT pg_switch_wal()")
        await _until(primary, "SELECT count(*) FROM pg_stat_archiver WHERE last_archived_time > now() - interval '5 s'")
        return session.id, moment


def _touch(path: Path) -> None:
    path.touch()
    if os.getuid() == 0:
        shutil.chown(path, postgres.NOBODY, postgres.NOBODY)


async def _until(server: Server, question: str) -> None:
    """Wait until a count is not zero."""
    async with asyncio.timeout(PATIENCE):
        while True:
            rows: list[Any] = []
            with suppress(OSError, subprocess.SubprocessError):
                rows = await postgres.run_sql(server.address, question)
            if rows and rows[0][0]:
                return
            await asyncio.sleep(0.1)


async def main() -> int:
    """Do all of it, and say what came of it."""
    synchronous = await fail_over(synchronous=True)
    print(f"failover with a synchronous standby: {synchronous}", flush=True)
    print(f"failover with an asynchronous standby: {await fail_over(synchronous=False)}", flush=True)
    recovered = await recover()
    print(f"recovered to a moment between the second turn and the third: {recovered}", flush=True)
    return 0 if "; 0 of" in synchronous and recovered.startswith("['one', 'two', 'four']") else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
