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
from tests.support.checked_agent import InProcess
from tests.support.links import PROGRAMS
from tests.support.schemas import ROOT, SDK, lacking

from holdfast.check import CheckSettings, CommandTarget, Outcome, Prompts, run_checks
from holdfast.check.schemas import find_schemas
from holdfast.cli.load_agent import load_agent
from holdfast.code import CodeSettings, coding_agent
from holdfast.proxy import Launch, ProxyPort
from holdfast.testing.model_server import ModelServer, obey

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.check import Report

pytestmark = pytest.mark.timeout(300)

PROFILES = ("spec", "sessions", "hostile", "mcp", "client-services")
DEMO = Prompts(talk="Pebbles are small", tool="/tool", ask="/ask", long="/stream 100000")


def settings(prompts: Prompts, *profiles: str) -> CheckSettings:
    if not SDK.is_dir():
        lacking("the official schemas are not installed: they come with npm, by `make test`")
    schemas = find_schemas(SDK)
    return CheckSettings(
        profiles, prompts=prompts, deadline=40.0, exit_deadline=40.0, quiet=0.1, jobs=8, schemas=schemas
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


async def test_the_coding_agent_keeps_what_was_seen_when_it_is_killed(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "holdfast", "run", "code", "--store", str(tmp_path / "sessions.db"))
    async with AsyncExitStack() as closing:
        server = await closing.enter_async_context(ModelServer(obey))
        environment = {"HOLDFAST_MODEL": "scripted", "HOLDFAST_BASE_URL": f"{server.root}/v1"}
        report = await run_checks(CommandTarget(command, environment), settings(Prompts(), "durability"))
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


async def test_the_agent_of_the_readme_passes(tmp_path: Path) -> None:
    weather = str(ROOT / "examples" / "weather.py")
    prompts = Prompts(talk="How warm is it?", tool="How warm is it?", ask="How warm is it?", long="How warm is it?")
    # In the mode "act" it asks before it writes: so it can be cancelled, which is over at once otherwise.
    chosen = replace(settings(prompts, *PROFILES), options=(("mode", "act"),))
    report = await run_checks(InProcess("", tmp_path, lambda: load_agent(weather)), chosen)
    assert not unmet(report)
    assert {row.version for row in report.results} == {1, 2}


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
