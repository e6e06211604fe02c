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

from holdfast.errors import UsageError
from holdfast_app.check.checks import CHECKS, OBSERVATIONS
from holdfast_app.check.familiar import suited
from holdfast_app.check.outcomes import AgentGone, CheckFailed, NoAnswer, NotAdvertised, NotTested, Refused
from holdfast_app.check.report import Outcome, Report, Result
from holdfast_app.check.requirements import BY_ID, required
from holdfast_app.check.trial import Stories, Trial, initialize_params
from holdfast_app.check.wire import members

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence

    from holdfast_app.check.requirements import Requirement
    from holdfast_app.check.settings import CheckSettings
    from holdfast_app.check.target import Target
    from holdfast_app.check.wire import Wire

Progress: TypeAlias = Callable[[Result, int, int], None]
"""Is told each result, which one it is, and how many there are."""

LAST_FRAMES = 12
FRAME_CHARACTERS = 400


async def run_checks(
    target: Target, settings: CheckSettings, progress: Progress | None = None, stop: asyncio.Event | None = None
) -> Report:
    """Check an agent; raise `UsageError` if it cannot even be started.

    Once `stop` is set, what runs is ended, and the report says what was not run. Nothing of the agent is left.
    """
    try:
        return await _run_checks(target, settings, progress, stop)
    finally:
        target.sweep()


async def _run_checks(
    target: Target, settings: CheckSettings, progress: Progress | None, stop: asyncio.Event | None
) -> Report:
    greetings: dict[int, _Greeting] = {}

    async def greet() -> None:
        for version in settings.versions:
            greetings[version] = await _greet(target, settings, version)
            if greetings[version].silence is not None:
                break  # one deadline is enough for a silent agent

    await _until_stopped(greet(), stop)
    spoken = _spoken(greetings, settings.versions)
    told = next((greeting for greeting in greetings.values() if greeting.agent), None)
    chosen = suited(settings, "" if told is None else told.name)
    silence = {version: greeting.silence for version, greeting in greetings.items()}
    runs = [_Run(target, chosen, version, silence.get(version)) for version in spoken]
    total = sum(len(run.rows) for run in runs)
    results: list[Result] = []

    def note(result: Result) -> None:
        results.append(result)
        if progress is not None:
            progress(result, len(results), total)

    for run in runs:
        await _until_stopped(run.run(note), stop)
        for row in run.left():
            note(Result(row.id, run.version, Outcome.NOT_RUN, "", "the run was stopped before"))
    order = {row.id: at for at, row in enumerate(BY_ID.values())}
    results.sort(key=lambda result: (result.version, order[result.id]))
    named = "" if told is None else told.agent
    schemas = settings.schemas.name if settings.schemas is not None else ""
    return Report(
        target.name, named, settings.profiles, schemas, installed_version("holdfast"), tuple(results),
        name=settings.name, date=datetime.now(UTC).date().isoformat(),
    )  # fmt: skip


async def _until_stopped(work: Coroutine[None, None, None], stop: asyncio.Event | None) -> None:
    """Run something until it ends or is told to stop; return when all of it has ended."""
    if stop is None:
        return await work
    if stop.is_set():
        return work.close()
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        working.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)
    return None if working.cancelled() else working.result()


@dataclass(frozen=True, slots=True)
class _Greeting:
    """What an agent answered to `initialize`, asked for a version."""

    version: int | None = None
    name: str = ""
    agent: str = ""
    """Its name and release."""
    silence: Result | None = None
    """The result of `initialize`, if no answer came in time."""


async def _greet(target: Target, settings: CheckSettings, version: int) -> _Greeting:
    async with Trial(target, settings, version) as trial:
        try:
            wire = await trial.start()
            answer = await wire.request("initialize", initialize_params(version))
        except UsageError:
            raise
        except NoAnswer as e:
            silence = _result(BY_ID["initialize"], version, e, 0)
            return _Greeting(silence=_with_evidence(silence, trial.wires))
        except Exception:  # noqa: BLE001  (whatever it is, the check of `initialize` tells it)
            return _Greeting()
    about = members(members(answer).get("info") or members(answer).get("agentInfo"))
    name, release = (str(about[key]) if about.get(key) else "" for key in ("name", "version"))
    answered = members(answer).get("protocolVersion")
    return _Greeting(answered if isinstance(answered, int) else None, name, f"{name} {release}".strip())


def _spoken(greetings: dict[int, _Greeting], wanted: Sequence[int]) -> list[int]:
    """Return the versions to check: those the agent answers in; the first that was wanted if it answers in none."""
    spoken = [version for version, greeting in greetings.items() if greeting.version == version]
    return spoken or list(wanted[:1])


