"""A report as one HTML page: the verdict, what failed with its frames, and then every rule.

Nothing in it runs or is loaded, and everything that an agent has said is escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from holdfast_app.check.documents import LATE, MARKS, evidence, verdict
from holdfast_app.check.report import Outcome
from holdfast_app.check.requirements import PROFILES, Tier

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast_app.check.report import Report, Result

_ABOUT = {**PROFILES, "client": "what a client does"}
_TIERS = {
    Tier.MANDATORY: "the protocol demands it of every agent",
    Tier.ADVERTISED: "the protocol demands it of agents that say they can, or that do it",
    Tier.PROMISE: "the protocol leaves it open, and users lose something without it",
    Tier.ADVISED: "good manners; does not count",
}

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
h1{font-size:1.4rem;margin-bottom:.3rem}h2{font-size:1.15rem;margin-top:2.2rem}p{margin:.4rem 0}
table{border-collapse:collapse;width:100%}caption{text-align:left;padding:.3rem 0}
td,th{padding:.3rem .6rem;text-align:left;vertical-align:top;border-bottom:1px solid #ddd}thead th{font-weight:600}
.number,.mark{text-align:right;white-space:nowrap;width:6.5rem}.mark{text-align:center;width:3rem;font-weight:700}
.passed{color:#116329}.failed{color:#b00020}.minor{color:#8a5a00}.other{color:#666}.verdict{font-size:1.1rem}
article{border-left:4px solid #b00020;padding:.1rem 0 .1rem .8rem;margin:1rem 0}article.minor{border-color:#c98500}
article.other{border-color:#aaa}article[class]{color:inherit}h3{font-size:1rem;margin:0}code{font-size:.9em}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f4f4;padding:.6rem;font-size:.8rem}small{color:#555}
@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}td,th{border-color:#333}pre{background:#222}a{color:#9ec5ff}
.passed{color:#7ee787}.failed{color:#ff8a8a}.minor{color:#f0b952}.other,small{color:#aaa}article{border-color:#ff8a8a}}
@media(max-width:40rem){.number{width:auto}small{overflow-wrap:anywhere}}
"""


