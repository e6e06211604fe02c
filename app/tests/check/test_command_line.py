"""`holdfast check` at the command line: statuses, reports, baselines, and programs that are no agents."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from app.tests.support.checked_agent import BROKEN_AGENT, InProcess
from core.tests.support.leftovers import expect_gone, own_time
from core.tests.support.links import PROGRAMS
from holdfast.errors import UsageError
from holdfast_app.check import CheckSettings, Outcome, Prompts, run_checks
from holdfast_app.check.documents import junit, markdown, matrix, number_table, verdict
from holdfast_app.check.familiar import DEFAULT_PROMPTS, suited
from holdfast_app.check.html_report import page
from holdfast_app.check.report import Report, Result, baseline_of, from_json, read_baseline, to_json
from holdfast_app.cli.check_report import WORDS, again

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast_app.check.target import Link

pytestmark = pytest.mark.timeout(300)


def check(*arguments: str, timeout: float = 200) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast", "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


DEADLINES = (3, 20)
"""Seconds for an answer, which is how long what never comes is waited for; the second where a machine is busy."""


LAUNCHER = ["sh", "-c", "sleep TIME & exit 0"]
"""It leaves a process behind that holds its pipes open."""


@pytest.mark.parametrize("program", [["cat"], ["false"], ["sleep", "100"], ["yes"], ["yes", "{}"], LAUNCHER])
def test_a_program_that_is_no_agent_scores_zero_within_its_deadline(program: list[str], tmp_path: Path) -> None:
    report, seconds = tmp_path / "report.json", own_time()
    command = [part.replace("TIME", seconds) for part in program]
    ended = check("--deadline", "2", "--json", str(report), "--", *command)
    assert ended.returncode == 1
    assert "(0 passed, " in ended.stdout
    assert "Traceback" not in ended.stderr
    value = json.loads(report.read_text())
    assert value["conformant"] is False
    assert value["keepsPromises"] is False
    assert {row["outcome"] for row in value["results"]} == {"failed", "not tested"}
    assert "more, because these did not pass: initialize" in ended.stdout
    assert len(ended.stdout.splitlines()) < 15
    expect_gone(seconds)


MANNERS = ["flood", "endless-line", "wrong-ids", "daemon", "stubborn", "stderr"]


@pytest.mark.parametrize("manner", MANNERS)
def test_a_rude_agent_is_reported_within_its_deadline_and_leaves_nothing_behind(manner: str, tmp_path: Path) -> None:
    report, seconds = tmp_path / "report.json", own_time()
    only = ("load", "cancel", "exit", "kill-answer")
    options = [f"--only={id_}" for id_ in only]
    agent = [sys.executable, str(PROGRAMS / "rude_agent.py"), manner, seconds]
    first = {"wrong-ids": "new", "flood": "prompt-ends", "endless-line": "prompt-ends"}.get(manner, "load")
    outcomes: dict[str, str] = {}
    for deadline in DEADLINES:
        times = (f"--deadline={deadline}", "--exit-deadline=3", "--jobs=4")
        ended = check(*options, *times, "--json", str(report), "--", *agent)
        assert ended.returncode == 1
        assert "Traceback" not in ended.stderr
        outcomes = {row["id"]: row["outcome"] for row in json.loads(report.read_text())["results"]}
        if outcomes[first] == "failed":
            break
    assert outcomes["initialize"] == "passed"
    assert outcomes[first] == "failed"
    assert outcomes["kill-answer"] == "not tested"
    expect_gone(seconds)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM on Windows")
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_check_that_is_stopped_leaves_a_report_and_no_agent_behind(stop: signal.Signals, tmp_path: Path) -> None:
    started, report, seconds = tmp_path / "started", tmp_path / "report.json", own_time()
    agent = ["sh", "-c", f"sleep {seconds} & touch {started}; wait"]
    with subprocess.Popen(
        [sys.executable, "-m", "holdfast", "check", "--json", str(report), "--", *agent],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as checking:  # fmt: skip
        deadline = time.monotonic() + 100
        while not started.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        checking.send_signal(stop)
        said, _ = checking.communicate(timeout=100)
    assert checking.returncode == 2
    assert "Traceback" not in said
    assert "were not run" in said
    value = json.loads(report.read_text())
    assert {row["outcome"] for row in value["results"]} == {"not run"}
    assert value["conformant"] is False
    expect_gone(seconds)


async def test_a_run_that_is_stopped_in_the_middle_keeps_what_it_has_found(tmp_path: Path) -> None:
    stop = asyncio.Event()
    settings = CheckSettings(("spec",), (), (1, 2), Prompts(talk="Pebbles are small"), quiet=0.05)

    def progress(_result: Result, number: int, _total: int) -> None:
        if number == 3:
            stop.set()

    report = await run_checks(InProcess("", tmp_path), settings, progress, stop)
    assert report.count(Outcome.PASSED) == 3
    assert report.count(Outcome.NOT_RUN) == len(report.results) - 3
    assert {row.version for row in report.results} == {1, 2}
    assert "stopped" in verdict(report)
    assert "stopped" in markdown(report)
    assert from_json(to_json(report)) == report
    ET.fromstring(junit(report))


def test_a_file_that_the_command_names_is_that_of_the_directory_one_is_in() -> None:
    rules = ("--only", "initialize", "--protocol", "1")
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", "check", *rules, "--", sys.executable, "rude_agent.py", "stderr"],
        cwd=PROGRAMS, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout


def test_ones_own_agent_is_checked_by_its_file_and_its_sessions_are_not_among_the_users(tmp_path: Path) -> None:
    (tmp_path / "quick.py").write_text(QUICK)
    rules = ("--only", "initialize", "--only", "tool-call-announced", "--protocol", "1")
    command = [sys.executable, "-m", "holdfast", "check", "quick.py:mine", *rules]
    env = {"HOLDFAST_STORE": str(tmp_path / "users" / "s.db"), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False
    )  # fmt: skip
    assert "1 needs a prompt: run again with\n  holdfast check quick.py:mine" in ended.stdout, ended.stderr
    assert "used no tool (it said 'Yes.'); see --prompt-tool" in ended.stdout
    assert not (tmp_path / "users").exists()
    missing = check("nowhere.py")
    assert missing.returncode == 2 and "its command: -- nowhere.py" in missing.stderr


def test_our_coding_agent_is_checked_with_the_scripted_model() -> None:
    ended = check("code", "--model-server", "--protocol", "1", "--only", "permission-options")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "HOLDFAST_MODEL=scripted" in ended.stderr


QUICK = """
from holdfast import Agent

