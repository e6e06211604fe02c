"""`Trial`: what a script is given. It starts agents in a directory of its own and opens sessions in them.

Every wire it has opened is closed when the trial is over, and kept for the report.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Self, TypeVar, cast

from holdfast.client.dialect import dialect_for
from holdfast.errors import UsageError
from holdfast_app.check.outcomes import AgentGone, CheckFailed, NotAdvertised, NotTested, Refused
from holdfast_app.check.session import Session
from holdfast_app.check.wire import Wire, members, objects

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from holdfast.client.dialect import Dialect
    from holdfast_app.check.settings import CheckSettings, Prompts
    from holdfast_app.check.target import Target
    from holdfast_app.check.wire import Answerer, Json

T = TypeVar("T")
SAID_CHARACTERS = 120
CLIENT = {"name": "holdfast-check", "version": "1"}


class Connected:
    """A started agent that has answered `initialize`."""

    def __init__(self, trial: Trial, wire: Wire, dialect: Dialect, answer: dict[str, Json]) -> None:
        self.trial = trial
        self.wire = wire
        self.dialect = dialect
        self.answer = answer

    def can(self, what: str) -> bool:
        """Return whether the agent advertises an ability."""
        return self.dialect.agent.can(what)

    def need(self, what: str) -> None:
        """Raise `NotAdvertised` where the agent does not advertise an ability."""
        if not self.can(what):
            raise NotAdvertised(f"the agent does not advertise {what}")

    async def heard(self, comes: Callable[[], bool] = lambda: True) -> None:
        """Wait until the agent must have read all that was sent, and a little longer for an answer that `comes`.

        It is asked something more: whoever answers that has read what came before. Raises `CheckFailed` if the
        connection is gone, `NoAnswer` if the agent is silent.
        """
        try:
            await self.wire.result(self.wire.begin("holdfast/still_there", {}), "the next request")
        except Refused:
            pass
        except AgentGone as e:
            raise CheckFailed("a connection that lives on", str(e)) from None
        frames = self.wire.frames
        while not comes() and not self.wire.ended:
            before = len(frames)
            if not await self.wire.until(lambda now=before: comes() or len(frames) > now, self.trial.quiet):
                return

    async def new(self, cwd: str | None = None, servers: Sequence[dict[str, Json]] = ()) -> Session:
        """Create a session, and set in it the options that whoever checks wants set."""
        session = await self._open("new", "", cwd, servers)
        settings = self.trial.settings
        offered = [pair for pair in settings.options_if_offered if session.offers(*pair)]
        for option_id, value in (*settings.options, *offered):
            await session.set_option(option_id, value)
        return session

    async def load(self, session_id: str, cwd: str | None = None) -> Session:
        """Load a session: bring it back with its past."""
        self.need("load")
        return await self._open("load", session_id, cwd, ())

    async def resume(self, session_id: str, cwd: str | None = None) -> Session:
        """Resume a session: bring it back without its past."""
        self.need("resume")
        return await self._open("resume", session_id, cwd, ())

    async def fork(self, session_id: str) -> Session:
        """Fork a session."""
        self.need("fork")
        return await self._open("fork", session_id, None, ())

    async def _open(self, how: str, session_id: str, cwd: str | None, servers: Sequence[dict[str, Json]]) -> Session:
        roots: dict[str, Json] = {"cwd": cwd or self.trial.cwd, "mcpServers": list(servers)}
        agent = self.dialect.agent
        asked = agent.new(roots) if how == "new" else getattr(agent, how)(session_id, roots)
        answer = await self.wire.request(*cast("tuple[str, dict[str, Json]]", asked))
        if how in ("new", "fork"):
            session_id = _named(answer, asked[0])
        return Session(self.wire, self.dialect, session_id, roots, answer)

    async def listed(self, **params: Json) -> list[dict[str, Json]]:
        """Return all sessions the agent lists, page by page; raise `CheckFailed` where the pages do not end."""
        self.need("list")
        found: list[dict[str, Json]] = []
        for _ in range(1_000):
            page = members(await self.wire.request("session/list", params))
            found += objects(page.get("sessions"))
            if page.get("nextCursor") is None:
                return found
            params = {**params, "cursor": page["nextCursor"]}
        raise CheckFailed("a last page", "more than 1,000 pages")


class _Abandoned(Exception):
    """Who played a story was stopped."""


class _Story(NamedTuple):
    shown: asyncio.Future[object]
    wires: list[Wire]
    """Those it is played on."""


class Stories:
    """Conversations that several scripts of one run look at, by name. Each is played once."""

    def __init__(self) -> None:
        self._begun: dict[str, _Story] = {}

    def find(self, name: str) -> _Story | None:
        """Return a story that somebody plays or has played."""
        return self._begun.get(name)

    async def play(self, name: str, play: Callable[[], Awaitable[T]], wires: list[Wire]) -> T:
        """Play a story: return or raise what it shows, here and for all who wait for it."""
        shown: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._begun[name] = _Story(shown, wires)
        try:
            value = await play()
        except Exception as e:
            shown.set_exception(e)
            raise
        except asyncio.CancelledError:
            del self._begun[name]
            shown.set_exception(_Abandoned())
            raise
        else:
            shown.set_result(value)
            return value
        finally:
            shown.exception()  # it may be that nobody else asks


class Trial:
    """One script's agents, sessions and directory."""

    def __init__(self, target: Target, settings: CheckSettings, version: int, stories: Stories | None = None) -> None:
        self.target = target
        self.settings = settings
        self.version = version
        self.wires: list[Wire] = []
        """Those that it has opened, and closes."""
        self.seen: list[Wire] = []
        """Those of stories that were played for another script."""
        self._stories = Stories() if stories is None else stories
        self._closing = ExitStack()
        own = self._closing.enter_context(tempfile.TemporaryDirectory(prefix="check-"))
        self.directory: str = str(Path(own).resolve())
        """A directory of its own, empty."""
        self.cwd: str = settings.cwd or self.directory
        """The directory of sessions: its own, unless whoever checks wants another one."""

    @property
    def prompts(self) -> Prompts:
        """What to say to the agent."""
        return self.settings.prompts

    @property
    def quiet(self) -> float:
        """What did not come within so many seconds does not come."""
        return self.settings.quiet

    def files(self) -> list[str]:
        """Return the names of the files in its directory; none where that is another one, which may be far away."""
        return sorted(path.name for path in Path(self.directory).iterdir())

    async def start(self, answerers: Mapping[str, Answerer] | None = None) -> Wire:
        """Start a fresh agent, without a word; raise `UsageError` if it cannot be started in time."""
        deadline = self.settings.deadline
        try:
            async with asyncio.timeout(deadline):
                link = await self.target.start(self.directory)
        except TimeoutError:
            reason = f"{self.target.name} cannot be reached: nothing came within {deadline:g} s (see --deadline)"
            raise UsageError(reason) from None
        wire = Wire(link, deadline, answerers)
        self.wires.append(wire)
        return wire

    async def connect(
        self, answerers: Mapping[str, Answerer] | None = None, *, offers: Sequence[str] = ()
    ) -> Connected:
        """Start a fresh agent and say hello; `offers` are of ``read``, ``write`` and ``terminal``.

        Raises `NotTested` where the agent does not speak the version of this trial.
        """
        wire = await self.start(answerers)
        answer = await wire.request("initialize", initialize_params(self.version, offers))
        greeting = members(answer)
        if greeting.get("protocolVersion") != self.version:
            raise NotTested(f"the agent does not speak version {self.version}")
        return Connected(self, wire, dialect_for(self.version, greeting), greeting)

    async def once(self, name: str, play: Callable[[], Awaitable[T]]) -> T:
        """Play a story, unless another script of this run has: return what it showed, or raise what it raised.

        So what several scripts look at is played once. Only for what is looked at: the agents in it may be gone.
        """
        while (story := self._stories.find(name)) is not None:
            with suppress(_Abandoned):
                self.seen = story.wires
                return cast("T", await asyncio.shield(story.shown))
        return await self._stories.play(name, play, self.wires)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for wire in self.wires:
            await wire.dispose()
        self._closing.close()


