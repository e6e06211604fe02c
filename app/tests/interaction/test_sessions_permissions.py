"""`holdfast sessions permissions`: what was answered "always" is listed, and taken back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from app.tests.support.commands import HERE, live_at, sessions
from core.tests.support.engines import engine_process
from core.tests.support.sessions import Recorder, engine_at, history, run, texts, watch

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C8")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    live_at(tmp_path / "s.db", monkeypatch, tmp_path)
    return tmp_path / "s.db"


async def answered(place: Path, **answers: str) -> str:
    """Make a session in which questions were answered; return its id."""
    async with engine_at(place) as engine:
        session = await engine.create(HERE)
        for subject, answer in answers.items():
            await watch(engine, session, Recorder(always=answer))
            await run(engine, session, f"ask {subject}")
            session.detach(session.attachments[0])
        return session.id


async def answers_now(place: Path, session_id: str, user: str, *subjects: str) -> list[str]:
    """Return what the agent gets for each question from a user who answers all of them in one way."""
    async with engine_at(place) as engine:
        session = await engine.restore(session_id, HERE)
        await watch(engine, session, Recorder(always=user))
        for subject in subjects:
            await run(engine, session, f"ask {subject}")
        return texts(await history(engine, session))[-len(subjects) :]


def test_what_was_answered_for_ever_is_listed_and_forgotten(place: Path) -> None:
    session = asyncio.run(answered(place, write="reject_always", read="allow_always"))
    listed = sessions("permissions", session)
    assert listed.out == "rejected  write\nallowed   read\n"
    assert asyncio.run(answers_now(place, session, "allow_once", "write", "read")) == ["no", "yes"]
    assert asyncio.run(answers_now(place, session, "reject_once", "write", "read")) == ["no", "yes"]
    done = sessions("permissions", session, "--forget", "--only", "write")
    assert (done.status, done.out) == (0, "Forgot 1 answer; the agent asks again.\n")
    assert sessions("permissions", session).out == "allowed   read\n"
    assert asyncio.run(answers_now(place, session, "allow_once", "write", "read")) == ["yes", "yes"]
    assert asyncio.run(answers_now(place, session, "reject_once", "write", "read")) == ["no", "yes"]
    done = sessions("permissions", session, "--forget", "--json")
    assert done.json["permissions"] == [] and done.json["forgotten"] == [{"question": "read", "allow": True}]
    assert sessions("permissions", session).out == f"Nothing was allowed or rejected for ever in {session[5:15]}.\n"
    assert asyncio.run(answers_now(place, session, "reject_once", "read")) == ["no"]


def test_what_was_never_answered_cannot_be_forgotten(place: Path) -> None:
    session = asyncio.run(answered(place, write="allow_always"))
    refused = sessions("permissions", session, "--forget", "--only", "nonsense")
    assert refused.status == 1 and "no answer is remembered for 'nonsense'" in refused.err
    refused = sessions("permissions", session, "--only", "write")
    assert refused.status == 1 and "--only says what to --forget" in refused.err


async def test_a_session_that_a_program_has_open_is_left_alone(place: Path) -> None:
    session = await answered(place, write="allow_always")
    async with engine_process(place) as other:
        await other.do("restore", session)
        refused = await asyncio.to_thread(sessions, "permissions", session, "--forget")
        assert refused.status == 1 and "close it there, then try again" in refused.err
        listed = await asyncio.to_thread(sessions, "permissions", session)
        assert listed.out == "allowed   write\n"
