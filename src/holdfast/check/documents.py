"""A report as files: JUnit for CI, Markdown for a summary, one HTML page for people; and the matrix of several."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from holdfast.check.report import Outcome
from holdfast.check.requirements import PROFILES, REQUIREMENTS, Tier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.check.report import Report, Result

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

LATE = "⌛"
"""Marks a failure that may be slowness."""
MARKS = {Outcome.PASSED: "✓", Outcome.FAILED: "✗", Outcome.NOT_ADVERTISED: "·", Outcome.NOT_TESTED: "?"}


def verdict(report: Report) -> str:
    """Return the verdict in one sentence."""
    passed, total = report.score
    conformant = "conformant" if report.conformant else "not conformant"
    said = f"{report.title}: {passed} of {total}, {conformant}"
    if not any(row.requirement.tier is Tier.PROMISE for row in report.results):
        return said
    return f"{said}, {'keeps its promises' if report.keeps_promises else 'does not keep all promises'}"


# JUnit


def junit(report: Report) -> str:
    """Return a report as JUnit XML. What counts against the agent is a failure, the rest is passed or skipped."""
    cases = "\n".join(_case(row) for row in report.results)
    failures = len(report.failures())
    skipped = sum(row.outcome is not Outcome.PASSED and not row.counts_against for row in report.results)
    name = quoteattr(_xml(report.title))
    head = f"<testsuite name={name} tests='{len(report.results)}' failures='{failures}' skipped='{skipped}'>"
    return f"<?xml version='1.0' encoding='utf-8'?>\n<testsuites>\n{head}\n{cases}\n</testsuite>\n</testsuites>\n"


def _case(row: Result) -> str:
    rule = row.requirement
    name = quoteattr(_xml(f"{row.id}: {rule.text}"))
    head = f"<testcase classname='v{row.version}.{rule.profile}' name={name} time='{row.seconds}'>"
    if row.counts_against:
        body = f"<failure message={quoteattr(_xml(_said(row)))}>{escape(_xml(_evidence(row)))}</failure>"
    elif row.outcome is Outcome.PASSED:
        body = ""
    else:
        body = f"<skipped message={quoteattr(_xml(f'{row.outcome}: {row.seen}'))}/>"
    return f"{head}{body}</testcase>"


def _said(row: Result) -> str:
    return f"expected {row.expected}, saw {row.seen}" if row.expected else row.seen


def _evidence(row: Result) -> str:
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
    counts = ", ".join(f"{report.count(outcome)} {outcome}" for outcome in Outcome)
    return "\n".join([*lines, "", counts + "."]) + "\n"


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")[:300]


def matrix(reports: Sequence[Report]) -> str:
    """Return agents and requirements as Markdown, a table a profile.

    ✓ passed, ✗ failed, ⌛ failed because something did not come in time, · not advertised, ? not tested.
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


# HTML: one file, nothing in it that runs, every field of an agent escaped

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;width:100%}
td,th{padding:.3rem .5rem;text-align:left;vertical-align:top;border-bottom:1px solid #ddd}
td.mark{font-weight:700;white-space:nowrap}.passed{color:#116329}.failed{color:#b00020}.other{color:#666}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f4f4;padding:.6rem;font-size:.8rem}small{color:#555}
@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}td,th{border-color:#333}pre{background:#222}
.passed{color:#7ee787}.failed{color:#ff8a8a}.other,small{color:#aaa}}
"""


def page(report: Report) -> str:
    """Return a report as one HTML page."""
    sections = "".join(_section(report, *profile) for profile in (*PROFILES.items(), ("client", "what a client does")))
    about = f"<code>{escape(report.target)}</code><br><small>checked by holdfast {escape(report.holdfast)}"
    about += f" against {escape(report.schemas)}</small>" if report.schemas else ", without schemas</small>"
    head = (
        f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{escape(verdict(report))}</title>"
    )
    return f"<!doctype html><html lang=en>{head}<style>{_STYLE}</style><h1>{escape(verdict(report))}</h1><p>{about}</p>{sections}</html>\n"  # noqa: E501


def _section(report: Report, profile: str, about: str) -> str:
    rows = [row for row in report.results if row.requirement.profile == profile]
    if not rows:
        return ""
    head = f"<h2>{escape(profile)}: {escape(about)}</h2>"
    return head + "<table>" + "".join(_html_row(row) for row in rows) + "</table>"


def _html_row(row: Result) -> str:
    kind = row.outcome.value if row.outcome in (Outcome.PASSED, Outcome.FAILED) else "other"
    rule = row.requirement
    text = f"{escape(rule.text)}<br><small>{escape(row.id)} · {rule.tier} · {escape(rule.source)}</small>"
    if row.seen or row.expected:
        text += f"<br><small>{escape(_said(row))}</small>"
    if row.frames or row.stderr:
        text += f"<details><summary>frames</summary><pre>{escape(_evidence(row))}</pre></details>"
    return f"<tr><td class='mark {kind}'>{MARKS[row.outcome]} v{row.version}</td><td>{text}</td></tr>"
