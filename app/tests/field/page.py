"""docs/field.md: what `holdfast check` said about each agent, alone and wrapped, and what it saw where it said no."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from app.tests.field.agents import ROOT
from app.tests.field.kept_verdicts import short, verdict_file
from holdfast_app.check.report import Outcome, from_json
from holdfast_app.check.requirements import BY_ID, Tier, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from app.tests.field.agents import FieldAgent
    from holdfast_app.check import Report

MANNERS = ("alone", "wrapped")
PROFILES = ("spec", "sessions", "durability", "hostile", "mcp", "client-services")
PAGE = ROOT / "docs" / "field.md"
BEGIN = "<!-- made by `make field-check` -->"
END = "<!-- end -->"


def write_page(agents: Mapping[str, FieldAgent]) -> None:
    """Put the tables of the verdicts that are kept into the page."""
    PAGE.write_text(page_text(agents))


def page_text(agents: Mapping[str, FieldAgent] | None = None) -> str:
    """Return the page as it is, or as it would be with the verdicts on `agents` that are kept."""
    text = PAGE.read_text()
    if agents is None:
        return text
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{_tables(agents)}\n{END}{after}"


def tables_of(page: str) -> list[str]:
    """Return the lines of a page that are made of verdicts."""
    return page.partition(BEGIN)[2].partition(END)[0].splitlines()


def _tables(agents: Mapping[str, FieldAgent]) -> str:
    parts = [_summary(agents)]
    for manner in MANNERS:
        files = [str(file) for _, _, file in _found(agents, manner)]
        compared = subprocess.run(
            [sys.executable, "-m", "holdfast", "check", "--compare", *files], capture_output=True, check=True, text=True
        )
        parts.append(f"## {manner.capitalize()}\n\n{compared.stdout}")
    parts.append("## What was seen\n")
    for agent in agents.values():
        parts += _faults(agent)
    return "\n".join(parts)


def _found(agents: Mapping[str, FieldAgent], manner: str) -> Iterator[tuple[FieldAgent, int, Path]]:
    for agent in agents.values():
        for version in agent.protocols:
            file = verdict_file(f"{agent.name}-v{version}-{manner}")
            if file.exists():
                yield agent, version, file


def _summary(agents: Mapping[str, FieldAgent]) -> str:
    lines = [
        "| agent | protocol | alone: passed | broken rules | broken promises | wrapped: passed | broken rules | broken promises | day |",  # noqa: E501
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for agent in agents.values():
        for version in agent.protocols:
            alone, wrapped = (_counts(verdict_file(f"{agent.name}-v{version}-{manner}"), version) for manner in MANNERS)
            day = ", ".join(dict.fromkeys(filter(None, (alone[3], wrapped[3]))))
            cells = [f"{agent.title} {agent.version}", str(version), *alone[:3], *wrapped[:3], day]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _counts(file: Path, version: int) -> tuple[str, str, str, str]:
    """Return how many passed of how many that count, how many rules and promises are broken, and the day."""
    if not file.exists():
        return "not run", "", "", ""
    report = from_json(file.read_bytes())
    tried = [row for row in report.results if row.outcome is not Outcome.NOT_RUN]
    counting = [row for row in tried if row.outcome is not Outcome.NOT_ADVERTISED]
    passed = f"{sum(row.outcome is Outcome.PASSED for row in counting)} of {len(counting)}"
    rules = len(required(PROFILES, (), version))
    if len(tried) < rules:
        passed += f" ({len(tried)} of {rules} rules tried)"
    failed = [row.requirement.tier for row in counting if row.outcome is Outcome.FAILED]
    broken = sum(tier in (Tier.MANDATORY, Tier.ADVERTISED) for tier in failed)
    return passed, str(broken), str(failed.count(Tier.PROMISE)), report.date


def _faults(agent: FieldAgent) -> list[str]:
    """Return what was seen of an agent where something failed, by version and manner."""
    parts: list[str] = []
    for version in agent.protocols:
        for manner in MANNERS:
            file = verdict_file(f"{agent.name}-v{version}-{manner}")
            if file.exists():
                head = f"**{agent.title} {agent.version}, version {version}, {manner}**"
                parts.append(f"{head}\n\n" + (_list(from_json(file.read_bytes())) or "Nothing failed.\n"))
    return parts


def _list(report: Report) -> str:
    lines: list[str] = []
    order = list(BY_ID)
    for row in sorted(report.results, key=lambda result: order.index(result.id)):
        if row.outcome is Outcome.FAILED:
            expected = "" if row.expected in ("", row.requirement.text) else f"expected {_said(row.expected)}, "
            lines.append(f"- `{row.id}` ({row.requirement.tier}): {expected}saw {_said(row.seen)}\n")
        elif row.outcome is Outcome.NOT_TESTED:
            lines.append(f"- `{row.id}` not tested: {_said(row.seen)}\n")
    return "".join(lines)


def _said(text: str) -> str:
    """Return what was said in one short line that Markdown takes as it is."""
    plain = short(text).replace("`", "'")
    return f"`{plain}`"
