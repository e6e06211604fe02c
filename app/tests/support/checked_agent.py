"""An agent that keeps every requirement of `holdfast check`, and a family of agents each of which breaks one.

A broken agent is the good one behind a `Filter` that changes what passes: `BREAKS` has one for each requirement. The
filter works on messages, so the same family runs in this process (quickly) and as a program (for kills and exits).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import Agent
from holdfast.agent.port import AuthorAgent
from holdfast.errors import RemoteError
from holdfast.server import ClientConnection, Host
from holdfast.transport import memory_pair
from holdfast_app.check.wire import members

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast import Turn
    from holdfast_app.check.target import Link
    from holdfast_app.wrap import ProxyPort

BROKEN_AGENT = Path(__file__).parents[1] / "programs" / "broken_agent.py"
"""Runs one of the family as a program."""

Message = dict[str, Any]

NO_SESSION = "holdfast-check-no-such-session"


def good_agent() -> Agent:
    """Make the good agent: it echoes, uses a tool, asks, and talks for long."""
    agent = Agent("checked", version="1")
    agent.modes({"calm": "Calm", "wild": "Wild"}, default="calm")
    agent.option("tone", name="Tone", values={"plain": "Plain", "loud": "Loud"}, default="plain")

    @agent.prompt
    async def echo(turn: Turn) -> None:
        for at in range(0, len(turn.text), 4):
            await turn.say(turn.text[at : at + 4])

    @agent.command("tool", "Use a tool, through the client's files where it offers them")
    async def tool(turn: Turn) -> None:
        path = str(Path(turn.session.cwd) / "notes.txt")
        async with turn.tool("Read notes", kind="read", locations=[path]) as call:
            if turn.client is not None and "read" in turn.client.offers:
                try:
                    await call.text(await turn.client.read_text(path))
                except RemoteError as e:
                    await call.fail(e.message)
        await turn.say("I looked.")

    @agent.command("think", "Think, then answer")
    async def think(turn: Turn) -> None:
        await turn.think("Let me think.")
        await turn.say("I thought.")

    @agent.command("ask", "Ask for permission")
    async def ask(turn: Turn) -> None:
        async with turn.tool("Launch", kind="execute") as call:
            if not await turn.allow("May I launch?", call):
                await call.fail("not allowed")
        await turn.say("That was that.")

    @agent.command("long", "Talk for long")
    async def long(turn: Turn) -> None:
        for number in range(5_000):
            await turn.say(f"{number} ")
            await asyncio.sleep(0.005)

    return agent


class Filter:
    """Stands between a client and the good agent, and changes what passes; `memory` outlives processes."""

    def __init__(self, fault: str, memory: Path) -> None:
        self.fault = fault
        self.methods: dict[str, str] = {}
        """By the id of a request of the client, its method."""
        self.params: dict[str, Message] = {}
        self.version = 1
        self.running: set[str] = set()
        """The sessions in which a turn runs."""
        self.loading: set[str] = set()
        """The sessions that are being loaded."""
        self.notes: dict[str, Any] = {}
        """What a break remembers in this process."""
        self._memory = memory
        self.to_agent: Callable[[bytes], None] = lambda _line: None
        self.to_client: Callable[[bytes], None] = lambda _line: None

    def remember(self, session: str, state: str) -> None:
        """Keep the state of a session for later processes too."""
        self._memory.mkdir(exist_ok=True)
        (self._memory / session).write_text(state)

    def remembered(self, session: str) -> str | None:
        """Return the state of a session: running, ended, or None if it never got a prompt."""
        path = self._memory / session
        return path.read_text() if path.exists() else None

    def reply(self, message: Message, result: Any) -> list[Message]:
        """Answer a request of the client without asking the agent."""
        self.tell({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return []

    def refuse(self, message: Message, code: int = -32603) -> list[Message]:
        """Refuse a request of the client without asking the agent."""
        self.tell({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": "no"}})
        return []

    def tell(self, message: Message) -> None:
        """Send the client something."""
        self.to_client(json.dumps(message).encode())

    # What passes

    def take_line(self, line: bytes) -> None:
        """Take a line of the client."""
        from app.tests.support.broken_agents import BREAKS, NOT_BROKEN

        broken = BREAKS.get(self.fault, NOT_BROKEN)
        if broken.line is not None and broken.line(self, line):
            return
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            self.to_agent(line)
            return
        message = members(value)
        if isinstance(message.get("method"), str):
            self._note_request(message)
            if self.fault == f"hang:{message['method']}":
                return
            if self.fault == f"cannot set:{members(message.get('params')).get('configId')}":
                self.refuse(message)
                return
        if broken.takes is None:
            self.to_agent(line)
            return
        for passed in broken.takes(self, message):
            self.to_agent(json.dumps(passed).encode())

    def give_line(self, line: bytes) -> None:
        """Take a line of the agent."""
        from app.tests.support.broken_agents import BREAKS, NOT_BROKEN

        broken = BREAKS.get(self.fault, NOT_BROKEN)
        value: Any = json.loads(line)
        if isinstance(value, list) or broken.gives is None:
            self.to_client(line)
        else:
            for message in broken.gives(self, members(value)):
                self.to_client(json.dumps(message).encode())
        self._note_answer(members(value))

    def _note_request(self, message: Message) -> None:
        method, params = message["method"], members(message.get("params"))
        session = str(params.get("sessionId"))
        if "id" in message:
            self.methods[json.dumps(message["id"])] = method
            self.params[json.dumps(message["id"])] = params
        if method == "initialize":
            self.version = 2 if params.get("protocolVersion") == 2 else 1
        elif method == "session/prompt":
            self.running.add(session)
            self.remember(session, "running")
        elif method == "session/load" or (method == "session/resume" and "replayFrom" in params):
            self.loading.add(session)

    def _note_answer(self, message: Message) -> None:
        key = json.dumps(message.get("id"))
        method, params = self.methods.get(key), self.params.get(key, {})
        session = str(params.get("sessionId"))
        if "method" in message:
            update = self.update(message)
            if update.get("state") == "idle" and "stopReason" in update:
                self._ended(str(members(message.get("params")).get("sessionId")))
        elif method == "session/prompt" and (self.version == 1 or "error" in message):
            self._ended(session)
        elif method in ("session/load", "session/resume"):
            self.loading.discard(session)

    def _ended(self, session: str) -> None:
        self.running.discard(session)
        self.remember(session, "ended")

    # For breaks

    def method_of(self, message: Message) -> str | None:
        """Return the method that a response of the agent answers."""
        return None if "method" in message else self.methods.get(json.dumps(message.get("id")))

    def asked(self, message: Message) -> Message:
        """Return the params of the request that a response of the agent answers."""
        return self.params.get(json.dumps(message.get("id")), {})

    def update(self, message: Message) -> Message:
        """Return the update in a notification; nothing where it is none."""
        return (
            members(members(message.get("params")).get("update")) if message.get("method") == "session/update" else {}
        )

    def session_of(self, message: Message) -> str:
        """Return the session that a message is about."""
        return str(members(message.get("params")).get("sessionId"))


class InProcess:
    """An agent as a target in this process. It cannot be killed, so what needs that is not tested."""

    def __init__(self, fault: str, folder: Path, make: Callable[[], Agent | ProxyPort] = good_agent) -> None:
        self.name = f"an agent with the fault {fault!r}"
        self._fault = fault
        self._folder = folder
        self._make = make

    async def start(self, cwd: str) -> Link:
        return _MemoryLink(self._make(), self._fault, self._folder)

    def sweep(self) -> None:
        """It has started no process."""


class _MemoryLink:
    is_process = False
    stderr = ""
    children: frozenset[int] = frozenset()

    def __init__(self, agent: Agent | ProxyPort, fault: str, folder: Path) -> None:
        self._agent = agent
        port = AuthorAgent(agent) if isinstance(agent, Agent) else agent
        self._filter = Filter(fault, folder / "memory")
        self._ours, theirs = memory_pair()
        self._host = Host(port, store=str(folder / "sessions.db"))
        connection = ClientConnection(self._host, theirs, is_only=True)
        self._serving = asyncio.get_running_loop().create_task(connection.run(), name="checked agent")
        self._on_end: Callable[[], None] = lambda: None
        self._closed = False

    def open(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._filter.to_client = on_line
        self._filter.to_agent = self._ours.send
        self._on_end = on_end
        self._ours.open(self)

    def lines_received(self, lines: Any) -> None:
        for line in lines:
            if isinstance(line, bytes):
                self._filter.give_line(line)

    def input_ended(self, reason: object) -> None:
        self._on_end()

    def send(self, data: bytes) -> None:
        for line in data.removesuffix(b"\n").split(b"\n"):
            self._filter.take_line(line)

    async def kill(self, *, alone: bool = False) -> None:
        raise AssertionError("an agent in this process cannot be killed")

    async def close(self, patience: float) -> int | None:
        if not self._closed:
            self._closed = True
            await self._ours.close(1.0)
            await self._serving
            await self._host.shut_down(1.0)
            if not isinstance(self._agent, Agent):
                await self._agent.close()
        return 0

    async def dispose(self) -> None:
        await self.close(1.0)