mine, other = Agent("quick"), Agent("other")

@mine.prompt
async def answer(turn):
    await turn.say("Yes.")
"""


def test_what_was_not_tested_is_not_called_a_failure() -> None:
    report = report_of(Result("new", 1, Outcome.PASSED), Result("cancel", 1, Outcome.NOT_TESTED))
    assert verdict(report) == "one 1: nothing failed (1 passed, 1 not tested)"
    assert not report.failures() and not report.conformant
    broken = report_of(Result("new", 1, Outcome.FAILED), Result("kill-answer", 1, Outcome.FAILED))
    assert verdict(broken) == "one 1: 1 rule and 1 promise failed (0 passed)"
    advised = report_of(Result("new", 1, Outcome.PASSED), Result("named", 1, Outcome.FAILED))
    assert verdict(advised) == "one 1: nothing failed (1 passed, 1 against advice)"


def test_what_needs_other_prompts_is_told_once_with_the_command_to_copy(tmp_path: Path) -> None:
    (tmp_path / "quick.py").write_text(QUICK)
    rules = ["--only", "tool-call-announced", "--only", "load-tool-calls", "--only", "cancel", "--jobs", "4"]
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", "check", *rules, "--prompt-tool=x", "quick.py:mine"],
        cwd=tmp_path, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    assert ": nothing failed (" in lines[-3]
    assert lines[-2] == "6 need prompts: run again with"
    words = [f"--prompt-{name}" for name in ("ask", "long", "tool")]
    copied = shlex.split(lines[-1])
    assert copied[:-6] == ["holdfast", "check", *rules, "quick.py:mine"]
    assert copied[-6::2] == words and all(word.isupper() for word in " ".join(copied[-5::2]).split())
    assert ended.stdout.count("used no tool") == 1
    assert ended.stdout.count("its turns are over") == 1


def test_the_command_to_copy_has_the_prompts_before_the_agents_own_command() -> None:
    given = ["check", "--prompt-tool", "x y", "--jobs", "4", "--", "agent", "--prompt-tool", "z"]
    copied = shlex.split(again(given, ["--prompt-tool"]))
    assert copied == [
        "holdfast", "check", "--jobs", "4", "--prompt-tool", WORDS["--prompt-tool"], "--", "agent", "--prompt-tool", "z"
    ]  # fmt: skip


def test_the_demo_is_tested_without_a_prompt_and_the_status_is_0(tmp_path: Path) -> None:
    report, store = tmp_path / "report.json", str(tmp_path / "sessions.db")
    rules = ("tool-call-closed", "permission-rejected", "cancel", "close-quiet", "exit-in-turn", "kill-answer")
    only = [f"--only={rule}" for rule in rules]
    run = (sys.executable, "-m", "holdfast", "run", "demo", "--store", store)
    ended = check(*only, "--jobs=2", "--deadline=100", "--exit-deadline=100", "--json", str(report), "--", *run)
    assert ended.returncode == 0, ended.stdout
    value = json.loads(report.read_text())
    assert {row["outcome"] for row in value["results"]} == {"passed"}
    assert (value["conformant"], value["failures"], value["needPrompts"]) == (True, 0, [])


def test_an_agent_that_is_known_gets_prompts_and_options_of_its_own_and_those_given_come_first() -> None:
    weather = suited(CheckSettings(prompts=Prompts(tool="mine")), "weather")
    assert (weather.prompts.ask, weather.prompts.tool) == ("How warm is it?", "mine")
    assert weather.options_if_offered == (("mode", "act"),)
    assert suited(CheckSettings(options=(("mode", "ask"),)), "weather").options_if_offered == ()
    assert suited(CheckSettings(), "@zed-industries/codex-acp").options_if_offered == (("mode", "read-only"),)
    assert suited(CheckSettings(), "unheard of").prompts == DEFAULT_PROMPTS


class Counting(InProcess):
    """Counts how often the agent is started."""

    started = 0

    async def start(self, cwd: str) -> Link:
        self.started += 1
        return await super().start(cwd)


async def test_an_agent_that_never_answers_is_waited_for_once(tmp_path: Path) -> None:
    target = Counting("hang:initialize", tmp_path)
    report = await run_checks(target, CheckSettings(deadline=1.0, jobs=4))
    assert target.started == 1
    [failed] = report.failures()
    assert (failed.id, failed.late, bool(failed.frames)) == ("initialize", True, True)
    assert {row.outcome for row in report.results if row is not failed} == {Outcome.NOT_TESTED}


def test_what_cannot_be_started_is_a_mistake_of_the_command_line() -> None:
    ended = check("--", "no-such-agent-anywhere")
    assert ended.returncode == 2
    assert "no-such-agent-anywhere" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("stray", "--", "x"),
        ("--profile", "odd", "--", "x"),
        ("--compare",),
        ("--client", "--", "x"),
        ("--client", "--write-baseline", "known.toml"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_told_so(arguments: tuple[str, ...]) -> None:
    assert check(*arguments).returncode == 2


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (["false"], "the agent exited with status 1 before it answered initialize"),
        (["sh", "-c", "kill -9 $$"], "the agent was ended by SIGKILL before it answered initialize"),
        (["echo", "hello"], "exited with status 0, having written 'hello', which is no message, before it answered"),
        (["sh", "-c", "exec >&-; sleep 50"], "the agent closed its output before it answered initialize"),
        (["sleep", "50"], "initialize was not answered within 3 s\n"),
        (["cat"], "sends back what it is sent"),
        (["sh", "-c", "echo y; echo y; sleep 50"], "2 other lines came meanwhile, among them 'y', which is no message"),
    ],
)
def test_the_report_says_how_a_program_that_is_no_agent_has_ended(program: list[str], told: str) -> None:
    said = ""
    for deadline in DEADLINES:
        ended = check(f"--deadline={deadline}", "--only", "initialize", "--protocol", "1", "--", *program)
        said = ended.stdout
        assert ended.returncode == 1
        assert "expected initialize is" not in said  # the rule itself is said once
        if told in said:
            break
    assert told in said


HANGS = {
    "initialize": "initialize", "session/new": "new", "session/prompt": "prompt-ends", "session/cancel": "cancel",
    "session/load": "load", "session/resume": "resume", "session/list": "list", "session/fork": "fork",
    "session/close": "close", "session/delete": "delete", "session/set_config_option": "options",
}  # fmt: skip
"""By a method, the rule that an agent breaks which never answers it."""


@pytest.mark.parametrize("method", HANGS)
async def test_an_agent_that_hangs_in_a_method_is_reported(method: str, tmp_path: Path) -> None:
    prompts = Prompts(talk="Pebbles are small", tool="/tool", ask="/ask", long="/long")
    settings = CheckSettings((), (HANGS[method],), (1,), prompts, quiet=0.05, jobs=8)
    failed: list[Result] = []
    for deadline in DEADLINES:
        limited = replace(settings, deadline=deadline, exit_deadline=deadline)
        report = await run_checks(InProcess(f"hang:{method}", tmp_path), limited)
        failed = [row for row in report.results if row.outcome is not Outcome.PASSED and not row.lacks]
        if [row.id for row in failed] == [HANGS[method]]:
            break
    [row] = failed
    assert (row.id, row.outcome, row.late) == (HANGS[method], Outcome.FAILED, True)
    waited = "session/prompt" if method == "session/cancel" else method
    assert row.seen.startswith(f"{waited} was not answered within")


def test_reports_of_every_kind_are_written(tmp_path: Path) -> None:
    files = {name: tmp_path / f"report.{name}" for name in ("json", "junit", "html", "markdown")}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    agent = [sys.executable, str(BROKEN_AGENT), "unknown-notification", str(tmp_path)]
    ended = check(*options, "--profile", "spec-v1", "--jobs", "4", "--prompt-talk", "Hi", "--", *agent)
    assert ended.returncode == 1
    assert "unknown-notification" in ended.stdout
    assert json.loads(files["json"].read_text())["agent"] == "checked 1"
    suite = ET.fromstring(files["junit"].read_text())[0]
    assert int(suite.get("failures", "0")) >= 1
    assert "unknown-notification" in files["markdown"].read_text()
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


def test_the_page_says_first_what_failed_and_marks_have_words() -> None:
    rows = [
        Result("initialize", 1, Outcome.PASSED),
        Result("named", 1, Outcome.FAILED, "a name", "None"),
        Result("cancel", 1, Outcome.FAILED, "cancelled", "session/prompt was not answered within 9 s", late=True),
        Result("cancel", 2, Outcome.PASSED),
        Result("load", 1, Outcome.NOT_TESTED, "", "see --prompt-talk"),
        Result("load-ids", 1, Outcome.NOT_TESTED, "", "load did not pass", lacks="load"),
    ]
    text = page(report_of(*rows))
    failed, untested, rules = (text.index(head) for head in ("What failed", "What could not be tested", "id='spec'"))
    assert failed < text.index("id='v1-cancel'") < text.index("id='v1-named'") < untested  # what counts comes first
    assert untested < text.index("id='v1-load'") < rules
    assert "1 more were not tested, because these did not pass: <code>load</code>" in text
    assert text.count("href='#v1-cancel'") == 1
    assert "aria-label='failed, nothing came in time'>⌛" in text
    assert re.findall(r"href='#([\w-]+)'", text) == [
        id_ for id_ in re.findall(r"href='#([\w-]+)'", text) if f"id='{id_}'" in text
    ]


def test_the_table_has_a_line_for_each_profile_and_version() -> None:
    rows = [Result("new", 1, Outcome.PASSED), Result("new", 2, Outcome.FAILED), Result("load", 1, Outcome.NOT_TESTED)]
    head, *lines = number_table(report_of(*rows)).splitlines()
    assert head.split() == ["passed", "failed", "not", "tested"]
    assert [line.split() for line in lines] == [["spec", "v1", "1"], ["spec", "v2", "1"], ["sessions", "v1", "1"]]


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


@pytest.mark.parametrize(
    "text",
    [
        "known = 3",
        "known = [",
        'known = ["v1/no-such-rule"]',
        'known = ["v2/message-ids"]',
        "\x00",
        '[known]\n"v1/new" = 1',
    ],
)
def test_what_is_no_baseline_is_told_before_the_check(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_baseline(text.encode())
    file = tmp_path / "known.toml"
    file.write_text(text)
    if "no-such-rule" in text:
        ended = check("--baseline", str(file), "--", "cat")
        assert ended.returncode == 2
        assert "no-such-rule" in ended.stderr


def test_a_baseline_of_what_a_hostile_agent_says_can_be_read() -> None:
    report = report_of(Result("new", 1, Outcome.FAILED, "", HOSTILE + "\u2028\r\n\x7f"))
    assert read_baseline(baseline_of(report).encode()).known == {"v1/new"}


def test_a_baseline_at_the_command_line_fails_on_what_is_new_and_on_what_is_stale(tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    rules = ("--only", "new-relative-cwd", "--only", "unknown-notification", "--protocol", "1", "--jobs", "4")
    agent = ("--", sys.executable, str(PROGRAMS / "rude_agent.py"), "plain")
    assert check(*rules, "--write-baseline", str(known), *agent).returncode == 1
    assert check(*rules, "--baseline", str(known), *agent).returncode == 0
    known.write_text('known = ["v1/unknown-notification"]')
    ended = check(*rules, "--baseline", str(known), *agent)
    assert ended.returncode == 1
    assert "new failure: v1/new-relative-cwd" in ended.stdout
    assert "no longer fails, take it out of the baseline: v1/unknown-notification" in ended.stdout


def test_a_report_that_cannot_be_written_is_told_before_the_check(tmp_path: Path) -> None:
    ended = check("--json", str(tmp_path / "nowhere" / "report.json"), "--", "cat")
    assert ended.returncode == 2
    assert "there is no directory" in ended.stderr


def test_reports_that_cannot_be_read_are_not_compared(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text("[]")
    for given in (file, tmp_path / "none.json"):
        ended = check("--compare", str(given))
        assert ended.returncode == 2
        assert given.name in ended.stderr
        assert "Traceback" not in ended.stderr


def test_a_junit_report_has_what_its_schema_demands() -> None:
    rows = [Result("new", 1, way, "a", "b", seconds=0.25) for way in Outcome]
    suites = ET.fromstring(junit(report_of(*rows)))
    assert suites.tag == "testsuites"
    [suite] = suites
    counts = {name: float(suite.get(name, "-1")) for name in ("tests", "failures", "errors", "skipped", "time")}
    assert counts == {"tests": 5, "failures": 2, "errors": 0, "skipped": 2, "time": 1.25}
    for case in suite:
        assert case.tag == "testcase"
        assert {"name", "classname", "time"} <= case.attrib.keys()
        assert [child.tag for child in case] in ([], ["failure"], ["skipped"])
        assert all("message" in child.attrib for child in case)


def test_mandatory_and_not_tested_is_not_conformant_and_advised_never_counts() -> None:
    assert not report_of(Result("new", 1, Outcome.NOT_TESTED)).conformant
    assert report_of(Result("new", 1, Outcome.PASSED), Result("named", 1, Outcome.FAILED)).conformant
    assert not report_of().conformant