class _Run:
    """All checks of one version."""

    def __init__(self, target: Target, settings: CheckSettings, version: int, silence: Result | None) -> None:
        self.rows = required(settings.profiles, settings.only, version)
        self._target = target
        self._settings = settings
        self.version = version
        self._stories = Stories()
        self._wires: list[Wire] = []
        self._results: dict[str, Result] = {}
        self._silence = silence

    async def run(self, note: Callable[[Result], None]) -> None:
        """Run every script as soon as what it needs is known and one of the jobs is free, then look on."""
        room = asyncio.Semaphore(self._settings.jobs)
        async with asyncio.TaskGroup() as group:
            begun: dict[str, asyncio.Task[None]] = {}
            for row in self.rows:
                if row.id in CHECKS:
                    begun[row.id] = group.create_task(self._in_turn(row, begun, room, note), name=f"check {row.id}")
        for row in self.rows:
            if row.id in OBSERVATIONS:
                self._keep(self._observe(row), note)

    def left(self) -> list[Requirement]:
        """Return what has no result."""
        return [row for row in self.rows if row.id not in self._results]

    async def _in_turn(
        self,
        row: Requirement,
        begun: dict[str, asyncio.Task[None]],
        room: asyncio.Semaphore,
        note: Callable[[Result], None],
    ) -> None:
        if needed := [begun[need] for need in row.needs if need in begun]:
            await asyncio.wait(needed)
        async with room:
            self._keep(await self._check(row), note)

    def _keep(self, result: Result, note: Callable[[Result], None]) -> None:
        self._results[result.id] = result
        note(result)

    async def _check(self, row: Requirement) -> Result:
        if (lacking := self._lacking(row)) is not None:
            return lacking
        if self._silence is not None and row.id == self._silence.id:
            return self._silence
        start = time.monotonic()
        async with Trial(self._target, self._settings, self.version, self._stories) as trial:
            ended = await self._attempt(row, trial)
            self._wires += trial.wires
            if ended.outcome is Outcome.FAILED:
                ended = _with_evidence(ended, [*trial.seen, *trial.wires])
        seconds = round(time.monotonic() - start, 3)
        return msgspec.structs.replace(ended, seconds=seconds)

    async def _attempt(self, row: Requirement, trial: Trial) -> Result:
        """Run a script; whatever it raises is its result. A script may wait several times, but not for ever."""
        limit = self._settings.deadline * 4
        try:
            async with asyncio.timeout(limit):
                await CHECKS[row.id](trial)
        except Exception as e:  # noqa: BLE001  (an agent can make a script stumble in any way)
            return _result(row, self.version, e, limit)
        return Result(row.id, self.version, Outcome.PASSED)

    def _lacking(self, row: Requirement) -> Result | None:
        """Return how a requirement is to be counted that needs one which did not pass."""
        for need in row.needs:
            result = self._results.get(need)
            if result is None or result.outcome is Outcome.PASSED:
                continue
            if result.outcome is Outcome.NOT_ADVERTISED:
                return Result(row.id, self.version, Outcome.NOT_ADVERTISED, "", result.seen)
            return Result(row.id, self.version, Outcome.NOT_TESTED, "", f"{need} did not pass", lacks=need)
        return None

    def _observe(self, row: Requirement) -> Result:
        if (lacking := self._lacking(row)) is not None:
            return lacking
        try:
            OBSERVATIONS[row.id](self._wires, self._settings, self.version)
        except NotTested as e:
            return _result(row, self.version, e, 0)
        except CheckFailed as e:
            failed = _result(row, self.version, e, 0)
            return failed if e.where is None else _with_evidence(failed, [e.where[0]], e.where[1])
        return Result(row.id, self.version, Outcome.PASSED)


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
        case Refused() | AgentGone() | UsageError():
            return Result(row.id, version, Outcome.FAILED, row.text, str(error))
        case TimeoutError():
            return Result(row.id, version, Outcome.FAILED, row.text, f"it took more than {limit:g} s", late=True)
        case _:
            seen = f"the agent said something that makes no sense ({type(error).__name__}: {error})"
            return Result(row.id, version, Outcome.FAILED, row.text, seen)


def _with_evidence(result: Result, wires: Iterable[Wire], end: int | None = None) -> Result:
    """Add the last frames and words of the agents; of the frames, those before `end`."""
    frames: list[str] = []
    stderr = ""
    for number, wire in enumerate(wires, 1):
        if number > 1:
            frames.append(f"— process {number} —")
        for frame in wire.frames[:end][-LAST_FRAMES:]:
            text = frame.line[: FRAME_CHARACTERS * 4].decode(errors="replace")
            cut = text[:FRAME_CHARACTERS] + (" …" if len(text) > FRAME_CHARACTERS else "")
            frames.append(f"{'→' if frame.sent else '←'} {cut}")
        stderr = wire.link.stderr
    return msgspec.structs.replace(result, frames=tuple(frames), stderr=stderr[-2_000:])
