"""Engines for tests: an agent that does what the prompt says, and a watcher that keeps what it is shown.

A prompt is a script, one instruction a line: ``say Hello``, ``call c1 Read``, ``wait gate``… `Performance` has them
all. Imports nothing that is slow to load: programs that are started hundreds of times use it too.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from holdfast.engine import Engine, EngineLimits
from holdfast.format import fold
from holdfast.model import (
    LOCAL,
    AgentDescription,
    Choice,
    ChoiceGroup,
    ClientInfo,
    Option,
    Permission,
    Scope,
    new_id,
    text_event,
)
from holdfast.store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from holdfast.engine import ConnectedClient, LiveSession, LiveTurn, OpenAttachment, Origin, SessionClient
    from holdfast.model import Answer, Event, OptionValue, Question, StopReason, TurnEnd, Update
    from holdfast.store import Hit, Library

StoreT = TypeVar("StoreT", "Path", str)

PATIENCE = 40.0
"""No test waits longer than this for something that ought to happen."""

CWD = "/project"

OPTIONS = (
    Option("units", "Units", "c", (Choice("c", "Celsius"), Choice("f", "Fahrenheit", "For some"))),
    Option("model", "Model", "small", (ChoiceGroup("g", "All", (Choice("small", "S"), Choice("big", "B"))),), "model"),
    Option("loud", "Loud", default=False, description="Shouts"),
)


class ScriptedAgent:
    """An agent port that does what prompts say. `gates` are what a ``wait`` waits for; `told` is what it was told."""

    def __init__(self, options: tuple[Option, ...] = OPTIONS, *, begins_entries: bool = True) -> None:
        self.options = options
        self.commands: list[Update] = []
        self.begins_entries = begins_entries
        self.gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.arrived: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.performed: list[str] = []
        self.told: list[tuple[Any, ...]] = []
        self.aside: list[asyncio.Task[Answer]] = []
        self._news = asyncio.Event()
        self.refuse: set[str] = set()
        """What to fail at: ``opened``, ``closed``, ``option_set``."""

    async def describe(self, client: ConnectedClient) -> AgentDescription:
        return AgentDescription(name="scripted")

    async def log_in(self, method_id: str, client: ConnectedClient) -> None: ...

    async def log_out(self, client: ConnectedClient) -> None: ...

    async def own_sessions(self, client: ConnectedClient, cwd: str | None) -> tuple[()]:
        return ()

    async def adopt(self, own_id: str, client: SessionClient) -> None: ...

    async def deleted(self, principal: str, memory: dict[str, Any]) -> None: ...

    async def open(self, session: LiveSession, client: SessionClient | None, origin: Origin) -> ScriptedSession:
        await self.opened(session)
        return ScriptedSession(self, session)

    async def opened(self, session: LiveSession) -> None:
        self.tell("opened", session.id)

    async def request(self, method: str, params: Any, client: ConnectedClient) -> object:
        return {"method": method, "params": params}

    async def notify(self, method: str, params: Any, client: ConnectedClient) -> None:
        self.tell("notified", method)

    async def perform(self, turn: LiveTurn) -> StopReason | None:
        self.performed.append(turn.text)
        return await Performance(self, turn).run(turn.text)

    async def closed(self, session: LiveSession) -> None:
        self.tell("closed", session.id)

    async def option_set(self, session: LiveSession, option: str, value: OptionValue) -> None:
        self.tell("option_set", option, value)

    def tell(self, what: str, *about: object) -> None:
        self.told.append((what, *about))
        self._news.set()
        if what in self.refuse:
            raise RuntimeError(f"secret: {what}")

    async def heard(self, *told: object) -> None:
        """Wait until the engine has told it something."""
        async with asyncio.timeout(PATIENCE):
            while told not in self.told:
                self._news.clear()
                await self._news.wait()

    async def at(self, gate: str) -> None:
        """Wait until a performance has come to a gate."""
        async with asyncio.timeout(PATIENCE):
            await self.arrived[gate].wait()


class ScriptedSession:
    """One session of a `ScriptedAgent`."""

    def __init__(self, agent: ScriptedAgent, session: LiveSession) -> None:
        self._agent = agent
        self._session = session

    @property
    def options(self) -> tuple[Option, ...]:
        return self._agent.options

    @property
    def commands(self) -> list[Update]:
        return self._agent.commands

    async def attached(self, client: SessionClient) -> None: ...

    async def detached(self, client: SessionClient) -> None: ...

    def notices(self, client: SessionClient) -> list[Update]:
        return []

    async def option_set(self, option: str, value: OptionValue) -> None:
        await self._agent.option_set(self._session, option, value)

    async def admit(self, turn: LiveTurn) -> None: ...

    async def perform(self, turn: LiveTurn) -> StopReason | None:
        return await self._agent.perform(turn)

    async def close(self) -> None:
        await self._agent.closed(self._session)


class Performance:
    """One turn of a `ScriptedAgent`: its public methods, but for `run`, are what a script can say."""

    def __init__(self, agent: ScriptedAgent, turn: LiveTurn) -> None:
        self._agent = agent
        self._turn = turn
        self._message = ("", "")

    async def run(self, script: str) -> StopReason | None:
        reason: StopReason | None = None
        for line in script.splitlines():
            verb, _, rest = line.partition(" ")
            if verb == "stop":
                reason = rest  # pyright: ignore[reportAssignmentType]
            elif verb in VERBS:
                await VERBS[verb](self, rest)
        return reason

    async def say(self, text: str) -> None:
        self._chunk("agent_message_chunk", text)

    async def think(self, text: str) -> None:
        self._chunk("agent_thought_chunk", text)

    async def emit(self, update: str) -> None:
        """Say any update, given as a Python literal."""
        self._emit(eval(update))

    async def call(self, rest: str) -> None:
        key, _, title = rest.partition(" ")
        self._emit({"sessionUpdate": "tool_call_update", "toolCallId": key, "title": title, "status": "in_progress"})

    async def output(self, rest: str) -> None:
        key, _, text = rest.partition(" ")
        block = {"type": "content", "content": {"type": "text", "text": text}}
        self._emit({"sessionUpdate": "tool_call_content_chunk", "toolCallId": key, "content": block})

    async def done(self, key: str) -> None:
        self._emit({"sessionUpdate": "tool_call_update", "toolCallId": key, "status": "completed"})

    async def terminal(self, key: str) -> None:
        self._emit({"sessionUpdate": "terminal_update", "terminalId": key, "command": "ls"})

    async def plan(self, text: str) -> None:
        entries = [{"content": text, "priority": "medium", "status": "pending"}]
        self._emit({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "plan", "entries": entries}})

    async def usage(self, used: str) -> None:
        self._emit({"sessionUpdate": "usage_update", "used": int(used), "size": 100})

    async def tokens(self, rest: str) -> None:
        """Tell how many tokens the turn took: those that went in, those that came out."""
        taken, given = map(int, rest.split())
        self._turn.answer["usage"] = {"totalTokens": taken + given, "inputTokens": taken, "outputTokens": given}

    async def title(self, title: str) -> None:
        self._emit({"sessionUpdate": "session_info_update", "title": title or None})

    async def notice(self, title: str) -> None:
        self._emit({"sessionUpdate": "notice", "severity": "info", "title": title})

    async def unknown(self, text: str) -> None:
        self._emit({"sessionUpdate": "_zed/mood", "mood": text, "_meta": {"a": [1, None]}})

    async def ask(self, subject: str) -> None:
        """Ask for permission and say what became of it: ``yes``, ``no`` or ``none``."""
        question = permission(subject)
        chosen = question.chosen(await self._turn.ask(question))
        allowed = chosen is not None and chosen.kind.startswith("allow")
        if allowed:
            self._agent.told.append(("may", subject))
        self._message = ("", "")
        await self.say("none" if chosen is None else "yes" if allowed else "no")

    async def ask_aside(self, subject: str) -> None:
        """Ask in a task of its own, and go on."""
        self._agent.aside.append(asyncio.ensure_future(self._turn.ask(permission(subject))))

    async def option(self, rest: str) -> None:
        key, _, value = rest.partition(" ")
        await self._turn.session.adjust_option(key, {"on": True, "off": False}.get(value, value))

    async def remember(self, rest: str) -> None:
        """Remember a value, given as a Python expression."""
        key, _, value = rest.partition(" ")
        self._turn.session.state.memory[key] = eval(value)

    async def tick(self, rest: str) -> None:
        for _ in range(int(rest or 1)):
            await asyncio.sleep(0)

    async def wait(self, gate: str) -> None:
        self._agent.arrived[gate].set()
        await self._agent.gates[gate].wait()

    async def swallow(self, gate: str) -> None:
        """Wait; when cancelled, go on as if nothing had happened."""
        try:
            await self.wait(gate)
        except asyncio.CancelledError:
            await self.say("swallowed")

    async def convert(self, gate: str) -> None:
        """Wait; when cancelled, make it another exception."""
        try:
            await self.wait(gate)
        except asyncio.CancelledError:
            raise RuntimeError("secret: converted") from None

    async def ignore(self, gate: str) -> None:
        """Wait, and do not let anybody cancel that."""
        self._agent.arrived[gate].set()
        while not self._agent.gates[gate].is_set():
            try:
                await self._agent.gates[gate].wait()
            except asyncio.CancelledError:
                self._agent.arrived[f"{gate}: ignored"].set()

    async def fail(self, text: str) -> None:
        raise RuntimeError(f"secret: {text}")

    async def give_up(self, _: str) -> None:
        raise asyncio.CancelledError

    def _chunk(self, kind: str, text: str) -> None:
        if self._message[0] != kind:
            self._message = (kind, new_id("msg"))
        self._turn.emit(text_event(*self._message, text))

    def _emit(self, update: Update) -> None:
        self._message = ("", "")
        self._turn.emit_update(update)


VERBS: dict[str, Any] = {
    name: method for name, method in vars(Performance).items() if not name.startswith("_") and name != "run"
}


def permission(subject: str) -> Permission:
    return Permission(f"May I {subject}?", {"toolCallId": new_id("call")}, subject=subject)


class Put:
    """A question that was put to a recorder."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.withdrawn = False

    def answer(self, answer: Answer | Exception) -> None:
        if isinstance(answer, Exception):
            self.answered.set_exception(answer)
        else:
            self.answered.set_result(answer)


