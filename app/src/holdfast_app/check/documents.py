"""A report as text: the verdict, JUnit for CI, Markdown for a summary; and the matrix of several."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import quoteattr

from holdfast_app.check.report import Outcome
from holdfast_app.check.requirements import PROFILES, REQUIREMENTS, Tier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast_app.check.report import Report, Result

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_SAID = re.compile(r" \(it said .*\)", re.DOTALL)
"""What an agent said instead of doing something: the reason is the same, whatever it said."""

LATE = "⌛"
"""Marks a failure that may be slowness."""
MARKS = {
    Outcome.PASSED: "✓",
    Outcome.FAILED: "✗",
    Outcome.NOT_ADVERTISED: "·",
    Outcome.NOT_TESTED: "?",
    Outcome.NOT_RUN: "-",
}
AGAINST = "!"
"""Marks a failure that does not count."""


def verdict(report: Report) -> str:
    """Return the verdict in one line."""
    if report.was_stopped:
        return f"{report.title}: stopped, {report.count(Outcome.NOT_RUN)} of {report.score[1]} were not run"
    if not report.failures():
        return f"{report.title}: nothing failed ({_but_failed(report)})"
    tiers = [row.requirement.tier for row in report.failures()]
    broken = {"rule": len(tiers) - tiers.count(Tier.PROMISE), "promise": tiers.count(Tier.PROMISE)}
    told = " and ".join(_counted(number, what) for what, number in broken.items() if number)
    return f"{report.title}: {told} failed ({_but_failed(report)})"


def _but_failed(report: Report) -> str:
    return ", ".join(f"{number} {way}" for way, number in report.ways().items() if way != Outcome.FAILED)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def number_table(report: Report) -> str:
    """Return how many ended in each way as a table of text: a line a profile and version."""
    ways = report.ways()
    groups = dict.fromkeys((row.requirement.profile, row.version) for row in report.results)
    lines = [f"{'':22}" + "".join(f"{way:>16}" for way in ways)]
    for profile, version in groups:
        rows = [row for row in report.results if (row.requirement.profile, row.version) == (profile, version)]
        numbers = (sum(row.way == way for row in rows) for way in ways)
        lines.append(f"{f'{profile} v{version}':22}" + "".join(f"{number or '':>16}" for number in numbers))
    return "\n".join(line.rstrip() for line in lines) + "\n"


class Finding(NamedTuple):
    """What was seen of one rule in one or both versions, or why several were not tested."""

    rows: list[Result]
    told: str

    @property
    def versions(self) -> str:
        """The versions, as ``v1 and v2``."""
        return " and ".join(f"v{version}" for version in sorted({row.version for row in self.rows}))


def failed(report: Report) -> list[Finding]:
    """Return what failed, each once for both versions: first what counts."""
    rows = [row for row in report.results if row.outcome is Outcome.FAILED]
    found: dict[tuple[str, str], Finding] = {}
    for row in sorted(rows, key=lambda row: not row.counts_against):
        found.setdefault((row.id, row.told), Finding([], row.told)).rows.append(row)
    return list(found.values())


def untested(report: Report) -> list[Finding]:
    """Return why something was not tested, each reason once; without what only needs what did not pass."""
    found: dict[str, Finding] = {}
    for row in report.results:
        if row.outcome is Outcome.NOT_TESTED and not row.lacks:
            found.setdefault(_SAID.sub("", row.seen), Finding([], row.seen)).rows.append(row)
    return list(found.values())


# JUnit


def junit(report: Report) -> str:
    """Return a report as JUnit XML. What counts against the agent is a failure, the rest is passed or skipped."""
    cases = "\n".join(_case(row) for row in report.results)
    failures = len(report.failures())
    skipped = sum(row.outcome is not Outcome.PASSED and not row.counts_against for row in report.results)
    name = quoteattr(_xml(report.title))
    seconds = round(sum(row.seconds for row in report.results), 3)
    counts = f"tests='{len(report.results)}' failures='{failures}' errors='0' skipped='{skipped}' time='{seconds}'"
    head = f"<testsuite name={name} {counts}>"
    return f"<?xml version='1.0' encoding='utf-8'?>\n<testsuites>\n{head}\n{cases}\n</testsuite>\n</testsuites>\n"


def _case(row: Result) -> str:
    rule = row.requirement
    name = quoteattr(_xml(f"{row.id}: {rule.text}"))
    head = f"<testcase classname='v{row.version}.{rule.profile}' name={name} time='{row.seconds}'>"
    if row.counts_against:
        about = f"type='{rule.tier}' message={quoteattr(_xml(row.told))}"
        body = f"<failure {about}>{escape(_xml(evidence(row)))}</failure>"
    elif row.outcome is Outcome.PASSED:
        body = ""
    else:
        body = f"<skipped message={quoteattr(_xml(f'{row.outcome}: {row.seen}'))}/>"
    return f"{head}{body}</testcase>"


def evidence(row: Result) -> str:
    """Return the last frames of a result, and what the agent wrote to stderr."""
    stderr = f"\nstderr:\n{row.stderr}" if row.stderr else ""
    return "\n".join(row.frames) + stderr


def _xml(text: str) -> str:
    """Replace what XML 1.0 cannot hold."""
    return _NOT_XML.sub("\ufffd", text)


# Markdown


def markdown(report: Report) -> str:
    """Return a summary: the verdict, and what failed."""
    lines = [f"## {_cell(verdict(report))}", "", f"`{report.target}`, checked by holdfast {report.holdfast}"]
    lines[-1] += f" against {report.schemas}" if report.schemas else ", without schemas"
    rows = [row for row in report.results if row.outcome is Outcome.FAILED]
    if rows:
        lines += ["", "| | version | what is required | expected | seen |", "|---|---|---|---|---|"]
        for row in rows:
            cells = (row.id, str(row.version), row.requirement.text, row.expected, row.seen)
            lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    if wanted := report.wanted_prompts():
        told = ", ".join(f"`{option}`" for option in wanted)
        lines += ["", f"{len(report.need_prompts())} were not tested for want of prompts: give {told}."]
    if report.was_stopped:
        lines += ["", "The run was stopped before it was over."]
    return "\n".join([*lines, "", report.counts + "."]) + "\n"


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")[:300]


def matrix(reports: Sequence[Report]) -> str:
    """Return agents and requirements as Markdown, a table a profile.

    ✓ passed, ✗ failed, ⌛ failed because something did not come in time, · not advertised, ? not tested, - not run.
    """
    columns = [(report, version) for report in reports for version in sorted({row.version for row in report.results})]
    titles = [f"{_cell(report.title)} v{version}" for report, version in columns]
    scores = [_score(report, version) for report, version in columns]
    tables = [_table("passed, of what it says it can", titles, [["", *scores]])]
    for profile, about in PROFILES.items():
        rows = [rule for rule in REQUIREMENTS if rule.profile == profile]
        marked = [(rule, [_mark(report, rule.id, version) for report, version in columns]) for rule in rows]
        lines = [[f"{rule.text} (`{rule.id}`, {rule.tier})", *marks] for rule, marks in marked if any(marks)]
        if lines:
            tables.append(_table(f"**{profile}**: {about}", titles, lines))
    return "\n".join(tables)


def _table(about: str, titles: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [[about, *titles], ["---"] * (len(titles) + 1), *lines]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _mark(report: Report, id_: str, version: int) -> str:
    row = next((row for row in report.results if (row.id, row.version) == (id_, version)), None)
    if row is None:
        return ""
    return LATE if row.late else MARKS[row.outcome]


def _score(report: Report, version: int) -> str:
    rows = [row for row in report.results if row.version == version and row.outcome is not Outcome.NOT_ADVERTISED]
    return f"{sum(row.outcome is Outcome.PASSED for row in rows)} of {len(rows)}"
