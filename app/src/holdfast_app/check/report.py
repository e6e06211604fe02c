"""What came out: values, the verdict they amount to, and the JSON they are written as."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import UsageError
from holdfast_app.check.requirements import BY_ID, Requirement, Tier

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_PROMPT = re.compile(r"--prompt-\w+")


class Outcome(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_ADVERTISED = "not advertised"
    NOT_TESTED = "not tested"
    NOT_RUN = "not run"
    """The whole run was stopped before."""


AGAINST_ADVICE = "against advice"
WAYS = (Outcome.PASSED, Outcome.FAILED, AGAINST_ADVICE, Outcome.NOT_ADVERTISED, Outcome.NOT_TESTED, Outcome.NOT_RUN)
"""In the order in which reports count them."""


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one requirement fared in one version."""

    id: str
    version: int
    outcome: Outcome
    expected: str = ""
    seen: str = ""
    """What was seen instead, or why it was not tested."""
    frames: tuple[str, ...] = ()
    """The last frames of the conversation, ``→`` sent and ``←`` received."""
    stderr: str = ""
    seconds: float = 0.0
    lacks: str = ""
    """The requirement that this one needs and that did not pass: so it was not tested."""
    late: bool = False
    """Whether it failed because something did not come within the deadline: the agent hangs, or it is slow."""

    @property
    def requirement(self) -> Requirement:
        """The rule."""
        return BY_ID[self.id]

    @property
    def key(self) -> str:
        """The name it has in a baseline."""
        return f"v{self.version}/{self.id}"

    @property
    def told(self) -> str:
        """What was expected and what was seen, or why it was not tested; what the rule itself says is not repeated."""
        if self.expected in ("", self.requirement.text):
            return self.seen
        return f"expected {self.expected}, saw {self.seen}"

    @property
    def counts_against(self) -> bool:
        """Whether it is a failure: of a rule that was tested, or of a mandatory one that a stopped run left out."""
        match self.requirement.tier:
            case Tier.ADVISED:
                return False
            case Tier.MANDATORY:
                return self.outcome in (Outcome.FAILED, Outcome.NOT_RUN)
            case _:
                return self.outcome is Outcome.FAILED

    @property
    def way(self) -> str:
        """How it ended, in words: a failure of what is merely advised has words of its own."""
        if self.outcome is Outcome.FAILED and not self.counts_against:
            return AGAINST_ADVICE
        return str(self.outcome)


class Report(msgspec.Struct, frozen=True):
    """All results of one agent."""

    target: str
    agent: str
    """What the agent calls itself, with its version."""
    profiles: tuple[str, ...]
    schemas: str
    """Where the schemas came from; empty if there were none."""
    holdfast: str
    results: tuple[Result, ...]
    name: str = ""
    """What whoever checked calls the agent."""
    date: str = ""
    """The day of the check, as ``2026-11-16``."""

    @property
    def title(self) -> str:
        """What to call the agent: as whoever checked does, or as it calls itself, or by its command."""
        return self.name or self.agent or self.target

    @property
    def conformant(self) -> bool:
        """Whether everything mandatory was tested and passed, and everything that is advertised works."""
        rows = [row for row in self.results if row.requirement.tier in (Tier.MANDATORY, Tier.ADVERTISED)]
        untested = (Outcome.NOT_TESTED, Outcome.NOT_RUN)
        left = any(row.requirement.tier is Tier.MANDATORY and row.outcome in untested for row in rows)
        return bool(rows) and not left and not any(row.counts_against for row in rows)

    @property
    def keeps_promises(self) -> bool:
        """Whether some promise was seen kept, and none broken."""
        outcomes = {result.outcome for result in self.results if result.requirement.tier is Tier.PROMISE}
        return Outcome.PASSED in outcomes and Outcome.FAILED not in outcomes

    def count(self, outcome: Outcome) -> int:
        """Return how many ended this way."""
        return sum(result.outcome is outcome for result in self.results)

    @property
    def score(self) -> tuple[int, int]:
        """How many passed, of those that count: what is not advertised does not, what was not tested does."""
        rows = [row for row in self.results if row.outcome is not Outcome.NOT_ADVERTISED]
        return sum(row.outcome is Outcome.PASSED for row in rows), len(rows)

    @property
    def was_stopped(self) -> bool:
        """Whether the run was stopped before everything was tried."""
        return any(result.outcome is Outcome.NOT_RUN for result in self.results)

    def ways(self) -> dict[str, int]:
        """Return how many ended in each way: passed and failed always, others if there are any."""
        counted = {str(way): sum(row.way == way for row in self.results) for way in WAYS}
        return {way: number for way, number in counted.items() if number or way in (Outcome.PASSED, Outcome.FAILED)}

    @property
    def counts(self) -> str:
        """How many ended in each way, in words."""
        return ", ".join(f"{number} {way}" for way, number in self.ways().items())

    def lacking(self) -> list[Result]:
        """Return what was not tested because something that it needs did not pass."""
        return [result for result in self.results if result.lacks]

    def roots(self) -> list[str]:
        """Return what others lack and what lacks nothing itself, as names of requirements."""
        lacking = {result.id for result in self.lacking()}
        return sorted({result.lacks for result in self.lacking()} - lacking)

    def need_prompts(self) -> list[Result]:
        """Return what was not tested because no prompt made the agent do it, and what needs that."""
        rows = {row.key: row for row in self.results}

        def reason(row: Result) -> str:
            root = rows.get(f"v{row.version}/{row.lacks}") if row.lacks else None
            if root is None:
                return row.seen
            return "" if root.outcome is Outcome.FAILED else reason(root)

        return [row for row in self.results if row.outcome is Outcome.NOT_TESTED and _PROMPT.search(reason(row))]

    def wanted_prompts(self) -> list[str]:
        """Return the options that would make the agent do what was not seen, as ``--prompt-tool``."""
        told = " ".join(result.seen for result in self.results if result.outcome is Outcome.NOT_TESTED)
        return sorted(set(_PROMPT.findall(told)))

    def failures(self) -> list[Result]:
        """Return what counts against the agent."""
        return [result for result in self.results if result.counts_against]


