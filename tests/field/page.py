"""docs/field.md: what `holdfast check` said about each agent, alone and wrapped, and what it saw where it said no."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

from holdfast.check.report import Outcome, from_json
from holdfast.check.requirements import BY_ID, Tier
from tests.field.agents import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from holdfast.check import Report
    from tests.field.agents import FieldAgent

MANNERS = ("alone", "wrapped")
PAGE = ROOT / "docs" / "field.md"
BEGIN = "<!-- made by `make field-check` -->"
END = "<!-- end -->"
SEEN_CHARACTERS = 160
_HERE = re.compile(r"(?<![\w.])/(?:[\w.@+-]+/)*[\w.@+-]+")
"""Names of directories, which say nothing to others."""


def write_page(agents: Mapping[str, FieldAgent], reports: Path) -> None:
    """Put the tables of these reports into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{_tables(agents, reports)}\n{END}{after}")


def _tables(agents: Mapping[str, FieldAgent], reports: Path) -> str:
    parts = [_summary(agents, reports)]
    for manner in MANNERS:
        files = [str(file) for _, _, file in _found(agents, reports, manner)]
        compared = subprocess.run(
            [sys.executable, "-m", "holdfast", "check", "--compare", *files], capture_output=True, check=True, text=True
        )
        parts.append(f"## {manner.capitalize()}\n\n{compared.stdout}")
    parts.append("## What was seen\n")
    for agent in agents.values():
        parts += _faults(agent, reports)
    return "\n".join(parts)


def _found(agents: Mapping[str, FieldAgent], reports: Path, manner: str) -> Iterator[tuple[FieldAgent, int, Path]]:
    for agent in agents.values():
        for version in agent.protocols:
            file = reports / f"{agent.name}-v{version}-{manner}.json"
            if file.exists():
                yield agent, version, file


def _summary(agents: Mapping[str, FieldAgent], reports: Path) -> str:
    wrapped = {(agent.name, version): _counts(file) for agent, version, file in _found(agents, reports, "wrapped")}
    lines = [
        "| agent | protocol | alone: passed | broken rules | broken promises | wrapped: passed | broken rules | broken promises | day |",  # noqa: E501
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for agent, version, file in _found(agents, reports, "alone"):
        alone = _counts(file)
        behind = wrapped.get((agent.name, version), ("?", "?", "?", ""))
        cells = [f"{agent.title} {agent.version}", str(version), *alone[:3], *behind[:3], alone[3]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _counts(file: Path) -> tuple[str, str, str, str]:
    """Return how many passed of how many that count, how many rules and promises are broken, and the day."""
    report = from_json(file.read_bytes())
    passed, total = report.score
    failed = [row.requirement.tier for row in report.results if row.outcome is Outcome.FAILED]
    rules = sum(tier in (Tier.MANDATORY, Tier.ADVERTISED) for tier in failed)
    return f"{passed} of {total}", str(rules), str(failed.count(Tier.PROMISE)), report.date


def _faults(agent: FieldAgent, reports: Path) -> list[str]:
    """Return what was seen of an agent where something failed, by version and manner."""
    parts: list[str] = []
    for version in agent.protocols:
        for manner in MANNERS:
            file = reports / f"{agent.name}-v{version}-{manner}.json"
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
    plain = _HERE.sub("…", text).replace("`", "'").replace("\n", " ")
    return f"`{plain[:SEEN_CHARACTERS]}{'…' * (len(plain) > SEEN_CHARACTERS)}`"
