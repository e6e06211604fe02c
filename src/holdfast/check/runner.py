"""`run_checks`: every script on fresh agents, one by one or several at once, and never longer than its time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from holdfast.check.checks import CHECKS, OBSERVATIONS
from holdfast.check.outcomes import AgentGone, CheckFailed, NoAnswer, NotAdvertised, NotTested, Refused
from holdfast.check.report import Outcome, Report, Result
from holdfast.check.requirements import BY_ID, required
from holdfast.check.trial import Trial, initialize_params
from holdfast.check.wire import members
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.check.requirements import Requirement
    from holdfast.check.settings import CheckSettings
    from holdfast.check.target import Target
    from holdfast.check.wire import Wire

Progress: TypeAlias = Callable[[Result, int, int], None]
"""Is told each result, which one it is, and how many there are."""

LAST_FRAMES = 12
FRAME_CHARACTERS = 400


async def run_checks(target: Target, settings: CheckSettings, progress: Progress | None = None) -> Report:
    """Check an agent; raise `UsageError` if it cannot even be started."""
    greetings = {version: await _greet(target, settings, version) for version in settings.versions}
    spoken = _spoken(greetings, settings.versions)
    runs = [_Run(target, settings, version, greetings[version]) for version in spoken]
    total = sum(len(run.rows) for run in runs)
    results: list[Result] = []

    def note(result: Result) -> None:
        results.append(result)
        if progress is not None:
            progress(result, len(results), total)

    for run in runs:
        await run.run(note)
    order = {row.id: at for at, row in enumerate(BY_ID.values())}
    results.sort(key=lambda result: (result.version, order[result.id]))
    named = next((greeting.agent for greeting in greetings.values() if greeting.agent), "")
    schemas = settings.schemas.name if settings.schemas is not None else ""
    return Report(
        target.name, named, settings.profiles, schemas, installed_version("holdfast"), tuple(results),
        name=settings.name, date=datetime.now(UTC).date().isoformat(),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Greeting:
    """What an agent answered to `initialize`, asked for a version."""

    version: int | None
    agent: str
    failure: Exception | None = None


async def _greet(target: Target, settings: CheckSettings, version: int) -> _Greeting:
    async with Trial(target, settings, version) as trial:
        try:
            wire = await trial.start()
            answer = await wire.request("initialize", initialize_params(version))
        except UsageError:
            raise
        except Exception as e:  # noqa: BLE001  (whatever it is, the agent does not answer)
            return _Greeting(None, "", e)
    about = members(members(answer).get("info") or members(answer).get("agentInfo"))
    name = " ".join(str(about[key]) for key in ("name", "version") if about.get(key))
    answered = members(answer).get("protocolVersion")
    return _Greeting(answered if isinstance(answered, int) else None, name)


def _spoken(greetings: dict[int, _Greeting], wanted: Sequence[int]) -> list[int]:
    """Return the versions to check: those the agent answers in; the first that was wanted if it answers in none."""
    spoken = [version for version in wanted if greetings[version].version == version]
    return spoken or list(wanted[:1])


class _Run:
    """All checks of one version."""

    def __init__(self, target: Target, settings: CheckSettings, version: int, greeting: _Greeting) -> None:
        self.rows = required(settings.profiles, settings.only, version)
        self._target = target
        self._settings = settings
        self._version = version
        self._greeting = greeting
        self._wires: list[Wire] = []
        self._results: dict[str, Result] = {}

    async def run(self, note: Callable[[Result], None]) -> None:
        waiting = [row for row in self.rows if row.id in CHECKS]
        while waiting:
            ready = [row for row in waiting if all(need not in map(_id, waiting) for need in row.needs)]
            ready = ready[: self._settings.jobs]
            for result in await asyncio.gather(*(self._check(row) for row in ready)):
                self._results[result.id] = result
                note(result)
            waiting = [row for row in waiting if row not in ready]
        for row in self.rows:
            if row.id in OBSERVATIONS:
                note(self._observe(row))

    async def _check(self, row: Requirement) -> Result:
        if (lacking := self._lacking(row)) is not None:
            return lacking
        start = time.monotonic()
        async with Trial(self._target, self._settings, self._version) as trial:
            ended = await self._attempt(row, trial)
            self._wires += trial.wires
            if ended.outcome is Outcome.FAILED and trial.wires:
                ended = _with_evidence(ended, trial.wires)
        seconds = round(time.monotonic() - start, 3)
        return msgspec.structs.replace(ended, seconds=seconds)

    async def _attempt(self, row: Requirement, trial: Trial) -> Result:
        """Run a script; whatever it raises is its result. A script may wait several times, but not for ever."""
        limit = self._settings.deadline * 4
        try:
            async with asyncio.timeout(limit):
                await CHECKS[row.id](trial)
        except Exception as e:  # noqa: BLE001  (an agent can make a script stumble in any way)
            return _result(row, self._version, e, limit)
        return Result(row.id, self._version, Outcome.PASSED)

    def _lacking(self, row: Requirement) -> Result | None:
        """Return how a requirement is to be counted that needs one which did not pass."""
        for need in row.needs:
            result = self._results.get(need)
            if result is None or result.outcome is Outcome.PASSED:
                continue
            if result.outcome is Outcome.NOT_ADVERTISED:
                return Result(row.id, self._version, Outcome.NOT_ADVERTISED, "", result.seen)
            return Result(row.id, self._version, Outcome.NOT_TESTED, "", f"{need} did not pass", lacks=need)
        return None

    def _observe(self, row: Requirement) -> Result:
        if (lacking := self._lacking(row)) is not None:
            return lacking
        try:
            OBSERVATIONS[row.id](self._wires, self._settings, self._version)
        except (CheckFailed, NotTested) as e:
            return _result(row, self._version, e, 0)
        return Result(row.id, self._version, Outcome.PASSED)


def _id(row: Requirement) -> str:
    return row.id


def _result(row: Requirement, version: int, error: Exception, limit: float) -> Result:
    match error:
        case NotAdvertised():
            return Result(row.id, version, Outcome.NOT_ADVERTISED, "", error.reason)
        case NotTested():
            return Result(row.id, version, Outcome.NOT_TESTED, "", error.reason)
        case CheckFailed():
            return Result(row.id, version, Outcome.FAILED, error.expected, error.seen)
        case NoAnswer():
            return Result(row.id, version, Outcome.FAILED, row.text, str(error), late=True)
        case Refused() | AgentGone():
            return Result(row.id, version, Outcome.FAILED, row.text, str(error))
        case TimeoutError():
            return Result(row.id, version, Outcome.FAILED, row.text, f"it took more than {limit:g} s", late=True)
        case _:
            seen = f"the agent said something that makes no sense ({type(error).__name__}: {error})"
            return Result(row.id, version, Outcome.FAILED, row.text, seen)


def _with_evidence(result: Result, wires: Iterable[Wire]) -> Result:
    """Add the last frames and words of the agents."""
    frames: list[str] = []
    stderr = ""
    for number, wire in enumerate(wires, 1):
        if number > 1:
            frames.append(f"— process {number} —")
        for frame in wire.frames[-LAST_FRAMES:]:
            text = frame.line[: FRAME_CHARACTERS * 4].decode(errors="replace")
            cut = text[:FRAME_CHARACTERS] + (" …" if len(text) > FRAME_CHARACTERS else "")
            frames.append(f"{'→' if frame.sent else '←'} {cut}")
        stderr = wire.link.stderr
    return msgspec.structs.replace(result, frames=tuple(frames), stderr=stderr[-2_000:])
