"""A client that speaks raw JSON-RPC and keeps what it hears, and a host for it to talk to.

It knows no more of the protocol than a test has to say: what it sends is written out, what it hears is kept in order.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from core.tests.support.links import PATIENCE
from holdfast.agent.port import AuthorAgent
from holdfast.model import LOCAL, History, event_from
from holdfast.peer import PeerLimits
from holdfast.server import ClientConnection, Host
from holdfast.testing.process_tree import descendants
from holdfast.transport import ProcessTransport, memory_pair, spawn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
    from pathlib import Path

    from holdfast import Agent
    from holdfast.engine import EngineLimits
    from holdfast.errors import ConnectionLost
    from holdfast.server.host import ProtocolChoice
    from holdfast.transport import Line, Transport

Update: TypeAlias = dict[str, Any]

CWD = "/project"

QUICK = PeerLimits(linger=0.05, end_grace=0.2, flush=0.05)

ABOUT_THE_SESSION = frozenset(
    {"available_commands_update", "config_option_update", "current_mode_update", "session_info_update", "usage_update"}
)
"""Updates that are no part of the conversation."""


class Refused(Exception):
    """The agent answered with an error."""

    def __init__(self, error: Update) -> None:
        super().__init__(str(error))
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


class Asked:
    """A request of the agent's; `withdrawn` once it was cancelled."""

    def __init__(self, client: Client, message: Update) -> None:
        self.id = message["id"]
        self.method: str = message["method"]
        self.params: Update = message["params"]
        self.withdrawn = False
        self._client = client

    def answer(self, result: object) -> None:
        self._client.say({"jsonrpc": "2.0", "id": self.id, "result": result})

    def refuse(self, code: int) -> None:
        self._client.say({"jsonrpc": "2.0", "id": self.id, "error": {"code": code, "message": "no"}})

    def select(self, option: str) -> None:
        """Answer a permission question."""
        self.answer({"outcome": {"outcome": "selected", "optionId": option}})


