"""Whose sessions are whose: lists, searches and cursors of a principal and an agent; handing over (F1, F2)."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import msgspec
import pytest

from core.tests.support.stores import (
    ALL,
    CWD,
    NOTHING,
    Place,
    bodies,
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
from holdfast.errors import InvalidParams, SessionBusy, SessionMoved, SessionNotFound
from holdfast.format import updates_in
from holdfast.model import LOCAL, UNBOUND, Scope, SessionInfo, SessionState
from holdfast.store import Changes

if TYPE_CHECKING:
    from holdfast.store import Claim, SessionStore

pytestmark = pytest.mark.requirement("F1")

WEATHER, CODE = Scope(LOCAL, "weather"), Scope(LOCAL, "code")
STRANGER = Scope("stranger", None)


async def talked_with(
    store: SessionStore, agent: str, *said: str, principal: str = LOCAL, cwd: str = CWD, title: str | None = None
) -> Claim:
    """Make a session with an agent in which something was said."""
    made = msgspec.structs.replace(info(cwd, title=title, agent=agent), principal=principal)
    claim = await store.create(made, SessionState())
    await turn(store, claim, *map(message, said))
    return claim


@pytest.mark.requirement("G9")
async def test_a_session_is_found_by_its_other_names_and_stays_deleted(place: Place) -> None:
    async with place.open() as store:
        mine, other = await talked_with(store, "weather", "Hello"), await talked_with(store, "weather", "Hello")
        await store.set_alias(WEATHER, "1", mine.session)
        await store.set_alias(WEATHER, "again \0 é", mine.session)
        await store.set_alias(CODE, "1", "sess_of_another")
        await store.set_alias(WEATHER, "2", other.session)
        await store.set_alias(WEATHER, "gone", None)
        names = ["1", "again \0 é", "2", "gone", "unknown"]
        found = {"1": mine.session, "again \0 é": mine.session, "2": other.session, "gone": None}
        assert await store.find_aliases(WEATHER, names) == found
        assert await store.find_aliases(STRANGER, names) == {}
        await store.set_alias(WEATHER, "2", mine.session)  # some agents give an id again
        await store.delete(mine.session)
        assert await store.find_aliases(WEATHER, names) == dict.fromkeys(found)
        assert await store.find_aliases(CODE, names) == {"1": "sess_of_another"}
        assert await store.find_aliases(WEATHER, []) == {}


async def test_a_session_belongs_to_whom_it_was_made_for(place: Place) -> None:
    made = SessionInfo("sess_1", CWD, (), "T", 5, 7, archived=False, messages=1, principal="me", agent="weather")
    async with place.open() as store:
        await store.create(made, SessionState())
        assert (await store.get("sess_1")).info == made
        assert (await store.list(Scope("me"), cwd=None, archived="exclude", cursor=None, limit=9)).sessions == (made,)
        assert await store.find("sess_1", limit=9) == [made]


async def test_an_agent_sees_its_own_sessions_and_those_of_nobody_and_the_principal_sees_all(place: Place) -> None:
    async with place.open() as store:
        made = [await talked_with(store, agent, "x") for agent in ("weather", "code", UNBOUND, "weather", "code")]
        await talked_with(store, "weather", "x", principal="stranger")
        ids = [claim.session for claim in made]
        assert await walk(store, WEATHER) == [ids[3], ids[2], ids[0]]
        assert await walk(store, CODE) == [ids[4], ids[2], ids[1]]
        assert await walk(store, Scope(LOCAL, "other")) == [ids[2]]
        assert await walk(store, Scope(LOCAL, UNBOUND)) == [ids[2]]
        assert await walk(store) == list(reversed(ids))
        assert await walk(store, Scope("stranger", "code")) == []
        assert len(await walk(store, STRANGER)) == 1
        assert await walk(store, Scope("nobody")) == []


async def test_the_agents_that_a_principal_has_sessions_of_are_named(place: Place) -> None:
    async with place.open() as store:
        assert await store.agents(LOCAL) == []
        for agent in ("weather", "code", UNBOUND, "weather"):
            claim = await talked_with(store, agent, "x")
        await talked_with(store, "theirs", "x", principal="stranger")
        await store.create(info(agent="never prompted"), SessionState())
        assert await store.agents(LOCAL) == ["code", "weather"]
        assert await store.agents("stranger") == ["theirs"]
        await store.save(claim, Changes(archived=True))
        assert await store.agents(LOCAL) == ["code", "weather"]
        for session in await walk(store, WEATHER, archived="include"):
            await store.delete(session)
        assert await store.agents(LOCAL) == ["code"]


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limit", [1, 3, 50])
async def test_lists_of_every_scope_are_in_order_whatever_the_size_of_a_page(
    place: Place, seed: int, limit: int
) -> None:
    chance = random.Random(seed)
    async with place.open() as store:
        made: list[SessionInfo] = []
        for _ in range(60):
            session = msgspec.structs.replace(
                info(chance.choice(["/a", "/b"]), at=chance.randrange(1, 20), messages=1),
                principal=chance.choice([LOCAL, "other"]),
                agent=chance.choice(["weather", "code", UNBOUND]),
                archived=chance.random() < 0.3,
            )
            await store.create(session, SessionState())
            made.append(session)
        numbered = sorted(enumerate(made), key=lambda found: (found[1].updated_at, found[0]), reverse=True)
        for scope in (ALL, WEATHER, CODE, Scope("other", "weather"), Scope("other")):
            mine = [session for _, session in numbered if scope.covers(session.principal, session.agent)]
            for cwd in (None, "/a"):
                here = [session for session in mine if cwd in (None, session.cwd)]
                recent = [session.id for session in here if not session.archived]
                everything = [session.id for session in here]
                assert await walk(store, scope, cwd=cwd, limit=limit) == recent
                assert await walk(store, scope, cwd=cwd, archived="include", limit=limit) == everything


@pytest.mark.requirement("B4")
async def test_a_cursor_of_another_scope_is_refused(place: Place) -> None:
    async with place.open() as store:
        for principal in (LOCAL, "stranger"):
            for agent in ("weather", "weather", "code", "code"):
                await talked_with(store, agent, "x", principal=principal)
        scopes = [ALL, WEATHER, CODE, STRANGER, Scope("stranger", "weather"), Scope(LOCAL, UNBOUND)]
        for mine in scopes[:5]:
            cursor = (await store.list(mine, cwd=None, archived="exclude", cursor=None, limit=1)).cursor
            assert cursor is not None
            for other in scopes:
                if other != mine:
                    with pytest.raises(InvalidParams):
                        await store.list(other, cwd=None, archived="exclude", cursor=cursor, limit=1)


async def test_a_search_finds_what_is_in_its_scope(place: Place) -> None:
    async with place.open() as store:
        source = await talked_with(store, "weather", "needle of weather", title="needle title")
        await talked_with(store, "code", "needle of code")
        await talked_with(store, UNBOUND, "needle of nobody")
        await talked_with(store, "weather", "needle of a stranger", principal="stranger")
        assert await hits(store, "needle", scope=WEATHER) == ["needle of nobody", "needle of weather", "needle title"]
        assert await hits(store, "needle", scope=CODE) == ["needle of nobody", "needle of code"]
        assert await hits(store, "needle", scope=STRANGER) == ["needle of a stranger"]
        assert len(await hits(store, "needle")) == 4
        forked = info(messages=1, agent="code")
        await store.fork(source, forked, SessionState(), up_to=None, lines=[])
        (shared,) = (
            hit for hit in await store.search("needle", CODE, cwd=None, limit=9) if hit.text == "needle of weather"
        )
        assert shared.session.id == forked.id, "what is shared is found where the asker may see it"


async def test_an_agent_that_is_not_among_the_newest_of_many_is_searched_all_the_same(place: Place) -> None:
    async with place.open() as store:
        await talked_with(store, "small", "old needle", title="needle of a title")
        await talked_with(store, "small", "needle elsewhere", cwd="/elsewhere")
        await talked_with(store, "large", *(f"needle {n}" for n in range(2_500)))
        small = Scope(LOCAL, "small")
        assert await hits(store, "needle", scope=small) == ["needle elsewhere", "old needle", "needle of a title"]
        assert await hits(store, "needle", "/elsewhere", scope=small) == ["needle elsewhere"]
        assert await hits(store, "needle", scope=Scope(LOCAL, "none")) == []


@pytest.mark.requirement("F6")
async def test_a_session_of_no_agent_is_bound_by_a_change(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, CWD, "x")
        assert await walk(store, CODE) == [claim.session]
        log = await store.begin(claim, prompt("x"), Changes(agent="weather"))
        log.append(b'{"sessionUpdate":"_x"}\n')
        assert (await store.get(claim.session)).info.agent == "weather"
        assert (await walk(store, WEATHER), await walk(store, CODE)) == ([claim.session], [])
        await store.seal(claim, [message("y")], Changes(agent="code"), messages=1)
        await store.save(claim, NOTHING)
        assert (await walk(store, WEATHER), await walk(store, CODE)) == ([], [claim.session])
        assert len(await history(store, claim.session)) == 2


# Handing over


@pytest.mark.requirement("F2")
async def test_a_session_is_handed_over_with_its_history_and_nothing_else(place: Place) -> None:
    state = SessionState(
        options={"mode": "auto"},
        latest={"usage_update": {"sessionUpdate": "usage_update"}},
        permissions={"write": True},
        memory={"n": 1},
        title_by="user",
        forked_from="sess_0",
    )
    async with place.open() as store:
        claim = await talked_with(store, "weather", "said", title="needle")
        await store.begin(claim, prompt("x"), NOTHING)
        said = message("more")
        await store.seal(claim, [said], Changes(state=state, archived=True), messages=1, private=[b"secret"])
        before = await store.get(claim.session)
        await store.hand_over(claim.session, "code")
        record = await store.get(claim.session)
        assert record.info == msgspec.structs.replace(before.info, agent="code")
        assert record.state == SessionState(title_by="user", forked_from="sess_0")
        assert await store.read_private(claim.session) == []
        *past, boundary = await history(store, claim.session)
        assert past[-1:] == bodies([said]) and len(past) == before.lines
        assert msgspec.json.decode(updates_in(boundary)) == {
            "sessionUpdate": "_holdfast/hand_over",
            "from": "weather",
            "to": "code",
        }
        assert await hits(store, "needle", scope=CODE) == ["needle"]
        assert await hits(store, "needle", scope=WEATHER) == []


@pytest.mark.requirement("F2", "P4")
async def test_whoever_had_a_session_that_is_handed_over_has_it_no_more(place: Place) -> None:
    async with place.open() as store:
        claim = await talked_with(store, "weather", "said")
        await store.hand_over(claim.session, "code")
        for late in (
            store.save(claim, Changes(state=SessionState(permissions={"write": True}))),
            store.begin(claim, prompt("x"), NOTHING),
            store.seal(claim, [message("x")], NOTHING, messages=1),
        ):
            with pytest.raises(SessionMoved):
                await late
        await store.release(claim)
        claimed = await store.claim(claim.session)
        assert claimed.record.info.agent == "code"
        await turn(store, claimed.claim, message("on"))


@pytest.mark.requirement("F2")
async def test_a_session_whose_turn_runs_or_broke_is_not_handed_over(place: Place) -> None:
    async with place.open() as store:
        claim = await talked_with(store, "weather", "said")
        await store.begin(claim, prompt("x"), NOTHING)
        with pytest.raises(SessionBusy, match="running"):
            await store.hand_over(claim.session, "code")
        await store.release(claim)
        with pytest.raises(SessionBusy, match="broke"):
            await store.hand_over(claim.session, "code")
        assert (await store.get(claim.session)).info.agent == "weather"
        claimed = await store.claim(claim.session)
        assert claimed.broken is not None
        await store.seal(claimed.claim, [message("recovered")], NOTHING, messages=1)
        await store.hand_over(claim.session, "code")
        assert (await store.get(claim.session)).lines == 3
        with pytest.raises(SessionNotFound):
            await store.hand_over("sess_0", "code")


@pytest.mark.requirement("F2")
async def test_a_session_that_is_handed_to_the_agent_it_belongs_to_stays_as_it_is(place: Place) -> None:
    async with place.open() as store:
        claim = await talked_with(store, "weather", "said")
        before = await store.get(claim.session)
        await store.hand_over(claim.session, "weather")
        assert await store.get(claim.session) == before
        await turn(store, claim, message("on"))


async def test_many_new_agents_at_once_get_along(lasting: Place) -> None:
    async with lasting.open() as one, lasting.open() as other:
        names = [f"agent {n}" for n in range(20)]
        await asyncio.gather(*(talked_with(store, name, "x") for name in names for store in (one, other)))
        assert await one.agents(LOCAL) == sorted(names)
        assert {len(await walk(other, Scope(LOCAL, name))) for name in names} == {2}


async def test_a_blank_session_keeps_its_agent(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        await store.save(claim, Changes(agent="weather"))
        assert (await store.get(claim.session)).info.agent == "weather"
        assert await walk(store, WEATHER) == []
