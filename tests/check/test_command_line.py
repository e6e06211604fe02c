"""`holdfast check` at the command line: statuses, reports, baselines, and programs that are no agents."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from tests.support.checked_agent import InProcess
from tests.support.links import PROGRAMS

from holdfast.check import CheckSettings, Outcome, Prompts, run_checks
from holdfast.check.documents import junit, markdown, matrix, page
from holdfast.check.report import Report, Result, baseline_of, from_json, read_baseline, to_json

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(300)


def check(*arguments: str, timeout: float = 200) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast", "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


LAUNCHER = ["sh", "-c", "sleep 3123 & exit 0"]
"""It leaves a process behind that holds its pipes open."""


@pytest.mark.parametrize("program", [["cat"], ["false"], ["sleep", "100"], ["yes"], ["yes", "{}"], LAUNCHER])
def test_a_program_that_is_no_agent_scores_zero_within_its_deadline(program: list[str], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    ended = check("--deadline", "2", "--json", str(report), "--", *program)
    assert ended.returncode == 1
    assert "0 of" in ended.stdout
    assert "Traceback" not in ended.stderr
    value = json.loads(report.read_text())
    assert value["conformant"] is False
    assert value["keepsPromises"] is False
    assert {row["outcome"] for row in value["results"]} == {"failed", "not tested"}
    assert "not tested, because these did not pass: initialize" in ended.stdout
    assert len(ended.stdout.splitlines()) < 15
    if program is LAUNCHER:
        running = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True)
        assert "sleep 3123" not in running.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM on Windows")
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_check_that_is_stopped_leaves_no_agent_behind(stop: signal.Signals, tmp_path: Path) -> None:
    started = tmp_path / "started"
    agent = ["sh", "-c", f"sleep 3124.{stop} & touch {started}; wait"]
    with subprocess.Popen(
        [sys.executable, "-m", "holdfast", "check", "--", *agent],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as checking:  # fmt: skip
        deadline = time.monotonic() + 100
        while not started.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        checking.send_signal(stop)
        said, _ = checking.communicate(timeout=100)
    assert checking.returncode != 0
    assert "Traceback" not in said
    running = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True)
    assert f"sleep 3124.{stop}" not in running.stdout


def test_what_cannot_be_started_is_a_mistake_of_the_command_line() -> None:
    ended = check("--", "no-such-agent-anywhere")
    assert ended.returncode == 2
    assert "no-such-agent-anywhere" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [(), ("stray", "--", "x"), ("--profile", "odd", "--", "x"), ("--compare",)],
)  # fmt: skip
def test_a_command_line_that_makes_no_sense_is_told_so(arguments: tuple[str, ...]) -> None:
    assert check(*arguments).returncode == 2


METHODS = [
    "session/new", "session/prompt", "session/load", "session/resume", "session/list", "session/fork", "session/close",
    "session/delete", "session/set_config_option",
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
async def test_an_agent_that_hangs_in_a_method_is_reported(method: str, tmp_path: Path) -> None:
    prompts = Prompts(talk="Pebbles are small", tool="/tool", ask="/ask", long="/long")
    profiles = ("sessions",)
    settings = CheckSettings(profiles, (), (1,), prompts, deadline=2.0, exit_deadline=2.0, quiet=0.05, jobs=8)
    report = await run_checks(InProcess(f"hang:{method}", tmp_path), settings)
    failed = [row for row in report.results if row.outcome is Outcome.FAILED]
    assert failed
    assert any("not answered within" in row.seen or "not told to be idle" in row.seen for row in failed)


def test_reports_of_every_kind_are_written(tmp_path: Path) -> None:
    files = {name: tmp_path / f"report.{name}" for name in ("json", "junit", "html", "markdown")}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    agent = [sys.executable, str(PROGRAMS / "broken_agent.py"), "unknown-method", str(tmp_path)]
    ended = check(*options, "--profile", "spec-v1", "--jobs", "4", "--prompt-talk", "Hi", "--", *agent)
    assert ended.returncode == 1
    assert "unknown-method" in ended.stdout
    assert json.loads(files["json"].read_text())["agent"] == "checked 1"
    suite = ET.fromstring(files["junit"].read_text())[0]
    assert int(suite.get("failures", "0")) >= 1
    assert "unknown-method" in files["markdown"].read_text()
    assert files["html"].read_text().startswith("<!doctype html>")


HOSTILE = '</pre><script>alert(1)</script>\x00\x1b[31m & | "\ud83d'


def report_of(*results: Result, agent: str = "one 1") -> Report:
    return Report("one", agent, ("spec",), "", "0", results)


def test_what_an_agent_says_cannot_break_a_report() -> None:
    row = Result("unknown-method", 1, Outcome.FAILED, HOSTILE, HOSTILE, (HOSTILE,), HOSTILE)
    report = report_of(row, agent=HOSTILE)
    ET.fromstring(junit(report).encode("utf-8", "replace"))
    assert "<script>" not in page(report)
    assert "<script>" not in markdown(report)


def test_a_report_reads_back_and_compares() -> None:
    one = report_of(Result("new", 1, Outcome.PASSED), Result("cancel", 1, Outcome.FAILED, "a", "b"))
    two = report_of(Result("new", 1, Outcome.PASSED), Result("cancel", 1, Outcome.NOT_TESTED), agent="two 2")
    assert from_json(to_json(one)) == one
    table = matrix([one, two])
    assert "one 1 v1 | two 2 v1" in table
    assert "| ✗ | ? |" in table


def test_a_baseline_fails_on_what_is_new_and_on_what_is_stale() -> None:
    before = report_of(Result("new", 1, Outcome.FAILED, "a", 'b "quoted" \\ back'), Result("cancel", 1, Outcome.PASSED))
    known = read_baseline(baseline_of(before).encode())
    assert known.known == {"v1/new"}
    same = known.compare(before.results)
    assert (same.new, same.stale) == ([], [])
    after = report_of(Result("new", 1, Outcome.PASSED), Result("cancel", 1, Outcome.FAILED, "a", "b"))
    changed = known.compare(after.results)
    assert (changed.new, changed.stale) == (["v1/cancel"], ["v1/new"])


def test_mandatory_and_not_tested_is_not_conformant_and_advised_never_counts() -> None:
    assert not report_of(Result("new", 1, Outcome.NOT_TESTED)).conformant
    assert report_of(Result("new", 1, Outcome.PASSED), Result("named", 1, Outcome.FAILED)).conformant
    assert not report_of().conformant
