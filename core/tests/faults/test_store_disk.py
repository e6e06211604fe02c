"""A disk that is full or fails, at any moment: a clear error, nothing half done, all readable, and on it goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import pytest

from core.tests.support.disks import FailingDisk
from core.tests.support.scratch import scratch
from core.tests.support.stores import ALL, NOTHING, bodies, history, info, logged, message, prompt, walk
from holdfast.errors import StoreError, StoreFull
from holdfast.model import SessionState
from holdfast.store import Changes
from holdfast.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from core.tests.support.disks import Fault
    from holdfast.store import Claim

pytestmark = pytest.mark.requirement("P2", "P11")


@dataclass
class World:
    """A store, and what it must have in it: by session, title, lines and whether it is archived; and who is listed."""

    path: str
    vfs: str
    opened: SqliteStore | None = None
    claims: dict[str, Claim] = field(default_factory=dict[str, "Claim"])
    known: dict[str, tuple[str | None, list[bytes], bool]] = field(
        default_factory=dict[str, tuple[str | None, list[bytes], bool]]
    )
    listed: set[str] = field(default_factory=set[str])

    @property
    def store(self) -> SqliteStore:
        assert self.opened is not None
        return self.opened


Step: TypeAlias = "Callable[[World], Awaitable[None]]"

FIRST = [message("first one", key="m1"), message("y" * 9_000, key="m2"), message("last one", key="m3")]
SECOND = [message("second turn", key="m4")]
OTHER = [message("of the fork", key="m5")]
LAST = [message("after all", key="m6")]


async def open_(world: World) -> None:
    world.opened = await SqliteStore.open(world.path, vfs=world.vfs)


async def close(world: World) -> None:
    store, world.opened = world.store, None
    await store.close()


async def create(world: World) -> None:
    world.claims["a"] = await world.store.create(info(title="titled a"), SessionState())
    world.known["a"] = "titled a", [], False


async def begin(world: World) -> None:
    log = await world.store.begin(world.claims["a"], prompt("x"), NOTHING)
    world.listed.add("a")
    log.append(logged(message("said")) + b"\n")


async def seal_first(world: World) -> None:
    await world.store.seal(world.claims["a"], FIRST, Changes(title="titled again"), messages=3)
    world.known["a"] = "titled again", bodies(FIRST), False


async def seal_second(world: World) -> None:
    await world.store.seal(world.claims["a"], SECOND, Changes(state=SessionState(memory={"n": 1})), messages=1)
    world.known["a"] = "titled again", bodies(FIRST + SECOND), False


async def save(world: World) -> None:
    await world.store.save(world.claims["a"], Changes(archived=True, title=None, additional=("/x",)))
    world.known["a"] = None, world.known["a"][1], True


async def fork_whole(world: World) -> None:
    made = info(title="titled b", messages=1)
    forked = await world.store.fork(world.claims["a"], made, SessionState(), up_to=None, lines=OTHER)
    world.claims["b"] = forked.claim
    world.listed.add("b")
    world.known["b"] = "titled b", bodies(FIRST + SECOND + OTHER), False


async def fork_part(world: World) -> None:
    made = info(title="titled c", messages=1)
    forked = await world.store.fork(world.claims["a"], made, SessionState(), up_to="m1", lines=[])
    world.claims["c"] = forked.claim
    world.listed.add("c")
    world.known["c"] = "titled c", bodies(FIRST[:1]), False


async def delete(world: World) -> None:
    await world.store.delete(world.claims["c"].session)
    world.listed.discard("c")
    del world.known["c"]


async def let_go_and_claim(world: World) -> None:
    await world.store.release(world.claims["a"])
    world.claims["a"] = (await world.store.claim(world.claims["a"].session)).claim


async def vacuum(world: World) -> None:
    await world.store.vacuum()


async def claim(world: World) -> None:
    world.claims["a"] = (await world.store.claim(world.claims["a"].session)).claim


async def seal_last(world: World) -> None:
    await world.store.seal(world.claims["a"], LAST, NOTHING, messages=1)
    world.known["a"] = None, [*world.known["a"][1], *bodies(LAST)], True


async def check(world: World) -> None:
    """See that all of it is there and nothing else."""
    for name, (title, lines, archived) in world.known.items():
        record = await world.store.get(world.claims[name].session)
        assert (record.info.title, record.lines, record.info.archived) == (title, len(lines), archived)
        assert await history(world.store, world.claims[name].session) == lines
    listed = await walk(world.store, archived="include", limit=2)
    assert sorted(listed) == sorted(world.claims[name].session for name in world.listed)
    titles = [title for title, _, _ in world.known.values() if title]
    found = [hit.text for hit in await world.store.search("titled", ALL, cwd=None, limit=99)]
    assert sorted(found) == sorted(titles)


SCRIPT: tuple[Step, ...] = (
    open_, create, begin, seal_first, begin, seal_second, fork_whole, fork_part, save, delete, let_go_and_claim, vacuum,
    close, open_, claim, begin, seal_last,
)  # fmt: skip


async def play(path: Path, disk: FailingDisk) -> StoreError | None:
    """Play the script until a step fails because of the disk, and a little further; give the failure."""
    failure = None
    steps = iter(SCRIPT)
    with disk.mounted() as vfs:
        world = World(str(path / "s.db"), vfs)
        for step in steps:
            failure = await attempt(world, step, disk)
            if failure is not None:
                await next(steps, check)(world)
                break
        disk.mend()
        if world.opened is None:
            await open_(world)
        await check(world)
        await close(world)
    return failure


async def attempt(world: World, step: Step, disk: FailingDisk) -> StoreError | None:
    """Try a step. If it fails all that was there can be read, and when the disk is mended it works."""
    try:
        await step(world)
    except StoreError as e:
        assert disk.is_failing, "it failed though the disk did not"
        if world.opened is not None:
            await check(world)
        disk.mend()
        if step is not close:
            await step(world)
        return e
    return None


@pytest.mark.parametrize("part", range(4))
async def test_whatever_write_fails_nothing_is_half_done_and_it_works_again_afterwards(part: int) -> None:
    failures: list[StoreError] = []
    for at in range(1 + part, 1_000, 4):
        disk = FailingDisk("open", "write", "sync", "truncate")
        fault: Fault = "full" if at // 4 % 2 else "io"
        disk.fail(at, fault)
        with scratch() as place:
            failure = await play(place, disk)
        if disk.done < at:
            break
        if failure is not None:
            failures.append(failure)
    else:
        pytest.fail("the script has no end")
    assert len(failures) > 50, "disks failed and nobody noticed"
    assert {type(failure) for failure in failures} == {StoreError, StoreFull}


async def test_a_read_that_fails_is_told_and_the_next_may_work() -> None:
    disk = FailingDisk("read")
    with scratch() as place, disk.mounted() as vfs:
        world = World(str(place / "s.db"), vfs)
        for step in SCRIPT:
            await step(world)
        await close(world)
        refused = 0
        for at in range(1, 200):
            disk.fail(disk.done + at, "io")
            try:
                await open_(world)
                await check(world)
            except StoreError:
                assert disk.is_failing
                refused += 1
            else:
                if not disk.is_failing:
                    break
            disk.mend()
            if world.opened is None:
                await open_(world)
            await check(world)
            await close(world)
        assert refused > 10