def page(report: Report) -> str:
    """Return a report as one HTML page."""
    title = escape(verdict(report))
    head = "<meta charset=utf-8><meta name=viewport content='width=device-width'>"
    body = (
        f"<h1>{escape(report.title)}</h1>{_about(report)}{_numbers(report)}{_told(report)}{_rules(report)}{_legend()}"
    )
    return (
        f"<!doctype html><html lang=en><head>{head}<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def _about(report: Report) -> str:
    kind = "failed" if report.failures() else "minor" if report.count(Outcome.NOT_TESTED) else "passed"
    said = verdict(report).removeprefix(f"{report.title}: ")
    schemas = f"against {report.schemas}" if report.schemas else "without schemas"
    day = f" on {report.date}" if report.date else ""
    named = f" · calls itself {report.agent}" if report.agent and report.agent != report.title else ""
    small = f"checked by holdfast {report.holdfast} {schemas}{day}{named}"
    return (
        f"<p class='verdict {kind}'><strong>{escape(said)}</strong></p>"
        f"<p><code>{escape(report.target)}</code><br><small>{escape(small)}</small></p>"
    )


# How many ended in each way, by profile


def _numbers(report: Report) -> str:
    ways = report.ways()
    heads = "".join(f"<th scope=col class=number>{way}</th>" for way in ways)
    rows = "".join(
        f"<tr><th scope=row><a href='#{profile}'>{profile}</a></th>"
        + "".join(f"<td class=number>{sum(row.way == way for row in results)}</td>" for way in ways)
        + "</tr>"
        for profile, results in _by_profile(report)
    )
    return f"<table><thead><tr><th scope=col>profile</th>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _by_profile(report: Report) -> Iterable[tuple[str, list[Result]]]:
    for profile in _ABOUT:
        if rows := [row for row in report.results if row.requirement.profile == profile]:
            yield profile, rows


# What did not pass, in full


def _told(report: Report) -> str:
    failed = [row for row in report.results if row.outcome is Outcome.FAILED]
    failed.sort(key=lambda row: not row.counts_against)
    untested = [row for row in report.results if row.outcome is Outcome.NOT_TESTED and not row.lacks]
    told = _articles("What failed", failed) + _articles("What could not be tested", untested)
    if lacking := report.lacking():
        links = ", ".join(f"<code>{root}</code>" for root in report.roots())
        told += f"<p>{len(lacking)} more were not tested, because these did not pass: {links}.</p>"
    return told


def _articles(head: str, rows: list[Result]) -> str:
    return f"<h2>{head}</h2>" + "".join(map(_article, rows)) if rows else ""


def _article(row: Result) -> str:
    rule = row.requirement
    head = f"<h3>{_mark(row)} {escape(rule.text)}</h3>"
    about = f"<code>{row.id}</code> · version {row.version} · {rule.tier} · {escape(rule.source)}"
    told = f"<p>{escape(row.told)}</p>" if row.told else ""
    if row.frames or row.stderr:
        told += f"<details><summary>the last frames and words</summary><pre>{escape(evidence(row))}</pre></details>"
    return f"<article id='{_anchor(row)}' class={_kind(row)}>{head}<small>{about}</small>{told}</article>"


# Every rule, a table a profile, with a column a version


def _rules(report: Report) -> str:
    versions = sorted({row.version for row in report.results})
    tables = (_rule_table(profile, rows, versions) for profile, rows in _by_profile(report))
    return "".join(tables)


def _rule_table(profile: str, rows: list[Result], versions: list[int]) -> str:
    heads = "".join(f"<th scope=col class=mark>v{version}</th>" for version in versions)
    found = {(row.id, row.version): row for row in rows}
    lines: list[str] = []
    for id_ in dict.fromkeys(row.id for row in rows):
        rule = next(row.requirement for row in rows if row.id == id_)
        text = f"{escape(rule.text)}<br><small><code>{id_}</code> · {rule.tier} · {escape(rule.source)}</small>"
        cells = "".join(_cell(found.get((id_, version))) for version in versions)
        lines.append(f"<tr>{cells}<td>{text}</td></tr>")
    head = f"<h2 id='{profile}'>{profile}: {escape(_ABOUT[profile])}</h2>"
    return f"{head}<table><thead><tr>{heads}<th scope=col>rule</th></tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _cell(row: Result | None) -> str:
    if row is None:
        return "<td class='mark other'><span title='not in this version'></span></td>"
    mark = _mark(row)
    told = row.outcome is Outcome.FAILED or (row.outcome is Outcome.NOT_TESTED and not row.lacks)
    shown = f"<a href='#{_anchor(row)}'>{mark}</a>" if told else mark
    return f"<td class=mark>{shown}</td>"


def _mark(row: Result) -> str:
    mark = LATE if row.late else MARKS[row.outcome]
    words = f"{row.outcome}, nothing came in time" if row.late else str(row.outcome)
    return f"<span class={_kind(row)} role=img title='{words}' aria-label='{words}'>{mark}</span>"


def _kind(row: Result) -> str:
    match row.outcome:
        case Outcome.PASSED:
            return "passed"
        case Outcome.FAILED:
            return "failed" if row.counts_against else "minor"
        case _:
            return "other"


def _anchor(row: Result) -> str:
    return f"v{row.version}-{row.id}"


def _legend() -> str:
    marks = " · ".join(f"{mark} {outcome}" for outcome, mark in MARKS.items())
    tiers = "".join(f"<br><strong>{tier}</strong>: {about}" for tier, about in _TIERS.items())
    sources = "Sources such as P5 or A3 are promises and rules of Holdfast's documentation."
    late = f"{LATE} failed, because something did not come in time"
    return f"<h2>How to read this</h2><p>{marks} · {late}{tiers}<br>{sources}</p>"
