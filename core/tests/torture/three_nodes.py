"""Three nodes on one PostgreSQL, killed, stopped and cut off at random: is all that clients saw stored, once, in order?

    python -m core.tests.torture.three_nodes --seconds 600

Clients open sessions on any node, prompt, and write down what they are shown as it is shown. Meanwhile nodes are killed
and started again, stopped past their lease and continued; connections are cut and the database is restarted. At the
end everything written down is compared with what is stored; see `core.tests.support.history_checker`.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from core.tests.support import postgres
from core.tests.support.history_checker import Accepted, Loaded, Shown, Stored, Witness, check
from core.tests.support.sessions import CWD, Recorder, ScriptedAgent, block, engine_at
from core.tests.torture.progress import Progress
from holdfast.errors import HoldfastError, StoreError
from holdfast.format import fold
from holdfast.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holdfast.engine import Engine, LiveSession
    from holdfast.model import Event

REPOSITORY = Path(__file__).parents[3]
SESSIONS = 6
CLIENTS = 3
"""So many clients each node has at a time."""
LEASE = 1.5
PATIENCE = 60.0


# A node and its clients


class WritingClient(Recorder):
    """A client that writes down what it is shown, before it does anything else."""

    def __init__(self, notes: Notes, session: str) -> None:
        super().__init__()
        self._notes = notes
        self._session = session
        self.attachment: Any = None

    def show(self, events: Sequence[Event]) -> None:
        at = self.attachment.showing if self.attachment is not None else None
        for number, event in enumerate(events, start=1):
            update = event.update()
            if update["sessionUpdate"] == "agent_message_chunk" and at is not None:
                position = list(at.after(number))
                self._notes.write(
                    "shown", id(self), self._session, position, update["messageId"], update["content"]["text"]
                )
        super().show(events)


class Notes:
    """A file of what clients were promised; what is in it survives the death of the process."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def write(self, *words: object) -> None:
        os.write(self._fd, json.dumps(words).encode() + b"\n")


async def be_a_node(address: str, name: str, notes: Path, over: Path, sessions: list[str]) -> None:
    """Serve clients until it is over."""
    chance = random.Random(name)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _tell_tasks)
    while True:
        try:
            await (await open_store(address)).close()
            break
        except StoreError:  # it is being restarted: whoever keeps nodes running would start this one again
            await asyncio.sleep(0.1)
    async with engine_at(address, ScriptedAgent()) as engine:
        await asyncio.gather(
            *(_be_a_client(engine, Notes(notes), f"{name}-{n}", chance, over, sessions) for n in range(CLIENTS))
        )


def _tell_tasks() -> None:
    for task in asyncio.all_tasks():
        task.print_stack(file=sys.stderr)


async def _be_a_client(
    engine: Engine, notes: Notes, name: str, chance: random.Random, over: Path, sessions: list[str]
) -> None:
    number = 0
    while not os.path.exists(over):  # noqa: ASYNC240, PTH110  (a look)
        number += 1
        try:
            session = await engine.restore(chance.choice(sessions), CWD)
            await _visit(engine, session, notes, f"{name}-{number}", chance)
        except HoldfastError as e:
            notes.write("refused", type(e).__name__)
            await asyncio.sleep(chance.uniform(0.01, 0.2))


async def _visit(engine: Engine, session: LiveSession, notes: Notes, name: str, chance: random.Random) -> None:
    """Load a session, prompt once, watch until the turn is over, and leave."""
    client = WritingClient(notes, session.id)
    attachment = await session.attach(client)
    client.attachment = attachment
    try:
        past = [line async for some in attachment.past(engine.store) for block in some for line in block.split(b"\n")]
        notes.write("loaded", session.id, _messages(past))
        attachment.follow()
        least = chance.choice((0, 1))  # some say all they have at once
        words = [f"say {name}.{n} \ntick {chance.randint(least, 3 * least)}" for n in range(chance.randint(1, 12))]
        # Version 1 tells nobody that a prompt was accepted, before its turn has ended.
        is_told = chance.choice((True, False))
        turn = session.prompt([block("\n".join(words))], acknowledged=is_told)
        if is_told:
            await turn.accepted
            notes.write("accepted", session.id, "\n".join(words))
        async with asyncio.timeout(PATIENCE):
            end = await turn.ended
        if not is_told and end.reason == "end_turn":
            notes.write("accepted", session.id, "\n".join(words))
        notes.write("ended", end.reason)
    finally:
        session.detach(attachment)


def _messages(lines: Iterable[bytes]) -> list[tuple[str, str]]:
    found = fold(line for line in lines if line)
    return [(str(entry.key), entry.text()) for entry in found if entry.entity in ("user_message", "agent_message")]


# The trial


@dataclass(slots=True)
class Tally:
    wrong: list[str]
    counts: Counter[str] = field(default_factory=Counter[str])

    def __str__(self) -> str:
        counted = ", ".join(f"{count:,} {what}" for what, count in sorted(self.counts.items()))
        return f"{counted}; {len(self.wrong)} wrong"