class Client:
    """One end of a conversation with an agent."""

    def __init__(self, transport: Transport, version: int = 1, *, patience: float = PATIENCE) -> None:
        self.transport = transport
        self.version = version
        self.patience = patience
        """How many seconds it waits for anything."""
        self.heard: list[Update] = []
        """Every message, in order."""
        self.batches: list[list[Any]] = []
        """Answers to batches."""
        self.asked: list[Asked] = []
        """What the agent asked and nobody in `answers` answers."""
        self.answers: dict[str, Callable[[Update], object]] = {}
        """How to answer requests of the agent's, by method."""
        self.ended = False
        self._answered: dict[object, asyncio.Future[Any]] = {}
        self._next_id = 0
        self._news = asyncio.Event()
        transport.open(self)

    # What it hears

    def lines_received(self, lines: Sequence[Line]) -> None:
        for line in lines:
            assert isinstance(line, bytes)
            message: Any = json.loads(line)
            if line.startswith(b"["):
                self.batches.append(message)
                continue
            self.heard.append(message)
            if "method" not in message:
                self._hear_answer(message)
            elif "id" in message:
                self._hear_request(message)
            elif message["method"] == "$/cancel_request":
                for asked in self.asked:
                    asked.withdrawn |= asked.id == message["params"]["requestId"]
        self._news.set()

    def input_ended(self, reason: ConnectionLost | None) -> None:
        self.ended = True
        self._news.set()

    def _hear_answer(self, message: Update) -> None:
        future = self._answered.get(message["id"])
        if future is None:
            return
        assert not future.done(), f"answered twice: {message}"
        if "error" in message:
            future.set_exception(Refused(message["error"]))
            future.exception()  # not every test waits for it
        else:
            future.set_result(message["result"])

    def _hear_request(self, message: Update) -> None:
        asked = Asked(self, message)
        if asked.method in self.answers:
            asked.answer(self.answers[asked.method](asked.params))
        else:
            self.asked.append(asked)

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait, not for ever, until what was heard satisfies a condition."""
        async with asyncio.timeout(self.patience):
            while not happened():
                self._news.clear()
                await self._news.wait()

    async def question(self, count: int = 1) -> Asked:
        """Wait for a request of the agent's: the first one, or a later one."""
        await self.until(lambda: len(self.asked) >= count)
        return self.asked[count - 1]

    def updates(self, *kinds: str, session: str | None = None) -> list[Update]:
        """The updates it heard so far."""
        return [
            it["params"]["update"]
            for it in self.heard
            if it.get("method") == "session/update"
            and (not kinds or it["params"]["update"]["sessionUpdate"] in kinds)
            and session in (None, it["params"]["sessionId"])
        ]

    def said(self, kind: str = "agent_message") -> str:
        """The text of all messages of a kind it heard, chunks and whole ones."""
        text = ""
        for it in self.updates(kind, f"{kind}_chunk"):
            blocks: list[Update] = it["content"] if it["sessionUpdate"] == kind else [it["content"]]
            text += "".join(block.get("text", "") for block in blocks)
        return text

    def states(self) -> list[str]:
        """What it was told of the session's state; for an end, why."""
        return [it.get("stopReason", it["state"]) for it in self.updates("state_update")]

    def forget(self) -> None:
        """Begin anew: as if nothing had been heard so far."""
        self.heard.clear()

    # What it says

    @property
    def last_id(self) -> int:
        """The number of the last request that was given one here."""
        return self._next_id

    def say(self, message: Update | list[Any] | bytes) -> None:
        self.transport.send(message if isinstance(message, bytes) else json.dumps(message).encode())

    def tell(self, method: str, params: object) -> None:
        self.say({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method: str, params: object = None, id_: object = None) -> asyncio.Future[Any]:
        """Send a request; give what will be its answer."""
        if id_ is None:
            self._next_id += 1
            id_ = self._next_id
        future = self._answered[id_] = asyncio.get_running_loop().create_future()
        self.say({"jsonrpc": "2.0", "id": id_, "method": method, "params": {} if params is None else params})
        return future

    async def ask(self, method: str, params: object = None) -> Any:
        """Send a request and wait for its answer; raise `Refused` if it is an error."""
        return await patiently(self.begin(method, params), self.patience)

    async def refusal(self, method: str, params: object = None) -> Refused:
        """Send a request that must be refused."""
        try:
            result = await self.ask(method, params)
        except Refused as e:
            return e
        raise AssertionError(f"{method} was answered: {result}")

    # What a client usually does

    async def initialize(self, **capabilities: object) -> Update:
        name = "clientCapabilities" if self.version == 1 else "capabilities"
        about = {"clientInfo" if self.version == 1 else "info": {"name": "test", "version": "0"}}
        return await self.ask("initialize", {"protocolVersion": self.version, name: capabilities, **about})

    async def new(self, cwd: str = CWD, **more: object) -> str:
        """Create a session; give its id."""
        return (await self.ask("session/new", {"cwd": cwd, "mcpServers": [], **more}))["sessionId"]

    async def load(self, session: str, cwd: str = CWD, **more: object) -> Any:
        return await self.ask("session/load", {"sessionId": session, "cwd": cwd, "mcpServers": [], **more})

    async def resume(self, session: str, cwd: str = CWD, **more: object) -> Any:
        return await self.ask("session/resume", {"sessionId": session, "cwd": cwd, "mcpServers": [], **more})

    async def replayed(self, session: str) -> list[Update]:
        """Load a session as this version does; give what was replayed before the answer."""
        self.forget()
        if self.version == 1:
            await self.load(session)
        else:
            await self.resume(session, replayFrom={"type": "start"})
        at = next(n for n, it in enumerate(self.heard) if "method" not in it)
        return [it["params"]["update"] for it in self.heard[:at]]

    def begin_prompt(self, session: str, text: str, id_: object = None) -> asyncio.Future[Any]:
        blocks = [{"type": "text", "text": text}]
        return self.begin("session/prompt", {"sessionId": session, "prompt": blocks}, id_)

    async def prompt(self, session: str, text: str) -> str:
        """Prompt, and wait for the end of the turn; give why it ended."""
        answer = await patiently(self.begin_prompt(session, text), self.patience)
        if self.version == 1:
            return answer["stopReason"]
        return await self.end_of_turn(session, answer["messageId"])

    def ends(self, session: str) -> int:
        """How many turns it was told the end of (version 2)."""
        return sum("stopReason" in it for it in self.updates("state_update", session=session))

    def ends_after(self, session: str, message: str) -> list[str]:
        """Why turns ended after a message was said, as far as it was told (version 2)."""
        updates = iter(self.updates("user_message", "state_update", session=session))
        for it in updates:
            if it.get("messageId") == message:
                return [end["stopReason"] for end in updates if "stopReason" in end]
        return []

    async def end_of_turn(self, session: str, message: str) -> str:
        """Wait for the end of the turn that a message began; give why it ended (version 2)."""
        await self.until(lambda: self.ends_after(session, message))
        return self.ends_after(session, message)[0]

    async def settle(self) -> None:
        """Wait until everything sent so far was looked at: ask for something, and wait for the answer."""
        await self.ask("session/list", {})


async def patiently(future: asyncio.Future[Any], patience: float = PATIENCE) -> Any:
    """Wait for an answer, not for ever."""
    async with asyncio.timeout(patience):
        return await future


class Serving:
    """A host, and the clients that are connected to it."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._connections: list[tuple[Client, asyncio.Task[None]]] = []

    def connect(self, version: int = 1, principal: str = LOCAL) -> Client:
        """Connect a client that has said nothing yet."""
        near, far = memory_pair()
        connection = ClientConnection(self.host, near, principal=principal, limits=QUICK)
        serving = asyncio.get_running_loop().create_task(connection.run())
        client = Client(far, version)
        self._connections.append((client, serving))
        return client

    async def client(self, version: int = 1, principal: Any = LOCAL, **capabilities: object) -> Client:
        """Connect a client and let it introduce itself."""
        client = self.connect(version, principal)
        await client.initialize(**capabilities)
        return client

    async def disconnect(self, client: Client) -> None:
        """Let a client leave, and wait until that was noticed."""
        (serving,) = [task for it, task in self._connections if it is client]
        await client.transport.close(0)
        async with asyncio.timeout(PATIENCE):
            await serving

    async def close(self) -> None:
        for client, _ in self._connections:
            await self.disconnect(client)
        async with asyncio.timeout(PATIENCE):
            await self.host.shut_down(0.2)


@asynccontextmanager
async def serving(
    agent: Agent,
    place: Path | str = ":memory:",
    *,
    protocol: ProtocolChoice = "auto",
    limits: EngineLimits | None = None,
    shares: bool = True,
) -> AsyncGenerator[Serving]:
    """Serve an agent on a store, in this process."""
    it = Serving(Host(AuthorAgent(agent), store=str(place), protocol=protocol, limits=limits, shares=shares))
    try:
        yield it
    finally:
        await it.close()


@asynccontextmanager
async def running(
    store: Path,
    *arguments: str,
    version: int = 1,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    **capabilities: object,
) -> AsyncGenerator[Client]:
    """Start `holdfast run …` as an editor does, and introduce ourselves."""
    command = (sys.executable, "-m", "holdfast", "run", *(arguments or ("demo",)), "--store", str(store))
    transport = await spawn(*command, cwd=cwd, env={**os.environ, **(env or {})})
    try:
        client = Client(transport, version)
        await client.initialize(**capabilities)
        yield client
    finally:
        await transport.close(0.1)


def cut_links(host: Serving) -> None:
    """Cut all links to a host, without a word."""
    assert host.host.opened is not None
    neighbours: Any = host.host.opened._registry.neighbours  # pyright: ignore[reportPrivateUsage]
    for link in list(neighbours._accepted):
        link.close()


def agent_of(client: Client) -> int:
    """Return the process of the agent that a client is `running`: guards hold it, and it has no children itself."""
    assert isinstance(client.transport, ProcessTransport)
    (agent,) = [pid for pid in descendants(client.transport.pid) if len(descendants(pid)) == 1]
    return agent


class Gates:
    """Where handlers of a test's agent wait until the test lets them go on."""

    def __init__(self) -> None:
        self._reached: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._opened: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def wait(self, name: str = "") -> None:
        """Say that a handler is here; wait until the test opens."""
        self._reached[name].set()
        await self._opened[name].wait()

    async def reached(self, name: str = "") -> None:
        async with asyncio.timeout(PATIENCE):
            await self._reached[name].wait()

    def open(self, name: str = "") -> None:
        self._opened[name].set()


def conversation(updates: Iterable[Update]) -> list[Update]:
    """Fold updates of either version into the entries of the conversation they tell."""
    history = History()
    for update in updates:
        if update["sessionUpdate"] not in ABOUT_THE_SESSION:
            history.apply(event_from(_lifted(update)))
    return list(history.updates())


def _lifted(update: Update) -> Update:
    if update["sessionUpdate"] == "tool_call":
        return {**update, "sessionUpdate": "tool_call_update"}
    if update["sessionUpdate"] == "plan":
        plan = {"type": "items", "planId": "plan", "entries": update["entries"]}
        return {"sessionUpdate": "plan_update", "plan": plan}
    return update


def text(of: str) -> Update:
    """A content block."""
    return {"type": "text", "text": of}
