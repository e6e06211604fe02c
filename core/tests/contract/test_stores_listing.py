"""What every store says when it is asked for its sessions: newest first, page by page, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import base64
import random
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from core.tests.support.stores import ALL, CWD, NOTHING, Place, info, message, new, prompt, talked, turn, walk
from holdfast.errors import InvalidParams
from holdfast.model import SessionState
from holdfast.store import Changes
from holdfast.store.sqlite.database import Database, queries

if TYPE_CHECKING:
    from holdfast.model import ArchiveFilter
    from holdfast.store import Claim, Store

pytestmark = pytest.mark.requirement("B4")


async def first_cursor(store: Store, cwd: str | None = None, archived: ArchiveFilter = "exclude") -> str:
    page = await store.list(ALL, cwd=cwd, archived=archived, cursor=None, limit=1)
    assert page.cursor is not None
    return page.cursor


async def test_a_store_without_sessions_lists_none(place: Place) -> None:
    async with place.open() as store:
        page = await store.list(ALL, cwd=None, archived="exclude", cursor=None, limit=50)
        assert (page.sessions, page.cursor) == ((), None)


async def test_the_newest_activity_comes_first(place: Place) -> None:
    async with place.open() as store:
        claims = [await talked(store, CWD, str(n)) for n in range(5)]
        await turn(store, claims[1], message("again"))
        await store.begin(claims[3], prompt("running"), NOTHING)
        order = [claims[n].session for n in (3, 1, 4, 2, 0)]
        assert await walk(store) == order


async def test_sessions_of_the_same_instant_have_an_order_too(place: Place) -> None:
    async with place.open() as store:
        made = [info(at=7, messages=1) for _ in range(25)]
        for session in made:
            await store.create(session, SessionState())
        assert await walk(store, limit=10) == [session.id for session in reversed(made)]


async def test_a_list_shows_what_is_known_of_each_session(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, CWD, "a", "b", title="T")
        await store.save(claim, Changes(additional=("/x",)))
        page = await store.list(ALL, cwd=None, archived="exclude", cursor=None, limit=50)
        assert page.sessions == ((await store.get(claim.session)).info,)
        assert (page.sessions[0].messages, page.sessions[0].additional) == (2, ("/x",))


@pytest.mark.requirement("B5")
async def test_sessions_that_never_got_a_prompt_are_not_listed_until_they_do(place: Place) -> None:
    async with place.open() as store:
        blank = await new(store, title="Blank")
        claimed = (await store.claim(blank.session)).claim
        await store.save(claimed, Changes(archived=False, title="Still blank"))
        assert await walk(store, archived="include") == []
        assert (await store.get(blank.session)).info.title == "Still blank"
        await store.begin(claimed, prompt("x"), NOTHING)
        assert await walk(store) == [blank.session]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 50])
async def test_pages_of_any_size_make_the_same_list_and_the_last_has_no_cursor(place: Place, limit: int) -> None:
    async with place.open() as store:
        claims = [await talked(store, CWD, str(n)) for n in range(6)]
        assert await walk(store, limit=limit) == [claim.session for claim in reversed(claims)]


@pytest.mark.parametrize("cwd", ["/w", "/w/", "/W", "/w/sub", "/", "/%", "/_", "/é", "/e\u0301", "/w\0"])
async def test_only_exactly_that_directory_is_listed(place: Place, cwd: str) -> None:
    everywhere = ["/w", "/w/", "/W", "/w/sub", "/", "/%", "/_", "/é", "/e\u0301", "/w\0"]
    async with place.open() as store:
        claims = {directory: [await talked(store, directory, str(n)) for n in range(3)] for directory in everywhere}
        assert await walk(store, cwd=cwd, limit=2) == [claim.session for claim in reversed(claims[cwd])]
        assert await walk(store, cwd="/nowhere") == []


@pytest.mark.requirement("B16")
async def test_archived_sessions_are_listed_as_they_are_asked_for(place: Place) -> None:
    async with place.open() as store:
        claims = [await talked(store, "/a" if n % 3 else "/b", str(n)) for n in range(9)]
        for claim in claims[::2]:
            await store.save(claim, Changes(archived=True))
        newest_first = [claim.session for claim in reversed(claims)]
        put_away = {claim.session for claim in claims[::2]}
        for cwd, ids in (
            (None, newest_first),
            ("/a", [claim.session for claim in reversed(claims) if claim not in claims[::3]]),
        ):
            for limit in (2, 50):
                assert await walk(store, cwd=cwd, archived="include", limit=limit) == ids
                only = await walk(store, cwd=cwd, archived="only", limit=limit)
                assert only == [session for session in ids if session in put_away]
                assert await walk(store, cwd=cwd, limit=limit) == [
                    session for session in ids if session not in put_away
                ]
        await store.save(claims[0], Changes(archived=False))
        assert claims[0].session in await walk(store)


@pytest.mark.parametrize("cwd", [None, "/x"])
def test_a_page_is_read_from_an_index_alone_whatever_the_number_of_sessions(in_file: Place, cwd: str | None) -> None:
    Path(in_file.path).parent.mkdir()
    name = "list_in_scope" if cwd is None else "list_in_directory"
    bindings = {"scope": 1, "archived": 0, "cwd": cwd, "updated_at": 1, "n": 1, "limit": 1}
    Database(in_file.path).close()
    with closing(apsw.Connection(in_file.path)) as db:
        plan = [str(step[3]) for step in db.execute(f"EXPLAIN QUERY PLAN {queries()[name]}", bindings)]  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    assert len(plan) == 1 and "COVERING INDEX" in plan[0], plan


# Cursors


async def test_a_cursor_is_opaque_and_every_change_to_it_is_noticed(place: Place) -> None:
    async with place.open() as store:
        for n in range(3):
            await talked(store, "/secret/place", str(n))
        cursor = await first_cursor(store, "/secret/place")
        for at, char in enumerate(cursor):
            for other in ("A" if char != "A" else "B", "", char * 2, "!", "=", " ", "\n", "é"):
                forged = cursor[:at] + other + cursor[at + 1 :]
                with pytest.raises(InvalidParams):
                    await store.list(ALL, cwd="/secret/place", archived="exclude", cursor=forged, limit=1)
        for more in ("=", "==", "A", "AAAA", "\n", "!"):
            with pytest.raises(InvalidParams):
                await store.list(ALL, cwd="/secret/place", archived="exclude", cursor=cursor + more, limit=1)


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "null", "0", "é", "\0", "A" * 10_000, base64.b64encode(b"x" * 12 + b'[1,1,null,"exclude"]').decode()],
)
async def test_what_is_no_cursor_of_ours_is_refused(place: Place, cursor: str) -> None:
    async with place.open() as store:
        with pytest.raises(InvalidParams, match="cursor"):
            await store.list(ALL, cwd=None, archived="exclude", cursor=cursor, limit=1)


async def test_a_cursor_of_another_store_is_refused(place: Place) -> None:
    async with place.open() as store, Place(":memory:").open() as other:
        for n in range(2):
            await talked(other, CWD, str(n))
            await talked(store, CWD, str(n))
        with pytest.raises(InvalidParams):
            await store.list(ALL, cwd=None, archived="exclude", cursor=await first_cursor(other), limit=1)


async def test_a_cursor_of_a_list_with_other_filters_is_refused(place: Place) -> None:
    async with place.open() as store:
        for n in range(2):
            await talked(store, CWD, str(n))
        lists: list[tuple[str | None, ArchiveFilter]] = [(None, "exclude"), (None, "include"), (CWD, "exclude")]
        for mine in lists:
            cursor = await first_cursor(store, *mine)
            for other in lists:
                if other != mine:
                    with pytest.raises(InvalidParams):
                        await store.list(ALL, cwd=other[0], archived=other[1], cursor=cursor, limit=1)


async def test_a_cursor_is_good_after_a_restart_and_for_another_page_size(lasting: Place) -> None:
    async with lasting.open() as store:
        claims = [await talked(store, CWD, str(n)) for n in range(5)]
        cursor = await first_cursor(store)
    async with lasting.open() as store:
        page = await store.list(ALL, cwd=None, archived="exclude", cursor=cursor, limit=50)
        assert [info.id for info in page.sessions] == [claim.session for claim in reversed(claims[:4])]


async def test_a_cursor_is_good_after_the_session_it_ended_with_is_gone(place: Place) -> None:
    async with place.open() as store:
        claims = [await talked(store, CWD, str(n)) for n in range(3)]
        cursor = await first_cursor(store)
        await store.delete(claims[2].session)
        page = await store.list(ALL, cwd=None, archived="exclude", cursor=cursor, limit=50)
        assert [session.id for session in page.sessions] == [claims[1].session, claims[0].session]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("archived", ["exclude", "include", "only"])
async def test_while_sessions_change_none_comes_twice_and_none_that_did_not_move_is_missed(
    place: Place, seed: int, archived: ArchiveFilter
) -> None:
    chance = random.Random(seed)
    put_away = {"exclude": [False], "only": [True], "include": [False, True]}[archived]
    async with place.open() as store:
        claims: list[Claim] = []
        for n in range(30):
            claim = await talked(store, CWD, str(n))
            await store.save(claim, Changes(archived=chance.choice(put_away)))
            claims.append(claim)
        before = [claim.session for claim in reversed(claims)]
        moved: set[str] = set()
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = await store.list(ALL, cwd=None, archived=archived, cursor=cursor, limit=chance.randint(1, 5))
            seen += [session.id for session in page.sessions]
            if (cursor := page.cursor) is None:
                break
            for _ in range(chance.randint(0, 3)):
                claim = chance.choice(claims)
                match chance.choice(["talk", "delete", "rename", "add"]):
                    case "add":
                        moved.add((await talked(store, CWD, "new")).session)
                    case "rename":
                        if claim.session not in moved:
                            await store.save(claim, Changes(title="renamed"))
                    case "talk" if claim.session not in moved:
                        await turn(store, claim, message("again"))
                        moved.add(claim.session)
                    case "delete":
                        await store.delete(claim.session)
                        moved.add(claim.session)
                    case _:
                        pass
        assert len(seen) == len(set(seen))
        assert [session for session in seen if session not in moved] == [
            session for session in before if session not in moved
        ]


@pytest.mark.requirement("B16")
async def test_a_session_that_is_put_away_while_all_are_listed_is_listed_once(lasting: Place) -> None:
    async with lasting.open() as store, lasting.open() as other:
        claims = [await talked(store, CWD, str(n)) for n in range(3)]
        expected = [claim.session for claim in reversed(claims)]

        async def put_away_and_take_out() -> None:
            for n in range(500):
                await store.save(claims[1], Changes(archived=n % 2 == 0))

        busy = asyncio.create_task(put_away_and_take_out())
        while not busy.done():
            assert await walk(other, archived="include") == expected
        await busy
