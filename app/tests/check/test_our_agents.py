"""Our own agents pass every profile, in both versions; those that wrap others keep what sessions promise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from app.tests.support.checked_agent import InProcess
from core.tests.support.links import PROGRAMS
from core.tests.support.schemas import ROOT, SDK, lacking
from holdfast.testing.model_server import ModelServer, obey
from holdfast_app.check import CheckSettings, CommandTarget, Outcome, Prompts, run_checks
from holdfast_app.check.checks.open_turns import TOO_QUICK
from holdfast_app.check.schemas import find_schemas
from holdfast_app.cli.load_agent import load_agent
from holdfast_app.code import CodeSettings, coding_agent
from holdfast_app.wrap import Launch, ProxyPort

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast_app.check import Report

pytestmark = pytest.mark.timeout(300)

PROFILES = ("spec", "sessions", "hostile", "mcp", "client-services")
DEMO = Prompts()  # those that the check knows for it


def settings(prompts: Prompts, *profiles: str) -> CheckSettings:
    if not SDK.is_dir():
        lacking("the official schemas are not installed: they come with npm, by `make test`")
    schemas = find_schemas(SDK)
    return CheckSettings(
        profiles, prompts=prompts, deadline=40.0, exit_deadline=40.0, quiet=0.1, jobs=4, schemas=schemas
    )


def unmet(report: Report) -> list[str]:
    """Say what did not pass of what the agent could be tried for in this process."""
    excused = {"mcp-ended", "exit"}  # what needs a process of its own
    rows = [row for row in report.results if row.outcome not in (Outcome.PASSED, Outcome.NOT_ADVERTISED)]
    return [f"{row.key}: {row.outcome}, {row.expected} / {row.seen}" for row in rows if row.id not in excused]


async def test_the_demo_agent_passes(tmp_path: Path) -> None:
    target = InProcess("", tmp_path, lambda: load_agent("demo"))
    report = await run_checks(target, settings(DEMO, *PROFILES))
    assert not unmet(report)
    assert {row.version for row in report.results} == {1, 2}


async def test_the_demo_agent_keeps_what_was_seen_when_it_is_killed(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "holdfast", "run", "demo", "--store", str(tmp_path / "sessions.db"))
    report = await run_checks(CommandTarget(command), settings(DEMO, "durability"))
    assert not [row for row in report.results if row.outcome is not Outcome.PASSED]


@pytest.mark.parametrize("version", [1, 2])  # apart: each starts the agent some twenty times, a second of work each
async def test_the_coding_agent_keeps_what_was_seen_when_it_is_killed(version: int, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "holdfast", "run", "code", "--store", str(tmp_path / "sessions.db"))
    async with AsyncExitStack() as closing:
        server = await closing.enter_async_context(ModelServer(obey))
        environment = {"HOLDFAST_MODEL": "scripted", "HOLDFAST_BASE_URL": f"{server.root}/v1"}
        chosen = replace(settings(Prompts(), "durability"), versions=(version,))
        report = await run_checks(CommandTarget(command, environment), chosen)
    assert {row.version for row in report.results} == {version}
    assert not [row for row in report.results if row.outcome is not Outcome.PASSED]


def test_the_schemas_of_the_official_python_sdk_judge_both_versions(tmp_path: Path) -> None:
    packages = sorted((ROOT / ".venv-sdk1").glob("lib/python*/site-packages"))
    if not packages:
        lacking("the pre-release of the official Python SDK is not installed: it comes by `make test`")
    report = tmp_path / "report.json"
    rules = ("frames-valid", "prompt-ends", "load", "permission-options", "options", "fork", "list")
    only = [part for rule in rules for part in ("--only", rule)]
    talk = ["--prompt-talk", DEMO.talk, "--prompt-ask", DEMO.ask]
    agent = [sys.executable, "-m", "holdfast", "run", "demo", "--store", str(tmp_path / "sessions.db")]
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", "check", *only, *talk, "--json", str(report), "--", *agent],
        env={**os.environ, "PYTHONPATH": str(packages[0])}, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    value = json.loads(report.read_text())
    assert value["schemas"].startswith("agent-client-protocol 1.0")
    judged = [row for row in value["results"] if row["id"] == "frames-valid"]
    assert [(row["version"], row["outcome"]) for row in judged] == [(1, "passed"), (2, "passed")]


WEATHER = Prompts()
ACTING = (("mode", "act"),)
"""In this mode the agent of the README asks before it writes: a turn that asks can be cancelled, closed and killed."""


async def test_the_agent_of_the_readme_passes(tmp_path: Path) -> None:
    weather = str(ROOT / "examples" / "weather.py")
    chosen = replace(settings(WEATHER, *PROFILES), options=ACTING)
    report = await run_checks(InProcess("", tmp_path, lambda: load_agent(weather)), chosen)
    assert not unmet(report)
    assert {row.version for row in report.results} == {1, 2}
    cancelled = [row for row in report.results if row.id in ("cancel", "usable-after-cancel", "close-quiet")]
    assert [row.outcome for row in cancelled] == [Outcome.PASSED] * 6


def weather(store: Path) -> CommandTarget:
    file = str(ROOT / "examples" / "weather.py")
    return CommandTarget((sys.executable, "-m", "holdfast", "run", file, "--store", str(store)))


async def test_the_agent_of_the_readme_keeps_what_was_seen_when_it_is_killed_while_it_asks(tmp_path: Path) -> None:
    chosen = replace(settings(WEATHER, "durability"), options=ACTING)
    report = await run_checks(weather(tmp_path / "sessions.db"), chosen)
    assert not [row for row in report.results if row.outcome is not Outcome.PASSED]
    assert {row.version for row in report.results} == {1, 2}


async def test_what_needs_a_turn_that_runs_is_not_tested_for_an_agent_that_is_too_quick(tmp_path: Path) -> None:
    only = ("kill-answer", "exit-in-turn", "cancel")
    chosen = replace(settings(WEATHER), only=only, versions=(1,), options=(("mode", "ask"),))
    report = await run_checks(weather(tmp_path / "sessions.db"), chosen)
    told = {row.id: (row.outcome, row.seen) for row in report.results if row.id in chosen.only}
    assert told == dict.fromkeys(chosen.only, (Outcome.NOT_TESTED, TOO_QUICK))
    assert not report.conformant


async def test_the_coding_agent_passes(tmp_path: Path) -> None:
    async with AsyncExitStack() as closing:
        server = await closing.enter_async_context(ModelServer(obey))
        chosen = CodeSettings(("scripted",), f"{server.root}/v1")
        target = InProcess("", tmp_path, lambda: coding_agent(chosen))
        report = await run_checks(target, settings(Prompts(), *PROFILES))
    assert not unmet(report)


WRAPPED = Prompts(talk="say pebbles are small", tool="tool", ask="propose", long="slowly" + " pebble" * 400)
KILLS = ("kill-prompt", "kill-answer", "kill-earlier", "kill-goes-on", "kill-calls-closed")


@pytest.mark.parametrize("habits", [("keeps nothing", "no load", "no resume"), ("v2", "loses prompts")])
async def test_a_wrapped_agent_keeps_what_sessions_promise(habits: tuple[str, ...], tmp_path: Path) -> None:
    agent = (sys.executable, str(PROGRAMS / "wrapped_agent.py"), *habits)
    launch = Launch(agent, env={**os.environ, "AGENT_HOME": str(tmp_path)})
    report = await run_checks(InProcess("", tmp_path, lambda: ProxyPort(launch)), settings(WRAPPED, "sessions"))
    assert not unmet(report)


async def test_a_wrapped_agent_loses_nothing_when_it_is_killed_with_the_proxy(tmp_path: Path) -> None:
    agent = (sys.executable, str(PROGRAMS / "wrapped_agent.py"), "keeps nothing", "no load", "no resume")
    wrap = (sys.executable, "-m", "holdfast", "wrap", "--store", str(tmp_path / "sessions.db"), "--", *agent)
    chosen = replace(settings(WRAPPED), only=KILLS, versions=(1,))
    report = await run_checks(CommandTarget(wrap, {"AGENT_HOME": str(tmp_path)}), chosen)
    assert not [row for row in report.results if row.outcome is not Outcome.PASSED]


async def test_a_call_that_the_user_rejects_is_not_shown_as_done_by_a_wrapped_agent(tmp_path: Path) -> None:
    agent = (sys.executable, str(PROGRAMS / "wrapped_agent.py"))
    launch = Launch(agent, env={**os.environ, "AGENT_HOME": str(tmp_path)})
    chosen = replace(settings(WRAPPED), only=("permission-rejected",))
    report = await run_checks(InProcess("", tmp_path, lambda: ProxyPort(launch)), chosen)
    assert not unmet(report)
