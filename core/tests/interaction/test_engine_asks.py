"""C8: nothing but a clear yes is one; what the user says for ever is remembered for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.sessions import (
    CWD,
    Recorder,
    ScriptedAgent,
    begin,
    disk_as_of_now,
    ended,
    engine_at,
    history,
    run,
    texts,
    watch,
)
from holdfast.engine import EngineLimits
from holdfast.errors import ConnectionLost, RemoteError
from holdfast.model import Elicitation, ElicitationAnswer, Permission, PermissionOption

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine import LiveTurn
    from holdfast.model import Answer, StopReason

pytestmark = pytest.mark.requirement("C8")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("allow_once", "yes"),
        ("allow_always", "yes"),
        ("reject_once", "no"),
        ("reject_always", "no"),
        ("allow", "none"),
        ("Allow", "none"),
        ("ALLOW_ONCE", "none"),
        ("", "none"),
        ("allow_once ", "none"),
        (None, "none"),
        (True, "none"),
        (1, "none"),
        ({"outcome": "selected", "optionId": "allow_once"}, "none"),
        (["allow_once"], "none"),
        (ElicitationAnswer("accept", {}), "none"),
        (ConnectionLost("gone"), "none"),
        (TimeoutError(), "none"),
        (RemoteError(-32603, "no"), "none"),
        (RuntimeError("anything"), "none"),
    ],
)
async def test_only_an_offered_id_of_an_allow_kind_is_approval(answer: Any, outcome: str) -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "ask write")
        (await recorder.question()).answer(answer)
        assert (await ended(turn)).reason == "end_turn"
        assert recorder.said() == outcome
        assert (("may", "write") in agent.told) == (outcome == "yes")
        assert recorder.states() == ["running", "requires_action", "running", "end_turn"]


class Asking(ScriptedAgent):
    """Asks one question and keeps the answer."""

    def __init__(self, question: Permission | Elicitation) -> None:
        super().__init__()
        self.question = question
        self.answers: list[Answer] = []

    async def perform(self, turn: LiveTurn) -> StopReason | None:
        self.answers.append(await turn.ask(self.question))
        return None


async def test_ids_are_compared_with_those_that_were_offered_whatever_they_are_called() -> None:
    odd = (PermissionOption("reject", "Yes", "allow_once"), PermissionOption("allow_once", "No", "reject_once"))
    agent = Asking(Permission("Sure?", {}, odd, "s"))
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        for answer in ("reject", "allow_once", "reject_once", "allow_always"):
            recorder = await watch(engine, session, Recorder(always=answer))
            await run(engine, session, "x")
            session.detach(session.attachments[0])
            assert not recorder.drops
    assert agent.answers == ["reject", "allow_once", None, None]


@pytest.mark.requirement("C9")
@pytest.mark.parametrize(
    "answer", [ElicitationAnswer("accept", {"a": 1}), ElicitationAnswer("decline"), ElicitationAnswer("cancel")]
)
async def test_the_answer_to_a_form_is_given_as_it_came(answer: ElicitationAnswer) -> None:
    agent = Asking(Elicitation("form", {"mode": "form", "message": "m"}))
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        await watch(engine, session, Recorder(always=answer))
        await run(engine, session, "x")
        assert agent.answers == [answer]
        assert session.state.permissions == {}


@pytest.mark.requirement("C9")
async def test_the_answer_to_another_kind_of_question_is_none() -> None:
    agent = Asking(Elicitation("form", {"mode": "form", "message": "m"}))
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        await watch(engine, session, Recorder(always="allow_once"))
        await run(engine, session, "x")
        assert agent.answers == [None]


IMPATIENT = EngineLimits(ask=0.05)


@pytest.mark.requirement("F5")
async def test_a_question_that_no_client_sees_is_given_up_after_a_while() -> None:
    async with engine_at(":memory:", limits=IMPATIENT) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "ask write")
        assert texts(await history(engine, session)) == ["none"]


@pytest.mark.requirement("F5")
async def test_clients_that_cannot_answer_are_not_asked_and_nobody_waits_for_them() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        recorder.answers = False
        await run(engine, session, "ask write")
        assert recorder.said() == "none" and not recorder.puts
        assert recorder.states() == ["running", "end_turn"]  # nobody was told that an answer is needed


@pytest.mark.requirement("F5")
async def test_a_question_outlives_the_client_that_saw_it_until_another_comes() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        first = await watch(engine, session)
        turn = begin(engine, session, "ask write")
        put = await first.question()
        session.detach(session.attachments[0])
        for _ in range(5):
            await asyncio.sleep(0)
        assert put.withdrawn and turn.asking
        second = await watch(engine, session)
        (await second.question()).answer("allow_once")
        await ended(turn)
        assert texts(await history(engine, session)) == ["yes"]


@pytest.mark.requirement("F5")
async def test_a_question_whose_last_client_has_left_is_given_up_after_a_while() -> None:
    async with engine_at(":memory:", limits=IMPATIENT) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "ask write")
        put = await recorder.question()
        session.detach(session.attachments[0])
        await ended(turn)
        assert put.withdrawn
        assert texts(await history(engine, session)) == ["none"]


async def test_the_first_answer_counts_and_the_question_is_withdrawn_from_the_others() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        first, second = await watch(engine, session), await watch(engine, session)
        turn = begin(engine, session, "ask write")
        ours, theirs = await first.question(), await second.question()
        theirs.answer("reject_once")
        ours.answer("allow_once")  # in the same tick: too late
        await ended(turn)
        assert second.said() == first.said() == "no"
        assert ("may", "write") not in agent.told


@pytest.mark.parametrize("silence", [None, "nonsense", ConnectionLost("gone"), "leaves"])
async def test_one_who_cannot_answer_does_not_take_the_answer_from_those_who_can(silence: Any) -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        deaf, good = await watch(engine, session), await watch(engine, session)
        turn = begin(engine, session, "ask write")
        theirs, ours = await deaf.question(), await good.question()
        if silence == "leaves":
            session.detach(session.attachments[0])
        else:
            theirs.answer(silence)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not turn.ended.done()
        ours.answer("allow_once")
        await ended(turn)
        assert good.said() == "yes"


async def test_when_everybody_is_silent_there_is_no_answer() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        first, second = await watch(engine, session), await watch(engine, session)
        turn = begin(engine, session, "ask write")
        (await first.question()).answer(None)
        (await second.question()).answer(RuntimeError("x"))
        await ended(turn)
        assert first.said() == "none"


async def test_whoever_comes_while_a_question_is_open_is_asked_after_being_shown_what_was_before() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        first = await watch(engine, session)
        turn = begin(engine, session, "say before", "call c Write", "ask write")
        await first.question()
        late = Recorder()
        attachment = await session.attach(late)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert late.puts == []  # it has not seen the tool call yet
        session.detach(session.attachments[0])
        await asyncio.sleep(0)
        assert not turn.ended.done()  # somebody is still there who may answer
        assert [it async for it in attachment.past(engine.store)]
        attachment.follow()
        (await late.question()).answer("allow_once")
        await ended(turn)
        assert late.said() == "yes"


async def test_whoever_is_still_being_shown_the_past_is_asked_when_that_is_done() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        late = Recorder()
        attachment = await session.attach(late)
        turn = begin(engine, session, "say before", "ask write")
        await turn.accepted
        for _ in range(5):
            await asyncio.sleep(0)
        assert turn.asking and late.puts == []
        attachment.follow()
        assert late.said() == "before"
        (await late.question()).answer("allow_once")
        await ended(turn)
        assert late.said() == "beforeyes"


@pytest.mark.requirement("C4")
async def test_a_turn_whose_question_nobody_can_be_asked_never_seems_to_wait() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        recorder = Recorder()
        recorder.answers = False
        await watch(engine, session, recorder)
        await run(engine, session, "ask write")
        assert recorder.states() == ["running", "end_turn"]
        assert texts(await history(engine, session))[-1] == "none"


async def test_questions_side_by_side_are_answered_each_by_its_own_answer() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "ask_aside a", "ask_aside b", "wait gate")
        a, b = await recorder.question(1), await recorder.question(2)
        assert isinstance(a.question, Permission) and a.question.subject == "a"
        b.answer("reject_once")
        assert await agent.aside[1] == "reject_once"
        assert turn.asking
        a.answer("allow_once")
        assert await agent.aside[0] == "allow_once"
        agent.gates["gate"].set()
        await ended(turn)
        assert recorder.states() == ["running", "requires_action", "running", "end_turn"]


@pytest.mark.parametrize(("answer", "outcome"), [("allow_always", "yes"), ("reject_always", "no")])
async def test_an_answer_for_ever_is_remembered_through_restart_and_fork(
    place: Path, answer: str, outcome: str
) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "ask write", "ask write")
        (await recorder.question()).answer(answer)
        await ended(turn)
        assert len(recorder.puts) == 1
        assert recorder.said() == 2 * outcome
    async with engine_at(place, limits=IMPATIENT) as engine:
        session = await engine.restore(session.id, CWD)
        fork = await engine.fork(session.id, CWD)
        for each in (session, fork):
            await run(engine, each, "ask write")  # nobody watches, nobody is asked
            assert texts(await history(engine, each))[-1] == outcome
        other = await engine.create(CWD)
        await run(engine, other, "ask write")
        assert texts(await history(engine, other)) == ["none"]


@pytest.mark.parametrize("answer", ["allow_once", "reject_once"])
async def test_an_answer_for_once_is_not_remembered(answer: str) -> None:
    async with engine_at(":memory:", limits=IMPATIENT) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session, Recorder(always=answer))
        await run(engine, session, "ask write")
        session.detach(session.attachments[0])
        await run(engine, session, "ask write")
        assert recorder.said() in ("yes", "no")
        assert texts(await history(engine, session))[-1] == "none"


@pytest.mark.parametrize(("answer", "outcome"), [("allow_always", "yes"), ("reject_always", "no")])
async def test_an_answer_for_ever_survives_a_kill_in_the_middle_of_its_turn(
    place: Path, tmp_path: Path, answer: str, outcome: str
) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        await watch(engine, session, Recorder(always=answer))
        turn = begin(engine, session, "ask write", "wait gate")
        await agent.at("gate")
        fork = await engine.fork(session.id, CWD)
        left = disk_as_of_now(place, tmp_path / "left")
        agent.gates["gate"].set()
        await ended(turn)
    async with engine_at(left) as engine:
        for id_ in (session.id, fork.id):
            opened = await engine.restore(id_, CWD)
            await run(engine, opened, "ask write")
            assert texts(await history(engine, opened))[-1] == outcome


async def test_what_was_refused_for_ever_is_not_allowed_by_a_question_without_a_refusal() -> None:
    yes_only = (PermissionOption("y", "Yes", "allow_once"), PermissionOption("n", "No", "reject_always"))
    agent = Asking(Permission("?", {}, yes_only, "s"))
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        await watch(engine, session, Recorder(always="n"))
        await run(engine, session, "x")
        agent.question = Permission("?", {}, yes_only[:1], "s")
        await run(engine, session, "x")
    assert agent.answers == ["n", None]