class Recorder:
    """A client that keeps what it is shown, asked and told."""

    info = ClientInfo(protocol=2, name="recorder")
    principal = LOCAL
    session_id = ""
    meta = None
    roots = (CWD,)
    mcp_servers = ()
    system_prompt = None
    services: frozenset[str] = frozenset()
    elicitation = frozenset({"form", "url"})
    is_remote = False

    def __init__(self, always: Answer = None) -> None:
        self.past: list[bytes] = []
        self.events: list[Event] = []
        self.puts: list[Put] = []
        self.drops: list[str] = []
        self.backlog = 0
        self.answers = True
        """Whether it can be asked at all."""
        self.broken: BaseException | None = None
        """What waiting for it fails with."""
        self.always = always
        """What to answer every question with; None waits for the test."""
        self._drained = asyncio.Event()
        self._news = asyncio.Event()

    def show(self, events: Sequence[Event]) -> None:
        assert not self.drops, "shown after it was dropped"
        self.events += events
        self._news.set()

    def embed_terminal(self, terminal_id: str, own_id: str) -> None:
        raise AssertionError("it has no terminals")

    async def drain(self) -> None:
        if self.broken is not None:
            raise self.broken
        await self._drained.wait()

    def take(self) -> None:
        """Have read everything."""
        self.backlog = 0
        self._drained.set()

    async def ask(self, question: Question) -> Answer:
        if self.always is not None:
            return self.always
        put = Put(question)
        self.puts.append(put)
        self._news.set()
        try:
            return await put.answered
        except asyncio.CancelledError:
            put.withdrawn = True
            raise

    def can_answer(self, question: Question) -> bool:
        return self.answers

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        raise AssertionError(method)

    def notify(self, method: str, params: Mapping[str, Any]) -> None: ...

    def dropped(self, reason: str) -> None:
        self.drops.append(reason)
        self._news.set()

    def moved(self, attachment: OpenAttachment) -> None:
        raise AssertionError("nobody else has the session")

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait, not for ever, until something was shown, asked or told that satisfies a condition."""
        async with asyncio.timeout(PATIENCE):
            while not happened():
                self._news.clear()
                await self._news.wait()

    async def question(self, count: int = 1) -> Put:
        """Wait for a question: the first one, or a later one."""
        await self.until(lambda: len(self.puts) >= count)
        return self.puts[count - 1]

    def updates(self, kind: str = "") -> list[Update]:
        """What it was shown live."""
        return [it.update() for it in self.events if not kind or it.kind == kind]

    def said(self) -> str:
        """The text it was shown live."""
        return "".join(it.text or "" for it in self.events)

    def states(self) -> list[str]:
        return [it.get("stopReason", it["state"]) for it in self.updates("state_update")]

    def history(self) -> list[Update]:
        """All it knows, past and live, folded."""
        return folded([*self.past, *(it.body for it in self.events)])


def folded(lines: Iterable[bytes]) -> list[Update]:
    return list(fold(lines).updates())


@asynccontextmanager
async def engine_at(
    place: Path | str, agent: ScriptedAgent | None = None, limits: EngineLimits | None = None
) -> AsyncGenerator[Engine]:
    """Open an engine on a store; shut it down afterwards."""
    agent = agent or ScriptedAgent()
    engine = Engine(await open_store(str(place)), agent, limits=limits)
    try:
        yield engine
    finally:
        async with asyncio.timeout(PATIENCE):
            await engine.shut_down()


def block(text: str) -> Update:
    return {"type": "text", "text": text}


def begin(_engine: Engine, session: LiveSession, *script: str) -> LiveTurn:
    """Put a prompt in line."""
    return session.prompt([block("\n".join(script))])


async def run(engine: Engine, session: LiveSession, *script: str) -> TurnEnd:
    """Prompt, and wait for the end of the turn."""
    return await ended(begin(engine, session, *script))


async def ended(turn: LiveTurn) -> TurnEnd:
    async with asyncio.timeout(PATIENCE):
        return await turn.ended


async def watch(engine: Engine, session: LiveSession, recorder: Recorder | None = None) -> Recorder:
    """Let a recorder watch a session: all that was, and all that comes."""
    recorder = recorder or Recorder()
    attachment = await session.attach(recorder)
    async for blocks in attachment.past(engine.store):
        recorder.past += (line for it in blocks for line in it.split(b"\n"))
    attachment.follow()
    return recorder


async def history(engine: Engine, session: LiveSession) -> list[Update]:
    """Load what a session's history is now."""
    attachment = await session.attach(Recorder())
    try:
        blocks = [it async for some in attachment.past(engine.store) for it in some]
    finally:
        session.detach(attachment)
    return folded(line for it in blocks for line in it.split(b"\n"))


async def eventually(holds: Callable[[], object]) -> None:
    """Wait, not for ever, until a condition holds that nobody tells of."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def found(engine: Engine, words: str) -> list[Hit]:
    """What a search for words finds in the engine's store."""
    return await cast("Library", engine.store).search(words, Scope(), cwd=None, limit=20)


def texts(updates: Iterable[Update], kind: str = "agent_message") -> list[str]:
    """The text of every message of a kind."""
    return ["".join(it["text"] for it in each["content"]) for each in updates if each["sessionUpdate"] == kind]


def disk_as_of_now(store: StoreT, to: Path) -> StoreT:
    """Copy a store as it is now: what its process would leave behind if it were killed at this moment."""
    if isinstance(store, str):
        from core.tests.support.postgres import copy_of

        return cast("StoreT", copy_of(store, to.name))
    shutil.copytree(store.parent, to)
    return to / store.name
