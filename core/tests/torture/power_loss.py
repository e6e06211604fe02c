"""Power is lost while a store is used: is everything there that was acknowledged?

    python -m core.tests.torture.power_loss --rounds 20000

A store works on a disk that remembers what was synced and what was not. At random moments, in the middle of whatever
is being written, the disk is taken as a machine that lost power could find it: all that was synced, and of the rest
nothing, all, a part, or pieces of sectors. The same with the logs of running turns. From each such disk a store is
opened; it must hold what had been acknowledged, and of what was under way all or nothing. Prints what was lost; exits
with 1 if that was anything. To see that the disk is a cruel one, a disk that only pretends to sync is tried as well.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import apsw
import msgspec

from core.tests.support.disks import ForgetfulDisk
from core.tests.support.scratch import scratch
from core.tests.support.stores import history, info, logged, message, prompt
from core.tests.torture.progress import Progress
from holdfast.errors import HoldfastError, SessionNotFound
from holdfast.format.segments import DAMAGED
from holdfast.model import SessionState
from holdfast.store import Changes
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.turn_file import TurnFile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from core.tests.support.disks import Moment, Operation
    from holdfast.store import Claim

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false

NAME = "s.db"
LIES = 200


@dataclass(frozen=True, slots=True)
class Said:
    """A running turn: what it began with, what it has said since, and how much of that was synced."""

    prompt: tuple[bytes, ...]
    lines: tuple[bytes, ...] = ()
    synced: int = 0
    is_certain: bool = True
    """Whether anyone was told that it was accepted."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a session."""

    lines: tuple[bytes, ...] = ()
    title: str | None = None
    memory: int = 0
    turn: Said | None = None


World: TypeAlias = "dict[str, Known]"
T = TypeVar("T")


class Log(NamedTuple):
    """The log of a session at one moment, and what it had held before it was emptied."""

    name: str
    data: bytes
    synced: int
    old: bytes

    def lose_power(self, chance: random.Random) -> bytes | None:
        """Choose what is found of it afterwards."""
        if self.synced == 0 and chance.random() < 0.3:
            return None
        if self.synced == 0 and chance.random() < 0.3:
            return self.old
        kept = chance.randint(self.synced, len(self.data))
        match chance.choice(["short", "zeros", "garbage"]):
            case "short":
                return self.data[:kept]
            case "zeros":
                return self.data[:kept] + bytes(len(self.data) - kept)
            case _:
                return self.data[:kept] + chance.randbytes(len(self.data) - kept)


class Loss(NamedTuple):
    """A moment at which power is lost: the disk, the logs, what was acknowledged, and what was under way."""

    disk: Moment
    logs: tuple[Log, ...]
    acknowledged: World
    under_way: tuple[World, ...]
    """What may have become of it by what was under way."""
    during: str