def initialize_params(version: int, offers: Sequence[str] = ()) -> dict[str, Json]:
    """Return what a client says first, in a version."""
    if version == 2:
        return {"protocolVersion": 2, "info": CLIENT, "capabilities": {}}
    files = {"readTextFile": "read" in offers, "writeTextFile": "write" in offers}
    capabilities = {"fs": files, "terminal": "terminal" in offers}
    return {"protocolVersion": version, "clientInfo": CLIENT, "clientCapabilities": capabilities}


def fail(expected: str, seen: object) -> NoReturn:
    """End a script: the agent did something else."""
    raise CheckFailed(expected, str(seen)[:500])


def not_done(what: str, option: str, said: str) -> NotTested:
    """Return that the agent did not do what a prompt is for; what it said instead often tells why.

    Args:
        what: what it did not do, as ``used no tool``.
        option: the option that sets the prompt.
        said: what it said instead.

    """
    instead = f" (it said {said.strip()[:SAID_CHARACTERS]!r})" if said.strip() else ""
    return NotTested(f"the agent {what}{instead}; see {option}")


def _named(answer: Json, method: str) -> str:
    match answer:
        case {"sessionId": str(session_id)} if session_id:
            return session_id
        case _:
            raise CheckFailed(f"a sessionId in the answer to {method}", str(answer)[:300])
