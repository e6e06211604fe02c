"""The check is fair: what agents of others were once blamed for wrongly, each in one test."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.checked_agent import InProcess, good_agent
from core.tests.support.acp import serving
from core.tests.support.schemas import SDK, lacking
from holdfast import Agent
from holdfast_app.check import CheckSettings, Outcome, Prompts, run_checks
from holdfast_app.check.checks.prompts import allows, rejects
from holdfast_app.check.schemas import MessageReader, find_schemas

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast import Turn

OPTIONS = [
    {"optionId": "a", "kind": "allow_always"},
    {"optionId": "b", "kind": "allow_once"},
    {"optionId": "c", "kind": "reject_always"},
    {"optionId": "d", "kind": "reject_once"},
]


def chosen(answer: Any) -> object:
    return answer["outcome"].get("optionId", answer["outcome"]["outcome"])


def test_permission_is_given_for_this_time_only_so_that_the_agent_asks_again_in_the_next_check() -> None:
    assert chosen(allows({"options": OPTIONS})) == "b"
    assert chosen(rejects({"options": OPTIONS})) == "d"
    assert chosen(allows({"options": OPTIONS[:1]})) == "a"
    assert chosen(rejects({"options": OPTIONS[:2]})) == "cancelled"


def test_an_answer_in_another_version_than_was_asked_for_is_judged_by_its_own_schema() -> None:
    if not SDK.is_dir():
        lacking("the official schemas are not installed: they come with npm, by `make test`")
    ways = [{"type": "agent", "methodId": "key", "name": "A key"}]
    answer = {"protocolVersion": 2, "info": {"name": "x", "version": "1"}, "capabilities": {}, "authMethods": ways}
    reader = MessageReader(find_schemas(SDK), 1, "agent")
    reader.faults({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}, sent_by="client")
    assert not reader.faults({"jsonrpc": "2.0", "id": 1, "result": answer}, sent_by="agent")
    old = MessageReader(find_schemas(SDK), 1, "agent")
    old.faults({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}, sent_by="client")
    assert old.faults({"jsonrpc": "2.0", "id": 1, "result": {**answer, "protocolVersion": 1}}, sent_by="agent")


ADVICE = ("unknown-method", "extension-method", "list-bad-cursor", "bad-json", "bad-request")


@pytest.mark.parametrize("rule", ADVICE)
async def test_what_the_official_kit_only_records_is_told_and_counts_for_nothing(rule: str, tmp_path: Path) -> None:
    settings = CheckSettings(only=(rule,), versions=(1,), prompts=Prompts(talk="Pebbles"), deadline=30.0, quiet=0.05)
    report = await run_checks(InProcess(rule, tmp_path), settings)
    assert [row.id for row in report.results if row.outcome is Outcome.FAILED] == [rule]
    assert report.conformant and not report.failures()


def picky_agent() -> Agent:
    """Make an agent with another option before its modes."""
    agent = Agent("picky", version="1")
    agent.option("provider", name="Provider", values={"here": "Here", "elsewhere": "Elsewhere"}, default="here")
    agent.modes({"calm": "Calm", "wild": "Wild"}, default="calm")

    @agent.prompt
    async def echo(turn: Turn) -> None:
        await turn.say(turn.text)

    return agent


@pytest.mark.parametrize("rule", ["options", "options-restored", "options-unknown"])
async def test_the_mode_is_tried_before_options_that_may_need_what_is_not_there(rule: str, tmp_path: Path) -> None:
    settings = CheckSettings(only=(rule,), prompts=Prompts(talk="Pebbles"), deadline=30.0, quiet=0.05)
    report = await run_checks(InProcess("cannot set:provider", tmp_path, picky_agent), settings)
    assert {row.outcome for row in report.results if row.id == rule} == {Outcome.PASSED}


async def test_options_that_an_agent_needs_to_be_asked_by_are_set_in_every_new_session(tmp_path: Path) -> None:
    settings = CheckSettings(
        only=("prompt-answers",), versions=(1,), prompts=Prompts(talk="Pebbles"), options=(("mode", "wild"),),
        deadline=30.0, quiet=0.05, name="Picky, wild",
    )  # fmt: skip
    report = await run_checks(InProcess("", tmp_path, picky_agent), settings)
    assert not report.failures()
    assert (report.title, report.agent) == ("Picky, wild", "picky 1")
    wrong = CheckSettings(only=("prompt-answers",), versions=(1,), options=(("mode", "none"),), deadline=30.0)
    report = await run_checks(InProcess("", tmp_path, picky_agent), wrong)
    assert any("session/set_config_option was refused" in row.seen for row in report.results)


async def test_a_check_that_waited_in_vain_says_so_apart_from_one_that_saw_something_wrong(tmp_path: Path) -> None:
    settings = CheckSettings(only=("load",), versions=(1,), prompts=Prompts(talk="Pebbles"), deadline=2.0, quiet=0.05)
    hanging = await run_checks(InProcess("hang:session/load", tmp_path), settings)
    assert [row.late for row in hanging.results if row.outcome is Outcome.FAILED] == [True]
    refusing = await run_checks(InProcess("load", tmp_path), replace(settings, deadline=30.0))
    assert [row.late for row in refusing.results if row.outcome is Outcome.FAILED] == [False]


async def test_sessions_are_opened_in_the_directory_that_an_agent_may_work_in(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    rules = ("list", "list-cwd", "permission-rejected")
    settings = CheckSettings(
        only=rules, versions=(1,), prompts=Prompts(talk="Pebbles", ask="/ask"), cwd=str(work), deadline=30.0, quiet=0.05
    )
    report = await run_checks(InProcess("", tmp_path), settings)
    assert not report.failures()
    async with serving(good_agent(), tmp_path / "sessions.db") as host:
        listed = await (await host.client(1)).ask("session/list", {})
    assert {row["cwd"] for row in listed["sessions"]} == {str(work)}


def test_what_is_wrong_with_a_frame_is_told_where_it_is() -> None:
    if not SDK.is_dir():
        lacking("the official schemas are not installed: they come with npm, by `make test`")
    schemas = find_schemas(SDK)
    assert schemas is not None

    def fault(update: dict[str, Any]) -> str:
        [told] = schemas.faults(2, "client", "session/update", "Notification", {"sessionId": "s", "update": update})
        return told

    commands = [{"type": "command", "name": "good", "description": "Good"}, {"name": "bad", "description": "x" * 400}]
    told = fault({"sessionUpdate": "available_commands_update", "availableCommands": commands})
    assert told.endswith("at $.update.availableCommands[1]: 'type' is a required property")
    told = fault({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": 7}})
    assert told.endswith("at $.update.content.text: 7 is not of type 'string'")
    told = fault({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": 7}})
    assert "at $.update.content" in told