class Life:
    """A store in use, on a disk that may lose power at any moment."""

    def __init__(self, base: Path, chance: random.Random, disk: ForgetfulDisk, wanted: int) -> None:
        self.losses: list[Loss] = []
        self._path = base / NAME
        self._chance = chance
        self._disk = disk
        self._wanted = wanted
        self._world: World = {}
        self._under_way: tuple[World, ...] = ()
        self._claims: dict[str, Claim] = {}
        self._logs: dict[str, tuple[str, TurnFile]] = {}
        self._old_logs: dict[str, bytes] = {}
        self._doing = "open"
        self._vfs = ""
        self._store: SqliteStore

    async def live(self, steps: int) -> None:
        """Use a store, at random, for a while."""
        ways = [self.begin] * 2 + [self.say] * 4 + [self.seal] * 2
        ways += [self.together] * 3 + [self.save, self.create, self.fork, self.delete, self.reopen, self.vacuum]
        self._disk.notice = self.notice
        with self._disk.mounted() as self._vfs:
            self._store = await SqliteStore.open(str(self._path), vfs=self._vfs)
            for step in range(steps):
                way = self.create if len(self._world) < 2 else self._chance.choice(ways)
                await way(step)
            self._doing = "close"
            await self._store.close()
        self._disk.notice = lambda operation, path: None

    def notice(self, operation: Operation, path: str) -> None:
        """Maybe lose power now."""
        often = (0.02 if path.endswith("-wal") else 0.05) if operation == "write" else 0.2
        if self._chance.random() < often:
            self.lose(f"{operation} {path.rsplit('/', 1)[-1]} in {self._doing}")

    def lose(self, during: str) -> None:
        """Hold the moment: power will be lost."""
        if len(self.losses) < self._wanted:
            synced = {name: log.synced for name, log in self._logs.values()}
            logs = tuple(
                Log(path.name, path.read_bytes(), synced.get(path.name, 0), self._old_logs.get(path.name, b""))
                for path in self.turns()
            )
            self.losses.append(Loss(self._disk.moment(), logs, self._world, self._under_way, during))

    def turns(self) -> list[Path]:
        """Find the logs there are."""
        directory = self._path.with_name(f"{NAME}.turns")
        return list(directory.iterdir()) if directory.exists() else []

    async def do(self, what: str, doing: Awaitable[T], **after: Known | None) -> T:
        """Do something that is acknowledged when it is done; `after` says what is known then."""
        self._doing = what
        self._under_way = worlds = tuple(self._worlds(after))
        done = await doing
        self._world, self._under_way = worlds[-1], ()
        if self._chance.random() < 0.1:
            self.lose(f"after {what}")
        return done

    def _worlds(self, after: dict[str, Known | None]) -> Iterator[World]:
        """Say what may be known while several things are done at once: any of them, in the end all."""
        for count in range(len(after) + 1):
            for some in itertools.combinations(after.items(), count):
                changed = {**self._world, **dict(some)}
                yield {session: known for session, known in changed.items() if known is not None}

    def pick(self, *, running: bool | None) -> str | None:
        """Choose a session with or without a running turn."""
        found = [session for session, known in self._world.items() if running in (None, known.turn is not None)]
        return self._chance.choice(found) if found else None

    async def create(self, step: int) -> None:
        made = info(title=f"title {step}")
        creating = self._store.create(made, SessionState(memory={"n": step}))
        self._claims[made.id] = await self.do("create", creating, **{made.id: Known((), f"title {step}", step)})

    async def begin(self, step: int) -> None:
        if (session := self.pick(running=False)) is None:
            return
        asked = tuple(prompt(f"prompt {step}"))
        changes, durable = Changes(), self._chance.random() < 0.5
        known = replace(self._world[session], turn=Said(asked, is_certain=durable))
        if self._chance.random() < 0.5:  # otherwise its log may be all that it begins in
            known, changes, durable = (
                replace(known, title=f"asked {step}", turn=Said(asked)),
                Changes(title=f"asked {step}"),
                True,
            )

        async def begin() -> None:
            log = await self._store.begin(self._claims[session], asked, changes, durable=durable)
            assert isinstance(log, TurnFile)
            self._logs[session] = Path(log.path).name, log

        await self.do("begin", begin(), **{session: known})

    async def say(self, step: int) -> None:
        """Say something in a turn, and maybe sync it."""
        if (session := self.pick(running=True)) is None:
            return
        known, log = self._world[session], self._logs[session][1]
        assert known.turn is not None
        said = logged(message(f"said {step} {'x' * self._chance.choice([10, 2_000])}"))
        log.append(said + b"\n")
        turn = replace(known.turn, lines=(*known.turn.lines, said))
        self._world = {**self._world, session: replace(known, turn=turn)}
        if self._chance.random() < 0.3:
            turn = replace(turn, synced=len(turn.lines), is_certain=True)
            await self.do("sync", log.sync(), **{session: replace(known, turn=turn)})

    async def seal(self, step: int) -> None:
        if (session := self.pick(running=True)) is None:
            return
        sizes = [self._chance.choice([10, 3_000, 60_000]) for _ in range(3)]
        said = [message(f"sealed {step} {'y' * size}") for size in sizes]
        lines = (*self._world[session].lines, *(line.body for line in said))
        changes, title = Changes(state=SessionState(memory={"n": step})), self._world[session].title
        if self._chance.random() < 0.5:  # otherwise one statement may be all that it takes
            title = f"sealed {step}"
            changes = Changes(state=changes.state, title=title)
        name, log = self._logs[session]
        self._old_logs[name] = Path(log.path).read_bytes()  # noqa: ASYNC240
        sealing = self._store.seal(self._claims[session], said, changes, messages=3)
        await self.do("seal", sealing, **{session: Known(lines, title, step)})
        del self._logs[session]

    async def together(self, step: int) -> None:
        """Do something with several sessions at once, so that it is committed as a group."""
        after: dict[str, Known | None] = {}
        doing: list[Awaitable[None]] = []
        state = SessionState(memory={"n": step})
        for session in self._chance.sample(list(self._world), min(3, len(self._world))):
            known, claim = self._world[session], self._claims[session]
            if known.turn is None:
                after[session] = replace(known, memory=step, title=f"saved {step}")
                doing.append(self._store.save(claim, Changes(state=state, title=f"saved {step}")))
            else:
                said = message(f"together {step}")
                after[session] = Known((*known.lines, said.body), known.title, step)
                name, log = self._logs[session]
                self._old_logs[name] = Path(log.path).read_bytes()  # noqa: ASYNC240
                doing.append(self._store.seal(claim, [said], Changes(state=state), messages=1))
        await self.do("together", asyncio.gather(*doing), **after)
        for session in after:
            self._logs.pop(session, None)

    async def save(self, step: int) -> None:
        if (session := self.pick(running=None)) is not None:
            saving = self._store.save(self._claims[session], Changes(state=SessionState(memory={"n": step})))
            await self.do("save", saving, **{session: replace(self._world[session], memory=step)})

    async def fork(self, step: int) -> None:
        if len(self._world) > 5 or (source := self.pick(running=False)) is None:
            return
        made = info(title=f"forked {step}", messages=1)
        extra = message(f"extra {step}")
        known = Known((*self._world[source].lines, extra.body), f"forked {step}", step)
        state = SessionState(memory={"n": step})
        forking = self._store.fork(self._claims[source], made, state, up_to=None, lines=[extra])
        self._claims[made.id] = (await self.do("fork", forking, **{made.id: known})).claim

    async def delete(self, step: int) -> None:
        if len(self._world) > 4 and (session := self.pick(running=False)) is not None:
            await self.do("delete", self._store.delete(session), **{session: None})

    async def reopen(self, step: int) -> None:
        if self.pick(running=True) is None:
            self._doing = "reopen"
            await self._store.close()
            self._store = await SqliteStore.open(str(self._path), vfs=self._vfs)
            for session in self._world:
                self._claims[session] = (await self._store.claim(session)).claim

    async def vacuum(self, step: int) -> None:
        if step % 4 == 0:
            await self.do("vacuum", self._store.vacuum())


