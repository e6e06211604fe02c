"""Sessions that were stored under another name of a known agent go to its one name (F1), and no right goes along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from core.tests.support.stores import ALL, NOTHING, Place, info, message, prompt, turn, walk
from holdfast.model import LOCAL, Scope, SessionState
from holdfast.model.kinds import REMEMBERED
from holdfast_app.cli.name_joining import join_names
from holdfast_app.wrap.record import KEY, AgentRecord

if TYPE_CHECKING:
    from holdfast.store import SessionStore

pytestmark = pytest.mark.requirement("F1", "F2", "P13")

OLD, NEW = Scope(LOCAL, "gemini-cli"), Scope(LOCAL, "gemini")


async def wrapped(
    store: SessionStore, agent: str = "gemini-cli", own_id: str | None = None, *, principal: str = LOCAL
) -> str:
    """Make a session of a wrapped agent, in which something was said and allowed for ever."""
    memory: dict[str, Any] = {}
    AgentRecord(session=own_id, knows="msg").write(memory)
    state = SessionState(memory=memory, permissions={"run: make": True}, model="2.5", title_by="agent")
    made = msgspec.structs.replace(info(agent=agent), principal=principal)
    claim = await store.create(made, state)
    await turn(store, claim, message("Hello"))
    await store.release(claim)
    if own_id is not None:
        await store.set_alias(Scope(principal, agent), own_id, claim.session)
    return claim.session


async def test_sessions_of_another_name_are_listed_under_the_one_name(place: Place) -> None:
    async with place.open() as store:
        mine, named = await wrapped(store, own_id="own"), await wrapped(store, "gemini")
        theirs = await wrapped(store, principal="ada")
        other = await wrapped(store, "codex-acp")
        before = (await store.get(mine)).info
        said = [str(joined) for joined in await join_names(store)]
        assert [text[:55] for text in said if "gemini" in text] == [
            "1 session was listed under gemini-cli and is listed und",
            "1 session was listed under gemini-cli and is listed und",
        ]
        assert set(await walk(store, NEW)) == {mine, named}
        assert await walk(store, Scope("ada", "gemini")) == [theirs]
        assert await walk(store, Scope(LOCAL, "codex")) == [other]
        assert (await store.get(mine)).info == msgspec.structs.replace(before, agent="gemini")
        assert await join_names(store) == []


async def test_the_agents_own_ids_lead_to_the_sessions_under_the_new_name(place: Place) -> None:
    async with place.open() as store:
        mine = await wrapped(store, own_id="own")
        await store.set_alias(OLD, "deleted", None)
        await join_names(store)
        assert await store.find_aliases(NEW, ["own", "deleted"]) == {"own": mine, "deleted": None}
        assert AgentRecord.read((await store.get(mine)).state.memory).session == "own"


async def test_what_was_allowed_for_ever_does_not_go_along(place: Place) -> None:
    async with place.open() as store:
        mine, named = await wrapped(store), await wrapped(store, "gemini")
        await join_names(store)
        state = (await store.get(mine)).state
        assert state.permissions == {}
        assert (state.model, state.title_by) == ("2.5", "agent")
        assert (await store.get(named)).state.permissions == {"run: make": True}


async def test_of_a_conversation_that_was_adopted_twice_one_goes_on_in_the_agents_session(place: Place) -> None:
    async with place.open() as store:
        first, second = await wrapped(store, "gemini", "own"), await wrapped(store, own_id="own")
        await join_names(store)
        assert await store.find_aliases(NEW, ["own"]) == {"own": first}
        assert AgentRecord.read((await store.get(first)).state.memory).session == "own"
        assert AgentRecord.read((await store.get(second)).state.memory) == AgentRecord()
        assert set(await walk(store, NEW)) == {first, second}


async def test_an_agent_of_an_author_keeps_its_name_whatever_it_is(place: Place) -> None:
    async with place.open() as store:
        for memory in ({}, {"city": "Oslo"}):
            claim = await store.create(info(agent="Copilot"), SessionState(memory=memory, permissions={"x": True}))
            await turn(store, claim, message("Hello"))
            await store.release(claim)
        assert await join_names(store) == []
        sessions = await walk(store, Scope(LOCAL, "Copilot"))
        assert [(await store.get(session)).state.permissions for session in sessions] == [{"x": True}] * 2


async def test_a_session_whose_turn_broke_is_ended_first_and_grants_nothing(lasting: Place) -> None:
    async with lasting.open() as store:
        mine = await wrapped(store)
    async with lasting.open() as store:
        claim = (await store.claim(mine)).claim
        log = await store.begin(claim, prompt("prompt"), NOTHING)
        always = {"sessionUpdate": REMEMBERED, "subject": "rm", "allow": True}
        log.append(msgspec.json.encode(always))
        await log.sync()
        await store.release(claim)
    async with lasting.open() as store:
        assert [joined.sessions for joined in await join_names(store)] == [1]
        snapshot = await store.snapshot(mine)
        assert snapshot.unsealed is None
        assert snapshot.record.state.permissions == {}
        assert snapshot.record.state.memory[KEY]["knows"] == "msg"


async def test_a_session_that_a_living_process_has_keeps_its_name_until_it_lets_go(lasting: Place) -> None:
    async with lasting.open() as other, lasting.open() as store:
        mine = await wrapped(store)
        claim = (await other.claim(mine)).claim
        assert await join_names(store) == []
        assert await walk(store, OLD) == [mine]
        await other.release(claim)
        assert [joined.sessions for joined in await join_names(store)] == [1]


async def test_many_sessions_are_joined_whole(place: Place) -> None:
    async with place.open() as store:
        made = {await wrapped(store, own_id=f"own {n}") for n in range(230)}
        assert [joined.sessions for joined in await join_names(store)] == [230]
        assert set(await walk(store, NEW)) == made
        assert set(await walk(store, ALL)) == made