class Trial:
    """Nodes on a server, and what is done to them."""

    def __init__(self, cluster: postgres.Cluster, directory: Path, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self._cluster = cluster
        self._directory = directory
        self._chance = random.Random(seed)
        self._address = f"{cluster.address}&lease={LEASE}"
        self._nodes: list[asyncio.subprocess.Process] = []
        self._over = directory / "over"
        self._sessions: list[str] = []

    async def run(self, seconds: float, progress: Progress | None = None) -> Tally:
        """Let nodes work, and disturb them; compare what was seen with what is stored."""
        async with engine_at(self._address, ScriptedAgent()) as engine:
            self._sessions = [(await engine.create(CWD)).id for _ in range(SESSIONS)]
        for _ in range(3):
            self._nodes.append(await self._start())
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                await asyncio.sleep(self._chance.uniform(0.3, 1.5))
                await self._disturb()
                if progress is not None:
                    progress.tell(seconds - max(until - time.monotonic(), 0.0))
        finally:
            self._over.touch()
            await self._stop_all()
        witness = self._read_notes()
        return Tally(check(witness, await self._stored()), self.counts)

    async def _disturb(self) -> None:
        what = self._chance.choice(("kill", "kill", "pause", "pause", "cut", "restart"))
        at = self._chance.randrange(len(self._nodes))
        self.counts[what] += 1
        match what:
            case "kill":
                with suppress(ProcessLookupError):
                    self._nodes[at].kill()
                await self._nodes[at].wait()
                self._nodes[at] = await self._start()
            case "pause":
                with suppress(ProcessLookupError):
                    self._nodes[at].send_signal(signal.SIGSTOP)
                    await asyncio.sleep(LEASE + self._chance.uniform(-1.0, 1.0))
                    self._nodes[at].send_signal(signal.SIGCONT)
            case "cut":
                await postgres.run_sql(
                    self._address,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'",
                )
            case _:
                await asyncio.to_thread(self._cluster.restart, self._chance.choice(("fast", "immediate")))

    async def _start(self) -> asyncio.subprocess.Process:
        self.counts["started"] += 1
        name = f"n{self.counts['started']}"
        work = [
            self._address,
            name,
            str(self._directory / f"{name}.notes"),
            str(self._over),
            json.dumps(self._sessions),
        ]
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "core.tests.torture.three_nodes", "--work", *work, cwd=REPOSITORY, stderr=2
        )

    async def _stop_all(self) -> None:
        for node in self._nodes:
            with suppress(ProcessLookupError):
                node.send_signal(signal.SIGCONT)
            try:
                async with asyncio.timeout(PATIENCE):
                    await node.wait()
            except TimeoutError:
                self.counts["did not end"] += 1
                node.send_signal(signal.SIGUSR1)  # it says on stderr what it waits for
                await asyncio.sleep(2)
                node.kill()
                await node.wait()

    def _read_notes(self) -> Witness:
        witness = Witness()
        watched: dict[tuple[str, int], list[Shown]] = {}
        known: dict[tuple[str, str], tuple[str, str]] = {}  # every load has all that was before: each once in memory
        for path in self._directory.glob("*.notes"):
            for line in _whole_lines(path):
                kind, *words = json.loads(line)
                self.counts[kind] += 1
                match kind:
                    case "shown":
                        client, session, position, message, text = words
                        shown = Shown(session, tuple(position), message, text)
                        watched.setdefault((path.name, client), []).append(shown)
                    case "loaded":
                        messages = [(message, text) for message, text in words[1]]
                        witness.loaded.append(Loaded(words[0], [known.setdefault(one, one) for one in messages]))
                    case "accepted":
                        witness.accepted.append(Accepted(*words))
                    case _:
                        self.counts[f"{kind} {words[0]}"] += 1
        witness.shown = list(watched.values())
        return witness

    async def _stored(self) -> dict[str, list[Stored]]:
        """Open every session once more, which ends what was broken, and read it."""
        found: dict[str, list[Stored]] = {}
        async with engine_at(self._address, ScriptedAgent()) as engine:
            for session_id in self._sessions:
                async with asyncio.timeout(PATIENCE):
                    session = await self._restored(engine, session_id)
                attachment = await session.attach(Recorder())
                blocks = [block async for some in attachment.past(engine.store) for block in some]
                session.detach(attachment)
                lines = [line for block in blocks for line in block.split(b"\n")]
                found[session_id] = [Stored(*one) for one in _messages(lines)]
        return found

    async def _restored(self, engine: Engine, session_id: str) -> LiveSession:
        while True:
            try:
                return await engine.restore(session_id, CWD)
            except HoldfastError:  # until the lease of a dead node is over
                await asyncio.sleep(0.1)


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, but for the end of one whose writer was killed."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line


async def trial(seconds: float, seed: int, progress: Progress | None = None) -> Tally:
    """Start a server and run a trial on it."""
    cluster = postgres.Cluster(postgres.new_directory())
    try:
        await asyncio.to_thread(cluster.create)
        await asyncio.to_thread(cluster.start)
        with TemporaryDirectory() as path:
            return await Trial(cluster, Path(path), seed).run(seconds, progress)
    finally:
        await asyncio.to_thread(cluster.remove)


def main() -> int:
    """Run a trial, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--work", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        address, name, notes, over, sessions = options.work
        asyncio.run(be_a_node(address, name, Path(notes), Path(over), json.loads(sessions)))
        return 0
    progress = Progress(options.seconds, "seconds")
    tally = asyncio.run(trial(options.seconds, options.seed, progress))
    for wrong in tally.wrong[:20]:
        print(wrong, file=sys.stderr)
    progress.close(f"3 nodes, {options.seconds:.0f} s, seed {options.seed}: {tally}")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