async def found(base: Path, sessions: set[str]) -> World:
    """Open what is left, see what is known, and that it can be used."""
    db = apsw.Connection(str(base / NAME))
    try:
        assert db.pragma("quick_check") == "ok"
    finally:
        db.close()
    store = await SqliteStore.open(str(base / NAME))
    world: World = {}
    try:
        for session in sessions:
            try:
                claimed = await store.claim(session)
            except SessionNotFound:
                continue
            record = claimed.record
            turn = None if claimed.broken is None else Said(tuple(filter(is_said, claimed.broken.lines)))
            lines = tuple(await history(store, session, record.lines))
            assert len(lines) == record.lines
            world[session] = Known(lines, record.info.title, record.state.memory["n"], turn)
        for session in list(sessions)[:1]:
            if session in world:
                again = (await store.claim(session)).claim
                await store.seal(again, [message("later")], Changes(), messages=1)
                assert len(await history(store, session)) == len(world[session].lines) + 1
    finally:
        await store.close()
    return world


def is_said(line: bytes) -> bool:
    """Whether a line was said, and does not tell that something behind it is damaged: that was never acknowledged."""
    return msgspec.json.decode(line)["sessionUpdate"] != DAMAGED


def fits(world: World, expected: World) -> bool:
    """Say whether what was found is what is expected; of a running turn at least what was synced."""
    return world.keys() == expected.keys() and all(
        replace(known, turn=None) == replace(expected[session], turn=None)
        and turn_fits(known.turn, expected[session].turn)
        for session, known in world.items()
    )


def turn_fits(turn: Said | None, expected: Said | None) -> bool:
    if turn is None or expected is None:
        return turn is expected or (turn is None and expected is not None and not expected.is_certain)
    whole = expected.prompt + expected.lines
    least = len(expected.prompt) + expected.synced if expected.is_certain else 0
    return least <= len(turn.prompt) <= len(whole) and turn.prompt == whole[: len(turn.prompt)]


async def survives(loss: Loss, chance: random.Random) -> str:
    """Lose power; say what was lost by that, nothing if nothing was."""
    with scratch() as base:
        for name, data in loss.disk.lose_power(chance).items():
            (base / Path(name).name).write_bytes(data)
        (base / f"{NAME}.turns").mkdir()
        for log in loss.logs:
            if (data := log.lose_power(chance)) is not None:
                (base / f"{NAME}.turns" / log.name).write_bytes(data)
        if not loss.acknowledged:
            (base / f"{NAME}.turns").rmdir()
        try:
            world = await found(
                base, {*loss.acknowledged, *(session for possible in loss.under_way for session in possible)}
            )
        except (HoldfastError, apsw.Error, AssertionError, msgspec.DecodeError, KeyError) as e:
            return f"{loss.during}: {e!r}"
    if any(fits(world, expected) for expected in (loss.acknowledged, *loss.under_way)):
        return ""
    return f"{loss.during}: what was acknowledged is not there"


async def trial(rounds: int, seed: int, *, lies: bool = False) -> list[str]:
    """Lose power so many times; give what was lost."""
    chance = random.Random(seed)
    lost: list[str] = []
    while rounds > 0:
        with scratch() as base:
            life = Life(base, chance, ForgetfulDisk(lies=lies), min(rounds, 150))
            await life.live(160)
        lost += [said for loss in life.losses if (said := await survives(loss, chance))]
        rounds -= len(life.losses)
    return lost


def main() -> int:
    """Lose power very often and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    progress = Progress(options.rounds, "losses of power")
    lost: list[str] = []
    done = 0
    while done < options.rounds:
        some = min(500, options.rounds - done)
        for loss in asyncio.run(trial(some, options.seed + done)):
            lost.append(loss)
            print(f"{loss}\nagain: --rounds {some} --seed {options.seed + done}", file=sys.stderr, flush=True)
        done += some
        progress.tell(done, f"{len(lost)} of them lost something")
    pretended = asyncio.run(trial(LIES, options.seed, lies=True))
    progress.close(
        f"{done:,} losses of power, {len(lost):,} of them lost something; on a disk that only pretends to sync "
        f"{len(pretended)} of {LIES} did ({progress.seconds:.0f} s, seed {options.seed})"
    )
    return 1 if lost or not pretended else 0


if __name__ == "__main__":
    sys.exit(main())
