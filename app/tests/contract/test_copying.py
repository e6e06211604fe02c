"""Sessions moved from one store into another, of whatever kind: all of each of them, and nothing twice."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from app.tests.support.commands import sessions
from core.tests.support import postgres
from core.tests.support.scratch import scratch
from core.tests.support.stores import (
    CWD,
    NOTHING,
    Place,
    history,
    hits,
    info,
    message,
    new,
    prompt,
    talked,
    turn,
    walk,
)
from holdfast.model import Scope, SessionState
from holdfast.store import Changes
from holdfast.store.copying import copy_aliases, copy_sessions, list_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.store import SessionStore

Pair = tuple[Place, Place]


@pytest.fixture(params=["file → postgres", "postgres → file", "file → file"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    kinds = request.param.split(" → ")
    with scratch() as directory:
        places = [
            Place(postgres.empty_database() if kind == "postgres" else str(directory / f"{at}.db"))
            for at, kind in enumerate(kinds)
        ]
        yield places[0], places[1]


async def copy(source: SessionStore, target: SessionStore) -> list[str]:
    outcomes = [copied.outcome async for copied in copy_sessions(source, target, await list_all(source))]
    await copy_aliases(source, target)
    return outcomes


async def everything(store: SessionStore) -> list[Any]:
    """Return all there is to know of all sessions."""
    found: list[Any] = []
    for session in await list_all(store):
        record = await store.get(session.id)
        lines = await history(store, session.id) if record.lines else []
        found.append((record.info, record.state, lines, await store.private_entries(session.id)))
    return found


async def fill(store: SessionStore) -> None:
    """Make sessions of every kind."""
    await new(store, title="never prompted")
    large = await talked(store, "/a\0é", *(f"large {n} {'x' * 3_000}" for n in range(60)), title="T'\0\"")
    state = SessionState(permissions={"write": True}, memory={"n": 1}, title_by="user")
    await store.save(large, Changes(state=state, archived=True, additional=("/b",)))
    parent = await new(store)
    for n in range(5):
        await store.begin(parent, prompt("q"), NOTHING)
        said = [message(f"shared {n}.{m} {'y' * 8_000}", key=f"m{n}.{m}") for m in range(4)]
        await store.seal(parent, said, NOTHING, messages=4, private=[b"p%d" % n])
    for up_to in (None, "m2.3", "m3.1"):
        made = msgspec.structs.replace(info(messages=1), created_at=2)
        forked = await store.fork(parent, made, SessionState(forked_from=parent.session), up_to=up_to, lines=[])
        await turn(store, forked.claim, message(f"only in the fork at {up_to}"))
        await store.release(forked.claim)
    other = msgspec.structs.replace(info(agent="code"), principal="somebody")
    claim = await store.create(other, SessionState())
    await turn(store, claim, message("of another"))
    await store.set_alias(Scope("somebody", "code"), "theirs", other.id)
    await store.set_alias(Scope("somebody", "code"), "gone", None)
    for held in (large, parent, claim):
        await store.release(held)


async def test_all_of_every_session_is_there_afterwards_and_what_forks_share_once(pair: Pair) -> None:
    source, target = pair
    async with source.open() as old, target.open() as made:
        await fill(old)
        expected = await everything(old)
        assert set(await copy(old, made)) == {"copied"}
        assert await everything(made) == expected == await everything(old)
        for words in ("shared", "large", "fork", "prompted"):
            assert set(await hits(made, words)) == set(await hits(old, words))
        assert (await made.stats()).entries <= (await old.stats()).entries + 3 * 8, (
            "a fork has a part of a segment anew"
        )
        scope = Scope("somebody", "code")
        assert await made.find_aliases(scope, ["theirs", "gone"]) == await old.find_aliases(scope, ["theirs", "gone"])
        assert {found.level async for found in made.examine()} == {"ok"}


async def test_a_copy_that_was_stopped_goes_on_and_nothing_is_there_twice(pair: Pair) -> None:
    source, target = pair
    async with source.open() as old, target.open() as made:
        await fill(old)
        all_of_them = await list_all(old)
        copying = copy_sessions(old, made, all_of_them)
        first = [(await anext(copying)).outcome for _ in range(3)]
        assert first == ["copied"] * 3
        await copying.aclose()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        assert await copy(old, made) == ["there"] * 3 + ["copied"] * (len(all_of_them) - 3)
        assert await copy(old, made) == ["there"] * len(all_of_them)
        assert await everything(made) == await everything(old)


async def test_sessions_go_on_in_the_store_they_were_copied_to(pair: Pair) -> None:
    source, target = pair
    async with source.open() as old, target.open() as made:
        await fill(old)
        await copy(old, made)
        for session in await walk(made, archived="include"):
            before = await history(made, session)
            claim = (await made.claim(session)).claim
            for n in range(3):
                await turn(made, claim, said := message(f"later {n} {'z' * 20_000}"))
                assert (await history(made, session))[-1] == said.body
            assert (await history(made, session))[: len(before)] == before
            await made.release(claim)
        for session in await walk(old, archived="include"):
            record = await old.get(session)
            assert (await history(made, session))[: record.lines] == await history(old, session)


async def test_what_runs_or_has_gone_its_own_way_is_left_and_told(pair: Pair) -> None:
    source, target = pair
    async with source.open() as old, target.open() as made:
        running, moved_on, same = [await talked(old, CWD, "x") for _ in range(3)]
        await old.begin(running, prompt("q"), NOTHING)
        assert sorted(await copy(old, made)) == ["busy", "copied", "copied"]
        there = (await made.claim(moved_on.session)).claim
        await turn(made, there, message("on its own"))
        await turn(old, moved_on, message("here too"))
        await old.seal(running, [message("done")], NOTHING, messages=1)
        outcomes = {copied.session: copied.outcome async for copied in copy_sessions(old, made, await list_all(old))}
        assert outcomes == {running.session: "copied", moved_on.session: "differs", same.session: "there"}
        assert len(await history(made, moved_on.session)) == 2


def test_the_command_copies_both_ways_tells_what_it_did_and_shows_no_password() -> None:
    address = postgres.empty_database()
    with scratch() as directory:
        here, back = str(directory / "here.db"), str(directory / "back.db")
        made = sessions("stats", "--store", address, "--json")
        assert json.loads(made.out)["sessions"] == 0
        asyncio.run(_fill(here))
        for source, target in ((here, address), (address, back)):
            done = sessions("copy", "--from", source, "--to", target, "--json")
            assert json.loads(done.out) == {"copied": 7, "present": 0, "refused": []}, done.err
            done = sessions("copy", "--from", source, "--to", target)
            assert "0 sessions copied, 7 were there already" in done.out
        listed = [sessions("list", "--all", "--json", "--store", store) for store in (here, address, back)]
        assert len({one.out for one in listed}) == 1
        doctor = sessions("doctor", "--store", address.replace("postgres@", "postgres:hunter2@"))
        assert doctor.status == 0 and "hunter2" not in doctor.out + doctor.err
        found = sessions("search", "shared", "--all", "--store", address)
        assert "shared" in found.out


async def _fill(path: str) -> None:
    async with Place(path).open() as store:
        await fill(store)
