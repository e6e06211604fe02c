"""How often a turn goes to the database, and that nothing is shown, lost or left waiting because it goes there less."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from core.tests.support import postgres
from core.tests.support.sessions import CWD, ScriptedAgent, begin, block, ended, engine_at, history, run, texts, watch
from core.tests.support.stores import NOTHING, message, new, prompt
from holdfast.engine import EngineLimits
from holdfast.errors import StoreError
from holdfast.store import EventWindow, open_store
from holdfast.store.postgres import log_vacuum
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.flushing import Flushes

pytestmark = [pytest.mark.requirement("P1", "P2"), pytest.mark.timeout(180)]

KEEPING = EngineLimits(keep_events=EventWindow())


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the statements that were run, in order."""
    ran: list[str] = []
    fetch, write = Database.fetch, Flushes._write  # pyright: ignore[reportPrivateUsage]

    async def counted_fetch(self: Database, name: str, /, *arguments: Any) -> list[Any]:
        ran.append(name)
        return await fetch(self, name, *arguments)

    async def counted_write(self: Flushes, *arguments: Any) -> Any:
        ran.append("flush")
        return await write(self, *arguments)

    monkeypatch.setattr(Database, "fetch", counted_fetch)
    monkeypatch.setattr(Flushes, "_write", counted_write)
    return ran


@pytest.mark.parametrize("limits", [None, KEEPING])
async def test_a_short_turn_is_two_commits_its_prompt_and_its_seal(
    statements: list[str], limits: EngineLimits | None
) -> None:
    async with engine_at(postgres.empty_database(), ScriptedAgent(), limits) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "say one")  # which gives the session a title, too
        statements.clear()
        await run(engine, session, "say two")
        assert statements == ["begin_plain_turn", "seal_plain_turn"]
        assert recorder.said() == "onetwo"
        assert texts(await history(engine, session)) == ["one", "two"]


@pytest.mark.parametrize("limits", [None, KEEPING])
async def test_where_the_prompt_is_not_acknowledged_only_the_seal_is_waited_for(
    statements: list[str], limits: EngineLimits | None
) -> None:
    async with engine_at(postgres.empty_database(), ScriptedAgent(), limits) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "say one")
        statements.clear()
        await ended(session.prompt([block("say two")], acknowledged=False))
        assert statements == ["reserve_turn", "seal_unwritten_turn" if limits is None else "seal_plain_turn"]
        assert recorder.said() == "onetwo"
        assert texts(await history(engine, session)) == ["one", "two"]


@pytest.mark.parametrize("acknowledged", [True, False])
async def test_what_went_with_the_seal_can_be_read_by_a_client_whose_stream_was_cut(acknowledged: bool) -> None:
    async with engine_at(postgres.empty_database(), ScriptedAgent(), KEEPING) as engine:
        session = await engine.create(CWD)
        await watch(engine, session)
        await run(engine, session, "say zero")
        before = session.journal.position
        await ended(session.prompt([block("say one\nsay two")], acknowledged=acknowledged))
        runs = await session.journal.missed(before, session.journal.position)
        said = [event.update() for _, events in runs for event in events]
        chunks = [update["content"]["text"] for update in said if update["sessionUpdate"] == "agent_message_chunk"]
        assert "".join(chunks) == "onetwo"
        assert [update["sessionUpdate"] for update in said].count("user_message") == 1


async def test_what_was_said_last_is_not_shown_before_a_seal_that_fails_and_is_shown_when_it_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with engine_at(postgres.empty_database(), ScriptedAgent()) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "say one")

        async def no_room(*_: Any, **__: Any) -> None:
            raise StoreError("There is no room")

        with monkeypatch.context() as patch:
            patch.setattr(engine.store, "seal", no_room)
            assert (await ended(begin(engine, session, "say two"))).reason == "error"
            assert recorder.said() == "one"
        await run(engine, session, "say three")
        assert recorder.said() == "onetwothree"
        assert texts(await history(engine, session)) == ["one", "two", "three"]


async def test_a_database_that_restarts_while_a_store_is_opened_is_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    format_in, broken = Database._format_in, 0  # pyright: ignore[reportPrivateUsage]

    async def break_twice(self: Database, connection: Any) -> int:
        nonlocal broken
        broken += 1
        if broken < 3:
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
        return await format_in(self, connection)

    address = postgres.empty_database()
    monkeypatch.setattr(Database, "_format_in", break_twice)
    await (await open_store(address)).close()
    assert broken >= 3


async def test_the_log_of_turns_is_vacuumed_by_what_was_removed_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_vacuum, "REMOVED_BYTES", 100_000)
    address = postgres.empty_database()
    store = await open_store(address)
    size = "SELECT pg_total_relation_size('holdfast.turn_log')"
    try:
        claim = await new(store)
        for number in range(120):
            log = await store.begin(claim, prompt("q"), NOTHING)
            if (kept := log.append(os.urandom(4000).hex().encode() + b"\n")) is not None:
                await kept
            await store.seal(claim, [message(f"{number}")], NOTHING, messages=1)
            while vacuum := [task for task in asyncio.all_tasks() if task.get_name() == "vacuum the log of turns"]:
                await asyncio.wait(vacuum)
        ((used,),) = await postgres.run_sql(address, size)
        assert used < 500_000, "a million bytes were said"
    finally:
        await store.close()
