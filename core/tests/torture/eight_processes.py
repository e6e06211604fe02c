"""Eight processes use one store, take each other's sessions and get killed: is every word there, once and in order?

    python -m core.tests.torture.eight_processes --seconds 60

Each process claims sessions at random, which takes them from whoever has them idle, and speaks in them. What it has
been promised it writes down in a file of its own. Now and then one is killed without warning and another takes its
place. At the end everything written down is looked for in the store: nothing may be missing or there twice, no session
may have words of a writer who had lost it, and whoever wrote with an old claim must have been refused.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import apsw

from core.tests.support.stores import history, hits, info, logged, message, new, walk
from core.tests.torture.progress import Progress
from holdfast.errors import SessionBusy, SessionMoved, SessionNotFound
from holdfast.format import Line, event_in, fold, lines_of
from holdfast.model import SessionState
from holdfast.store import Changes, open_store

if TYPE_CHECKING:
    from collections.abc import Collection

    from holdfast.store import Claim, Claimed, SessionStore, Store

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false

REPOSITORY = Path(__file__).parents[3]
SESSIONS = 16
AT_ONCE = 3
NOTHING = Changes()
OVER = "over"
"""Where there is a file of this name beside the store, it is time to stop."""


class Worker:
    """One process at the store: speaks in any session it can get, and writes down what it was promised."""

    def __init__(self, store: SessionStore, name: str, journal: Path, sessions: list[str]) -> None:
        self._store = store
        self._name = name
        self._journal = os.open(journal, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._chance = random.Random(name)
        self._sessions = sessions
        self._over = journal.parent / OVER
        self._in_hand: set[str] = set()
        self._claims: dict[str, Claim] = {}
        self._stale: list[Claim] = []
        self._spoken = 0

    def note(self, *words: object) -> None:
        """Write something down for whoever looks when this process is dead."""
        os.write(self._journal, " ".join(map(str, words)).encode() + b"\n")

    async def work(self, until: float) -> None:
        """Do this and that until it is time."""
        ways = [self.speak] * 12 + [self.look] * 2 + [self.write_stale, self.fork, self.let_go]
        while time.time() < until and not self._over.exists():
            session = self._chance.choice([session for session in self._sessions if session not in self._in_hand])
            self._in_hand.add(session)
            try:
                if session not in self._claims or self._chance.random() < 0.1:
                    await self.take(session)
                await self._chance.choice(ways)(session)
            except SessionMoved:
                self.note("moved")
                self._stale.append(self._claims.pop(session))
            except SessionBusy:
                self.note("busy")
            finally:
                self._in_hand.remove(session)

    async def take(self, session: str) -> None:
        """Become the owner of a session, and seal what another has left."""
        claimed = await self._store.claim(session)
        if session in self._claims:
            self._stale.append(self._claims[session])
        self._claims[session] = claimed.claim
        if await recover(self._store, claimed):
            self.note("recovered")

    async def speak(self, session: str) -> None:
        """Let a turn begin, say something, and end."""
        claim = self._claims[session]
        said = [self.word(claim)]
        log = await self._store.begin(claim, [logged(said[0])], NOTHING)
        self.note("said", session, said[0].text)
        for _ in range(self._chance.randint(0, 6)):
            said.append(self.word(claim))
            log.append(logged(said[-1]) + b"\n")
            self.note("said", session, said[-1].text)
            await self.look(self._chance.choice(self._sessions))
        await self._store.seal(claim, said, NOTHING, messages=len(said))
        self.note("sealed", session)

    def word(self, claim: Claim) -> Line:
        """Make up a word nobody has said before; it tells who says it, when, and under which claim."""
        self._spoken += 1
        filler = "x" * self._chance.choice([0, 0, 500, 5_000])
        word = f"{self._name}z{self._spoken}z{claim.epoch}"
        return Line(message(f"{word} {filler}", key=word).body, word)

    async def write_stale(self, session: str) -> None:
        """Try to write with a claim that another has outdated."""
        if self._stale:
            claim = self._stale[-1]
            line = Line(b'{"sessionUpdate":"_stale"}', "")
            try:
                await self._store.seal(claim, [line], NOTHING, messages=1)
            except SessionMoved:
                self.note("refused")
            else:
                self.note("error", "a stale claim was taken")

    async def look(self, session: str) -> None:
        """Read, list and search while others write."""
        record = await self._store.get(session)
        lines = await history(self._store, session, record.lines)
        if len(lines) != record.lines or len(set(lines)) != len(lines):
            self.note("error", f"{len(lines)} lines, {len(set(lines))} of them different, not {record.lines}")
        listed = await walk(self._store, limit=7)
        if len(set(listed)) != len(listed):
            self.note("error", "a session was listed twice")
        await hits(self._store, self._name, limit=5)

    async def fork(self, session: str) -> None:
        """Fork a session; forget most forks again."""
        made = info(messages=1)
        forked = await self._store.fork(self._claims[session], made, SessionState(), up_to=None, lines=[])
        if self._chance.random() < 0.2:
            self.note("forked", session, made.id)
            await self._store.release(forked.claim)
        else:
            await self._store.delete(made.id)

    async def let_go(self, session: str) -> None:
        """Let a session go."""
        await self._store.release(self._claims.pop(session))


async def recover(store: Store, claimed: Claimed) -> bool:
    """Seal a broken turn, as it was said."""
    if claimed.broken is None:
        return False
    said = lines_of(fold(claimed.broken.lines))
    await store.seal(claimed.claim, said, NOTHING, messages=len(said))
    return True


async def be_a_worker(path: str, name: str, journal: Path, until: float) -> None:
    store = await open_store(path)
    sessions = (Path(path).parent / "sessions").read_text().split()
    worker = Worker(store, name, journal, sessions)
    try:
        # Several at once, so that what they write is committed in groups.
        await asyncio.gather(*(worker.work(until) for _ in range(AT_ONCE)))
    except Exception as e:
        worker.note("error", repr(e))
        raise
    await store.close()


@dataclass
class Tally:
    """What became of it all."""

    counts: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        return f"{counts}; {len(self.wrong)} wrong"


async def trial(
    base: Path, seconds: float, processes: int = 8, seed: int = 0, *, wanted: Collection[str] = (), longest: float = 0.0
) -> Tally:
    """Let them work, kill some, and look at what is left.

    They go on, for `longest` seconds at most, until all that is `wanted` has happened: on a busy machine little does.
    """
    path = str(base / "s.db")
    store = await open_store(path)
    sessions = [(await new(store)).session for _ in range(SESSIONS)]
    (base / "sessions").write_text("\n".join(sessions))
    await store.close()
    tally = Tally()
    times = seconds, max(seconds, longest)
    killed = await asyncio.to_thread(crowd, base, times, processes, random.Random(seed), wanted)
    tally.counts["killed"] = killed
    words: dict[str, list[str]] = {session: [] for session in sessions}
    forks: list[tuple[str, str]] = []
    for journal in sorted(base.glob("journal-*")):  # noqa: ASYNC240
        for line in journal.read_text().splitlines():
            what, *rest = line.split(" ")
            tally.counts[what] += 1
            if what == "said":
                words[rest[0]].append(rest[1])
            elif what == "forked":
                forks.append((rest[0], rest[1]))
            elif what == "error":
                tally.wrong.append(line)
    await judge(path, words, forks, tally)
    return tally


def crowd(
    base: Path, times: tuple[float, float], processes: int, chance: random.Random, wanted: Collection[str]
) -> int:
    """Keep so many workers at work, killing one now and then; say how many were killed."""
    seconds, longest = times
    begun, until = time.time(), time.time() + longest
    lives = 0
    journals: dict[int, Path] = {}

    def start(place: int) -> subprocess.Popen[bytes]:
        nonlocal lives
        lives += 1
        journals[place] = base / f"journal-{lives}"
        command = [sys.executable, "-m", "core.tests.torture.eight_processes", "--work", str(base / "s.db")]
        command += ["--name", f"w{place}y{lives}", "--until", str(until), "--journal", str(journals[place])]
        return subprocess.Popen(command, cwd=REPOSITORY)

    workers = [start(place) for place in range(processes)]
    progress = Progress(seconds, "seconds")
    killed = 0
    try:
        while (left := until - time.time()) > 2:
            if time.time() > begun + seconds - 2 and has_happened(base, wanted):
                break
            progress.tell(min(longest - left, seconds), f"{killed} killed")
            time.sleep(min(left, chance.uniform(0.1, 1.0)))
            place = chance.randrange(processes)
            if not journals[place].exists():
                continue  # it is still starting: nothing would come of it
            workers[place].kill()
            workers[place].wait()
            killed += 1
            workers[place] = start(place)
        time.sleep(2)
        (base / OVER).touch()
        for worker in workers:
            worker.wait(120)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    return killed


def has_happened(base: Path, wanted: Collection[str]) -> bool:
    """Say whether each of these is in some worker's journal."""
    written = "".join(journal.read_text() for journal in base.glob("journal-*"))
    return all(f"\n{what}" in f"\n{written}" for what in wanted)