def to_json(report: Report) -> bytes:
    """Return a report as JSON, with the texts of the requirements in it."""
    value: dict[str, Any] = msgspec.to_builtins(report)
    value["conformant"] = report.conformant
    value["keepsPromises"] = report.keeps_promises
    value["failures"] = len(report.failures())
    value["needPrompts"] = report.wanted_prompts()
    for row, result in zip(value["results"], report.results, strict=True):
        rule = result.requirement
        row |= {"profile": rule.profile, "tier": str(rule.tier), "text": rule.text, "source": rule.source}
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def from_json(data: bytes) -> Report:
    """Read a report again. Results of requirements that no longer exist are left out.

    Raises `UsageError` for what is no report.
    """
    try:
        report = msgspec.json.decode(data, type=Report)
    except msgspec.MsgspecError as e:
        raise UsageError(f"this is no report that --json wrote ({e})") from None
    return msgspec.structs.replace(report, results=tuple(row for row in report.results if row.id in BY_ID))


# For CI: a list of what is known to fail


class Baseline(msgspec.Struct, frozen=True):
    """What is known to fail, by `Result.key`."""

    known: frozenset[str]

    def compare(self, results: Iterable[Result]) -> BaselineDifference:
        """Return what fails and is not known, and what is known and does not fail. What was not tested is neither."""
        rows: Sequence[Result] = list(results)
        failing = {row.key for row in rows if row.counts_against}
        checked = {row.key for row in rows if row.outcome not in (Outcome.NOT_TESTED, Outcome.NOT_RUN)}
        return BaselineDifference(sorted(failing - self.known), sorted((self.known & checked) - failing))


class BaselineDifference(msgspec.Struct, frozen=True):
    """What differs from a baseline."""

    new: list[str]
    """Failures that it does not name."""
    stale: list[str]
    """What it names and what passes now: take the line out."""


def read_baseline(data: bytes) -> Baseline:
    """Read a baseline: TOML with ``known = ["v1/load-ids", …]``, or a table with reasons, ``[known]``.

    Raises `UsageError` for what is no baseline, and for lines that name no requirement: they would stay for ever.
    """
    try:
        known = msgspec.convert(msgspec.toml.decode(data), type=_BaselineFile).known
    except (msgspec.MsgspecError, UnicodeDecodeError) as e:
        raise UsageError(f"this is no baseline ({e}): `holdfast check --write-baseline` makes one") from None
    keys = {f"v{version}/{rule.id}" for rule in BY_ID.values() for version in rule.versions}
    if strange := sorted(set(known) - keys):
        raise UsageError(f"the baseline names {strange[0]!r}, which is no requirement; `holdfast check --list` has all")
    return Baseline(frozenset(known))


class _BaselineFile(msgspec.Struct):
    known: list[str] | dict[str, str] = []


def baseline_of(report: Report) -> str:
    """Return a baseline that names every failure of a report, with what was seen as a reason."""
    lines = ["# What is known to fail. A line that no longer does fails the check: take it out.", "[known]"]
    for row in report.failures():
        reason = "".join(c if c.isprintable() and c not in '"\\' else " " for c in row.seen or row.expected)[:120]
        lines.append(f'"{row.key}" = "{reason}"')
    return "\n".join(lines) + "\n"
