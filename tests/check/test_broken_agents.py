"""For every requirement there is an agent that breaks it: it fails exactly that, and the good agent fails nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.broken_agents import BREAKS, REMOTE_BREAKS
from tests.support.checked_agent import InProcess
from tests.support.links import PROGRAMS
from tests.support.schemas import SDK, lacking

from holdfast.check import REQUIREMENTS, CheckSettings, CommandTarget, Outcome, Prompts, run_checks
from holdfast.check.checks import CHECKS, OBSERVATIONS
from holdfast.check.requirements import BY_ID
from holdfast.check.schemas import find_schemas

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.check import Report, Target

pytestmark = pytest.mark.timeout(300)

PROMPTS = Prompts(talk="Pebbles are small", tool="/tool", ask="/ask", long="/long")
NEED_PROCESS = (*(row.id for row in REQUIREMENTS if row.profile == "durability"), "mcp-ended")
"""What is seen only when an agent is a process of its own."""
REMOTE = tuple(row.id for row in REQUIREMENTS if row.profile == "remote")
IN_PROCESS = tuple(row.id for row in REQUIREMENTS if row.id not in (*NEED_PROCESS, *REMOTE))


def settings(*profiles: str, version: int | None = None, deadline: float = 30.0) -> CheckSettings:
    if not SDK.is_dir():
        lacking("the official schemas are not installed: they come with npm, by `make test`")
    versions = (1, 2) if version is None else (version,)
    return CheckSettings(
        profiles, (), versions, PROMPTS, deadline=deadline, exit_deadline=deadline, quiet=0.05, jobs=8,
        schemas=find_schemas(SDK),
    )  # fmt: skip


def needing(broken: str) -> set[str]:
    """Return what cannot be tested where a requirement is broken."""
    found = {broken}
    while more := {row.id for row in REQUIREMENTS if set(row.needs) & found} - found:
        found |= more
    return found - {broken}


def judge(report: Report, broken: str) -> None:
    """Say where a report has another failure than the one that was made."""
    excused = needing(broken)
    wrong = [
        f"{row.key}: {row.outcome}, expected {row.expected}, saw {row.seen}"
        for row in report.results
        if row.id != broken and row.outcome is not Outcome.PASSED and not (row.id in excused or row.id in NEED_PROCESS)
    ]
    assert not wrong, "\n".join(wrong)
    own = [row for row in report.results if row.id == broken]
    assert {row.outcome for row in own} == {Outcome.FAILED}, own
    assert len(own) == len(BY_ID[broken].versions) or broken in ("initialize", "version-asked")


def test_every_requirement_has_a_script_and_a_broken_agent() -> None:
    ids = {row.id for row in REQUIREMENTS}
    assert ids == CHECKS.keys() | OBSERVATIONS.keys()
    assert not CHECKS.keys() & OBSERVATIONS.keys()
    assert ids == BREAKS.keys() | REMOTE_BREAKS.keys()
    assert {need for row in REQUIREMENTS for need in row.needs} <= ids


async def test_the_good_agent_fails_nothing(tmp_path: Path) -> None:
    profiles = ("spec", "sessions", "hostile", "mcp", "client-services")
    report = await run_checks(InProcess("", tmp_path), settings(*profiles))
    assert not [row for row in report.results if row.outcome is not Outcome.PASSED and row.id not in NEED_PROCESS]
    assert report.conformant
    assert report.keeps_promises


@pytest.mark.parametrize("broken", IN_PROCESS)
async def test_an_agent_with_one_fault_fails_one_requirement(broken: str, tmp_path: Path) -> None:
    profile = BY_ID[broken].profile
    report = await run_checks(InProcess(broken, tmp_path), settings(profile, deadline=10.0))
    judge(report, broken)
    assert report.failures() or BY_ID[broken].tier == "advised"


def process(broken: str, folder: Path) -> Target:
    return CommandTarget((sys.executable, str(PROGRAMS / "broken_agent.py"), broken, str(folder)))


async def test_the_good_agent_as_a_process_fails_nothing(tmp_path: Path) -> None:
    report = await run_checks(process("", tmp_path), settings("durability", "mcp"))
    assert not [row for row in report.results if row.outcome is not Outcome.PASSED]


@pytest.mark.parametrize("broken", NEED_PROCESS)
async def test_an_agent_with_one_fault_at_its_end_fails_one_requirement(broken: str, tmp_path: Path) -> None:
    ends = (
        "exit",
        "exit-in-turn",
        "kill-no-orphans",
        "mcp-ended",
    )  # who does not end is waited for in every other check
    only = ends if broken in ends else tuple(name for name in NEED_PROCESS if name not in ends)
    report = await run_checks(process(broken, tmp_path), replace(settings(version=1, deadline=20.0), only=only))
    failed = {row.id: row.seen for row in report.results if row.outcome is not Outcome.PASSED}
    assert failed.keys() - needing(broken) == {broken}, failed