async def judge(path: str, words: dict[str, list[str]], forks: list[tuple[str, str]], tally: Tally) -> None:
    """Look for everything that was promised."""
    db = apsw.Connection(path)
    if db.pragma("quick_check") != "ok":
        tally.wrong.append("the database is damaged")
    db.close()
    store = await open_store(path)
    found: dict[str, list[str]] = {}
    try:
        for session, promised in words.items():
            tally.counts["recovered"] += await recover(store, await store.claim(session))
            record = await store.get(session)
            lines = await history(store, session, record.lines)
            said = [event_in(line).key for line in lines]
            found[session] = said
            wrong = [word for word, count in Counter(said).items() if count > 1]
            missing = set(promised) - set(said)
            epochs = [int(word.split("z")[2]) for word in said]
            tally.counts["lines"] += len(said)
            if wrong or missing:
                tally.wrong.append(
                    f"{session}: {len(wrong)} words twice, {len(missing)} missing: {sorted(missing)[:5]}"
                )
            if epochs != sorted(epochs):
                tally.wrong.append(f"{session}: somebody wrote who had lost it")
            if not (record.lines == record.info.messages == len(lines)):
                tally.wrong.append(f"{session}: {len(lines)} lines, counted {record.lines}, {record.info.messages}")
            tally.wrong += out_of_order(session, said)
            for word in said[:: max(1, len(said) // 5)]:
                if not await hits(store, word):
                    tally.wrong.append(f"{word} is not found")
        for source, copy in forks:
            try:
                lines = await history(store, copy)
            except SessionNotFound:
                tally.wrong.append(f"the fork {copy} is gone")
                continue
            said = [event_in(line).key for line in lines]
            if said != found[source][: len(said)]:
                tally.wrong.append(f"the fork {copy} is not what its source was")
    finally:
        await store.close()


def out_of_order(session: str, said: list[str]) -> list[str]:
    """Find speakers whose words do not stand in the order in which they said them."""
    latest: dict[str, int] = {}
    wrong: list[str] = []
    for word in said:
        name, number, _ = word.split("z")
        if latest.get(name, 0) >= int(number):
            wrong.append(f"{session}: {word} comes too late")
        latest[name] = int(number)
    return wrong


def main() -> int:
    """Let eight processes work on one store and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    parser.add_argument("--journal", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        asyncio.run(be_a_worker(options.work, options.name, options.journal, options.until))
        return 0
    with TemporaryDirectory() as path:
        tally = asyncio.run(trial(Path(path), options.seconds, options.processes, options.seed))
    for wrong in tally.wrong[:20]:
        print(wrong, file=sys.stderr)
    print(f"{options.processes} processes, {options.seconds:.0f} s, seed {options.seed}: {tally}")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
