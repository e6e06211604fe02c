"""The verdicts on real agents, as the tree keeps them: reports of `holdfast check` without frames, one result a line.

`holdfast check --compare app/tests/field/verdicts/*.json` prints their matrix. The whole report of a run, with its
frames, is in the cache of whoever ran it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from holdfast_app.check.report import Outcome, Result, from_json

if TYPE_CHECKING:
    from holdfast_app.check import Report

VERDICTS = Path(__file__).with_name("verdicts")
SEEN_CHARACTERS = 160
_HERE = re.compile(r"(?<![\w.])/(?:[\w.@+-]+/)*[\w.@+-]+|[\w.@+-]+(?:/[\w.@+-]+){2,}")
"""Names of directories, also where their beginning was cut off: they say nothing to others."""


def verdict_file(name: str) -> Path:
    """Return where the verdict of a run is kept: ``claude-v1-alone``."""
    return VERDICTS / f"{name}.json"


def keep(name: str, command: str, report: Report) -> Path:
    """Put the results of a run in place of earlier ones; those of what it did not try stay.

    `command` is what the agent is started by, without the directories of this machine.
    """
    kept = verdict_file(name)
    tried = (result for result in report.results if result.outcome is not Outcome.NOT_RUN)
    now = replace(report, target=command, results=tuple(map(_shortened, tried)))
    if kept.exists():
        now = _merged(from_json(kept.read_bytes()), now)
    VERDICTS.mkdir(exist_ok=True)
    kept.write_bytes(_lines(now))
    return kept


def _merged(before: Report, now: Report) -> Report:
    earlier, tried = ({result.key: result for result in report.results} for report in (before, now))
    results = earlier | tried
    days = [*before.date.split(" to "), now.date] if earlier.keys() - tried.keys() else [now.date]
    date = min(days) if min(days) == max(days) else f"{min(days)} to {max(days)}"
    profiles = tuple(dict.fromkeys((*before.profiles, *now.profiles)))
    return replace(now, profiles=profiles, results=tuple(results.values()), date=date)


def _shortened(result: Result) -> Result:
    expected = "" if result.expected == result.requirement.text else short(result.expected)
    return Result(
        result.id, result.version, result.outcome, expected, short(result.seen), lacks=result.lacks, late=result.late
    )


def short(text: str) -> str:
    """Return what was said in one short line, without directories of this machine."""
    plain = _HERE.sub("…", text).replace("\n", " ")
    return plain if len(plain) <= SEEN_CHARACTERS else plain[:SEEN_CHARACTERS] + "…"


def _lines(report: Report) -> bytes:
    """Return a report as JSON with a result a line, so that a change of one is a change of one line."""
    head = msgspec.json.encode(replace(report, results=()))
    results = b",\n".join(msgspec.json.encode(result) for result in report.results)
    return head.replace(b'"results":[]', b'"results":[\n' + results + b"\n]") + b"\n"
