"""For every requirement there is an agent that breaks it: it fails exactly that, and the good agent fails nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from app.tests.support.broken_agents import BREAKS, REMOTE_BREAKS
from app.tests.support.checked_agent import BROKEN_AGENT, InProcess
from core.tests.support.schemas import SDK, lacking
from holdfast_app.check import REQUIREMENTS, CheckSettings, CommandTarget, Outcome, Prompts, run_checks
from holdfast_app.check.checks import CHECKS, OBSERVATIONS
from holdfast_app.check.requirements import BY_ID
from holdfast_app.check.schemas import find_schemas

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast_app.check import Report, Target

pytestmark = pytest.mark.timeout(300)

PROMPTS = Prompts(talk="Pebbles are small", tool="/tool", ask="/ask", long="/long", think="/think")
NEED_PROCESS = (*(row.id for row in REQUIREMENTS if row.profile == "durability"), "mcp-ended")
"""What is seen only when an agent is a process of its own."""
REMOTE = tuple(row.id for row in REQUIREMENTS if row.profile == "remote")
IN_PROCESS = tuple(row.id for row in REQUIREMENTS if row.id not in (*NEED_PROCESS, *REMOTE))


def settings(*profiles: str, version: int | None = None, deadline: float = 30.0) -> CheckSettings:
    if not SDK.is_dir():
        lacking("the official schemas are not installed: they come with npm, by `make test`")
    versions = (1, 2) if version is None else (version,)
    return CheckSettings(
        profiles, (), versions, PROMPTS, deadline=deadline, exit_deadline=deadline, quiet=0.05, jobs=4,
        schemas=find_schemas(SDK),
    )  # fmt: skip


def needing(broken: str) -> set[str]:
    """Return what cannot be tested where a requirement is broken."""
    found = {broken}
    while more := {row.id for row in REQUIREMENTS if set(row.needs) & found} - found:
        found |= more
    return found - {broken}


def judge(broken: str, *reports: Report) -> None:
    """Say where reports have another failure than the one that was made."""
    results = [row for report in reports for row in report.results]
    excused = needing(broken)
    wrong = [
        f"{row.key}: {row.outcome}, expected {row.expected}, saw {row.seen}"
        for row in results
        if row.id != broken and row.outcome is not Outcome.PASSED and not (row.id in excused or row.id in NEED_PROCESS)
    ]
    assert not wrong, "\n".join(wrong)
    own = [row for row in results if row.id == broken]
    assert {row.outcome for row in own} == {Outcome.FAILED}, own
    assert all(row.seen and row.frames for row in own), "a failure shows what was seen, and the frames it rests on"
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


async def check_apart(broken: str, folder: Path) -> list[Report]:
    """Check what is broken, with all that needs it, apart from the rest: only its silence is worth a short deadline."""
    profile = BY_ID[broken].profile
    patient = settings(profile, deadline=60.0)
    if broken in OBSERVATIONS:  # seen in what all others said
        return [await run_checks(InProcess(broken, folder), patient)]
    own = {broken, *needing(broken)}
    rest = tuple(row.id for row in REQUIREMENTS if row.profile == profile and row.id not in own)
    for deadline in (3.0, 40.0):  # a machine too busy for the first is given the second
        place = folder / f"{deadline:g}"
        place.mkdir()
        reports = [await run_checks(InProcess(broken, place), replace(settings(deadline=deadline), only=tuple(own)))]
        besides = [row for row in reports[0].results if row.id not in own and row.id not in NEED_PROCESS]
        if all(row.outcome is Outcome.PASSED for row in besides):
            break
    if rest:
        reports.append(await run_checks(InProcess(broken, folder), replace(patient, only=rest)))
    return reports


@pytest.mark.parametrize("broken", IN_PROCESS)
async def test_an_agent_with_one_fault_fails_one_requirement(broken: str, tmp_path: Path) -> None:
    reports = await check_apart(broken, tmp_path)
    judge(broken, *reports)
    assert any(report.failures() for report in reports) or BY_ID[broken].tier == "advised"


def process(broken: str, folder: Path) -> Target:
    return CommandTarget((sys.executable, str(BROKEN_AGENT), broken, str(folder)))


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
    failed: dict[str, str] = {}
    for exit_deadline in (4.0, 40.0):  # a machine too busy for the first is given the second
        place = tmp_path / f"{exit_deadline:g}"
        place.mkdir()
        patient = replace(settings(version=1, deadline=40.0), only=only, exit_deadline=exit_deadline)
        report = await run_checks(process(broken, place), patient)
        failed = {row.id: row.seen for row in report.results if row.outcome is not Outcome.PASSED}
        if failed.keys() - needing(broken) == {broken}:
            break
    assert failed.keys() - needing(broken) == {broken}, failed
