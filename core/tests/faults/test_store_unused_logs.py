"""Logs in which nothing is unsealed are closed after a while, and nothing is lost or changes hands by that (P4, P7)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.tests.support.links import PATIENCE
from core.tests.support.stores import NOTHING, Place, history, message, prompt, talked, turn
from holdfast.errors import SessionMoved
from holdfast.store import EventWindow
from holdfast.store.sqlite import store as sqlite_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store import Claim, SessionStore
    from holdfast.store.sqlite.turn_logs import TurnLogs

LAST = b'{"sessionUpdate":"_last"}'
NEVER = 3_600.0


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "sessions.db"))


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "UNUSED_SECONDS", 0.02)


def open_logs(place: Place) -> int:
    """Count the logs of this store that this process has open."""
    opened = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            opened += str(link.readlink()).startswith(f"{place.path}.turns/")
        except FileNotFoundError:
            continue
    return opened


async def closed(place: Place) -> None:
    """Wait until no log is open any more."""
    async with asyncio.timeout(PATIENCE):
        while open_logs(place):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def say(store: SessionStore, claim: Claim, *said: str, last: bytes | None = None) -> None:
    for text in said:
        await store.begin(claim, prompt(f"{text}?"), NOTHING)
        await store.seal(claim, [message(text, key=text)], NOTHING, messages=1, last=last)


async def turns(store: SessionStore, claim: Claim) -> Sequence[int]:
    return [log.turn for log in await store.read_events(claim.session)]


@pytest.mark.requirement("P7")
@pytest.mark.usefixtures("soon")
async def test_logs_that_no_turn_uses_are_closed_and_opened_again(place: Place) -> None:
    async with place.open() as store:
        claims = [await talked(store, "/work", "a") for _ in range(40)]
        await closed(place)
        for claim in claims:
            await say(store, claim, "b", "c")
        await closed(place)
        for claim in claims:
            assert len(await history(store, claim.session)) == 3
    assert place.beside("turns") == [], "what is sealed leaves no log behind"


@pytest.mark.requirement("P2")
@pytest.mark.usefixtures("soon")
async def test_a_turn_whose_log_was_closed_before_is_as_safe_as_any(place: Place) -> None:
    said = b'{"sessionUpdate":"_x"}'
    async with place.open() as store, place.open() as other:
        claim = await talked(store, "/work", "a")
        await closed(place)
        asked = prompt("q")
        log = await store.begin(claim, asked, NOTHING)
        log.append(said + b"\n")
        await asyncio.sleep(0.1)  # several times as long as an unused log stays open
        unsealed = (await other.snapshot(claim.session)).unsealed
        assert unsealed is not None and unsealed.lines == [*asked, said]


@pytest.mark.requirement("P4")
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("window", [None, EventWindow()])
async def test_a_session_that_others_took_meanwhile_is_not_written(place: Place, window: EventWindow | None) -> None:
    async with place.open() as store, place.open() as other:
        for each in (store, other):
            if window is not None:
                each.keep_events(window)
        claim = await talked(store, "/work", "a")
        await closed(place)
        taken = (await other.claim(claim.session)).claim
        await say(other, taken, "b", last=b"")
        with pytest.raises(SessionMoved):
            await store.begin(claim, prompt("stale"), NOTHING)
        await say(other, taken, "c", last=b"")
        assert len(await history(other, claim.session)) == 3


@pytest.mark.requirement("H4")
@pytest.mark.usefixtures("soon")
async def test_events_that_stay_readable_do_so_though_their_log_is_closed(place: Place) -> None:
    async with place.open() as store:
        store.keep_events(EventWindow())
        claim = await talked(store, "/work", "a")
        for text in "bcd":
            await say(store, claim, text, f"{text} again", last=LAST + b"\n")
            await closed(place)
        assert await turns(store, claim) == list(range(2, 8))


@pytest.mark.requirement("H4")
async def test_events_stay_readable_where_more_sessions_are_at_work_than_logs_may_be_open(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "UNUSED_SECONDS", NEVER)
    async with place.open() as store:
        store.keep_events(EventWindow())
        logs: TurnLogs = vars(store)["_logs"]
        monkeypatch.setattr(logs, "_idle_at_most", 1)
        claims = [await talked(store, "/work", "a") for _ in range(3)]
        for _ in range(3):
            for claim in claims:
                await say(store, claim, "b", last=LAST + b"\n")
        assert open_logs(place) == 1
        for claim in claims:
            assert await turns(store, claim) == [2, 3, 4]


@pytest.mark.requirement("H4")
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("how", ["shorter", "removed", "another"])
async def test_a_closed_log_that_is_not_as_it_was_left_is_not_written_on(place: Place, how: str) -> None:
    async with place.open() as store:
        store.keep_events(EventWindow())
        claim = await talked(store, "/work", "a")
        await say(store, claim, "b", last=LAST + b"\n")
        await closed(place)
        (path,) = place.beside("turns")
        if how == "shorter":
            path.write_bytes(path.read_bytes()[:10])
        else:
            path.unlink()
        if how == "another":
            path.touch()
        await say(store, claim, "c", last=LAST + b"\n")
        assert 3 in await turns(store, claim)
        assert len(await history(store, claim.session)) == 3


@pytest.mark.requirement("H4")
@pytest.mark.usefixtures("soon")
async def test_a_closed_log_is_removed_when_its_window_is_over(place: Place) -> None:
    async with place.open() as store:
        store.keep_events(EventWindow(seconds=0))
        claim = await talked(store, "/work", "a")
        await say(store, claim, "b", last=LAST + b"\n")
        await closed(place)
        await asyncio.sleep(0.05)
        await store.forget_events()
        assert place.beside("turns") == []
        await turn(store, claim, message("c"))


@pytest.mark.requirement("P4")
@pytest.mark.usefixtures("soon")
async def test_turns_that_begin_as_their_logs_are_closed_are_stored(place: Place) -> None:
    """The event loop begins turns while the writer's thread closes logs."""
    async with place.open() as store:
        claims = [await talked(store, "/work", "a") for _ in range(8)]
        for n in range(60):
            await asyncio.sleep(n / 1_500)
            for claim in claims:
                await store.begin(claim, prompt(f"turn {n}"), NOTHING, durable=False)
                await store.seal(claim, [message(f"answer {n}")], NOTHING, messages=1)
        for claim in claims:
            assert len(await history(store, claim.session)) == 61
