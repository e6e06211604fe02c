"""An agent that is a script of events, behind a port of its own, in both versions of the protocol.

It is neither an `Agent` nor a wrapped process, and is written from docs/architecture.md alone: what holds here holds
for any port that a stranger writes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.errors import InvalidParams, MethodNotFound
from holdfast.model import AgentDescription, Choice, Option
from holdfast.server import ClientConnection, Host
from holdfast.transport import memory_pair

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from pathlib import Path

    from holdfast.engine import ConnectedClient, LiveSession, LiveTurn, Origin, SessionClient
    from holdfast.errors import ConnectionLost
    from holdfast.model import ClientInfo, OptionValue, Update
    from holdfast.transport import Line, Transport

PATIENCE = 30.0
TONE = Option("tone", "Tone", "plain", (Choice("plain", "Plain"), Choice("loud", "Loud"), Choice("rude", "Rude")))
BRIEF = Option("brief", "Brief", default=False, description="Say less")
DIG: Update = {"type": "command", "name": "dig", "description": "Dig a hole"}
FILL: Update = {"type": "command", "name": "fill", "description": "Fill it again"}


def said(message_id: str, text: str) -> Update:
    """Return a piece of an agent's message."""
    content = {"type": "text", "text": text}
    return {"sessionUpdate": "agent_message_chunk", "messageId": message_id, "content": content}


def dug(call_id: str, status: str) -> Update:
    """Return what is known of a tool call."""
    update = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "title": "Dig", "kind": "execute"}
    return update | {"status": status, "content": [{"type": "content", "content": {"type": "text", "text": "A hole"}}]}


SCRIPT: dict[str, tuple[Update, ...]] = {
    "dig": (said("m1", "I "), said("m1", "dig"), dug("t1", "in_progress"), dug("t1", "completed"), said("m2", "Done")),
    "again": (said("m3", "No"),),
}


class ScriptPort:
    """An agent that answers each prompt with the events its script has for it."""

    begins_entries = True

    def __init__(self, script: Mapping[str, Sequence[Update]] = SCRIPT) -> None:
        self.script = script
        self.clients: list[ClientInfo] = []
        self.sessions: dict[str, ScriptSession] = {}
        self.notified: list[tuple[str, Any]] = []

    async def describe(self, client: ConnectedClient) -> AgentDescription:
        self.clients.append(client.info)
        accepts = frozenset({"image"})
        return AgentDescription(name="script", version="3", title="A script", accepts=accepts, meta={"x/acts": 2})

    async def log_in(self, method_id: str, client: ConnectedClient) -> None:
        raise InvalidParams(f"There is no login {method_id}")

    async def log_out(self, client: ConnectedClient) -> None:
        """Nobody is ever logged in."""

    async def open(self, session: LiveSession, client: SessionClient | None, origin: Origin) -> ScriptSession:
        assert client is not None
        opened = self.sessions[session.id] = ScriptSession(self, session, origin)
        return opened

    async def own_sessions(self, client: ConnectedClient, cwd: str | None) -> tuple[()]:
        return ()

    async def adopt(self, own_id: str, client: SessionClient) -> None:
        """It has no sessions but ours."""

    async def deleted(self, principal: str, memory: dict[str, Any]) -> None:
        """It keeps nothing of them."""

    async def request(self, method: str, params: Any, client: ConnectedClient) -> object:
        if method == "_x/echo":
            return {"to": client.info.name, "params": params}
        raise MethodNotFound(method)

    async def notify(self, method: str, params: Any, client: ConnectedClient) -> None:
        self.notified.append((method, params))


class ScriptSession:
    """One session of the script."""

    def __init__(self, port: ScriptPort, session: LiveSession, origin: Origin) -> None:
        self.port = port
        self.session = session
        self.options: tuple[Option, ...] = (TONE, BRIEF)
        self.commands: list[Update] = [DIG]
        self.settings: list[tuple[str, OptionValue]] = []
        self.life: list[str] = [origin]

    async def attached(self, client: SessionClient) -> None:
        self.life.append("attached")

    async def detached(self, client: SessionClient) -> None:
        self.life.append("detached")

    def notices(self, client: SessionClient) -> list[Update]:
        return []

    async def option_set(self, option: str, value: OptionValue) -> None:
        self.settings.append((option, value))
        if value == "rude":
            raise InvalidParams("This script is polite")

    async def admit(self, turn: LiveTurn) -> None:
        """It answers whatever it is asked."""

    async def perform(self, turn: LiveTurn) -> None:
        for update in self.port.script[turn.text]:
            turn.emit_update(update)

    async def close(self) -> None:
        self.life.append("closed")


class Client:
    """A client that is nothing but JSON-RPC: it has asked for one version, and remembers every update."""

    def __init__(self, version: int, transport: Transport) -> None:
        self.version = version
        self.updates: list[Update] = []
        self._transport = transport
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._arrived = asyncio.Event()
        transport.open(self)

    def lines_received(self, lines: Sequence[Line]) -> None:
        for line in lines:
            assert isinstance(line, bytes)
            message = json.loads(line)
            if "method" not in message:
                self._answers.pop(message["id"]).set_result(message)
            elif message["method"] == "session/update":
                self.updates.append(message["params"]["update"])
        self._arrived.set()

    def input_ended(self, reason: ConnectionLost | None) -> None:
        """Nothing waits for it here."""

    def notify(self, method: str, **params: Any) -> None:
        self._send({"method": method, "params": params})

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the whole response."""
        request_id = next(self._ids)
        answer = self._answers[request_id] = asyncio.get_running_loop().create_future()
        self._send({"id": request_id, "method": method, "params": params})
        return await asyncio.wait_for(answer, PATIENCE)

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return what it resulted in."""
        answer = await self.ask(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    async def update(self, wanted: Callable[[Update], bool], *, after: int = 0) -> Update:
        """Wait for the first update that is wanted."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found = next(filter(wanted, self.updates[after:]), None)
                if found is not None:
                    return found
                self._arrived.clear()
                await self._arrived.wait()

    def _send(self, message: dict[str, Any]) -> None:
        self._transport.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def initialize(self) -> dict[str, Any]:
        about = {"name": "reader", "version": "1"}
        if self.version == 1:
            able: dict[str, Any] = {"session": {"configOptions": {"boolean": {}}}}
            return await self.result("initialize", protocolVersion=1, clientInfo=about, clientCapabilities=able)
        return await self.result("initialize", protocolVersion=2, info=about, capabilities={})

    async def new_session(self, cwd: Path) -> dict[str, Any]:
        return await self.result("session/new", cwd=str(cwd), mcpServers=[])

    async def reopen(self, session_id: str, cwd: Path) -> tuple[list[Update], dict[str, Any]]:
        """Open a session with its past; return what was replayed before the answer, and the answer."""
        before = len(self.updates)
        params: dict[str, Any] = {"sessionId": session_id, "cwd": str(cwd), "mcpServers": []}
        if self.version == 1:
            answer = await self.result("session/load", **params)
        else:
            answer = await self.result("session/resume", **params, replayFrom={"type": "start"})
        return self.updates[before:], answer

    async def prompt(self, session_id: str, text: str) -> str:
        """Prompt, wait for the end of the turn, and return its stop reason."""
        before = len(self.updates)
        answer = await self.result("session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": text}])
        if self.version == 1:
            return answer["stopReason"]
        return (await self.update(lambda update: update.get("state") == "idle", after=before))["stopReason"]

    async def set_option(self, session_id: str, option: str, value: OptionValue) -> dict[str, Any]:
        kind = "boolean" if isinstance(value, bool) else "id"
        params = {"sessionId": session_id, "configId": option, "type": kind, "value": value}
        return await self.ask("session/set_config_option", **params)

    def values(self, options: list[dict[str, Any]]) -> dict[str, OptionValue]:
        """Return the current values in a list of options."""
        key = "id" if self.version == 1 else "configId"
        return {option[key]: option["currentValue"] for option in options}

    def announced_values(self) -> list[dict[str, OptionValue]]:
        """Return the values of every list of options that was announced."""
        return [self.values(update["configOptions"]) for update in self.updates if is_options(update)]


def is_options(update: Update) -> bool:
    return update["sessionUpdate"] == "config_option_update"


def is_commands(update: Update) -> bool:
    return update["sessionUpdate"] == "available_commands_update"


def says(text: str) -> Callable[[Update], bool]:
    """Return whether an update is a message or a piece of one with this text."""
    return lambda update: conversation([update]) == [("agent", text)]


def command_names(update: Mapping[str, Any]) -> list[str]:
    return [command["name"] for command in update["availableCommands"]]


def conversation(updates: Sequence[Update]) -> list[tuple[str, str]]:
    """Return who said what, and tool calls with their status, in either version's words; chunks are joined."""
    entries: dict[str, tuple[str, str]] = {}
    for update in updates:
        kind = update["sessionUpdate"]
        if kind in {"tool_call", "tool_call_update"}:
            entries[update["toolCallId"]] = ("tool", update["status"])
        elif "_message" in kind:
            blocks: list[dict[str, Any]] = [update["content"]] if kind.endswith("_chunk") else update["content"]
            text = "".join(block["text"] for block in blocks)
            _, before = entries.get(update["messageId"], ("", "")) if kind.endswith("_chunk") else ("", "")
            entries[update["messageId"]] = (kind.split("_")[0], before + text)
    return list(entries.values())


@asynccontextmanager
async def served(port: ScriptPort, place: Path) -> AsyncGenerator[Host]:
    """Serve a port on a store; at the end of the block the process could exit."""
    host = Host(port, store=str(place))
    try:
        yield host
    finally:
        await host.shut_down(PATIENCE)


@asynccontextmanager
async def connected(host: Host, version: int, *, initialized: bool = True) -> AsyncGenerator[Client]:
    ours, theirs = memory_pair()
    running = asyncio.create_task(ClientConnection(host, theirs).run())
    try:
        client = Client(version, ours)
        if initialized:
            await client.initialize()
        yield client
    finally:
        await ours.close(PATIENCE)
        await running


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.mark.requirement("A7", "A8", "C1")
async def test_initialize_answers_with_the_description_of_the_port(place: Path, version: int) -> None:
    port = ScriptPort()
    async with served(port, place) as host, connected(host, version, initialized=False) as client:
        answer = await client.initialize()
    about = answer["agentInfo" if version == 1 else "info"]
    assert answer["protocolVersion"] == version
    assert about == {"name": "script", "version": "3", "title": "A script"}
    assert answer["_meta"] == {"x/acts": 2}
    if version == 1:
        takes = answer["agentCapabilities"]["promptCapabilities"]
        assert takes == {"image": True, "audio": False, "embeddedContext": False}
    else:
        assert answer["capabilities"]["session"]["prompt"] == {"image": {}}
    assert [(seen.protocol, seen.name) for seen in port.clients] == [(version, "reader")]


@pytest.mark.requirement("D1", "D3", "C10")
async def test_a_new_session_has_the_options_and_commands_of_its_agent(
    place: Path, tmp_path: Path, version: int
) -> None:
    async with served(ScriptPort(), place) as host, connected(host, version) as client:
        answer = await client.new_session(tmp_path)
        commands = await client.update(is_commands)
    tone, brief = answer["configOptions"]
    assert client.values(answer["configOptions"]) == {"tone": "plain", "brief": False}
    assert (tone["type"], brief["type"]) == ("select", "boolean")
    assert [choice["value"] for choice in tone["options"]] == ["plain", "loud", "rude"]
    assert brief["description"] == "Say less"
    assert command_names(commands) == ["dig"]
    if version == 2:
        assert command_names(answer) == ["dig"]


@pytest.mark.requirement("D1", "D2")
async def test_an_option_that_is_set_reaches_the_port(place: Path, tmp_path: Path, version: int) -> None:
    port = ScriptPort()
    async with served(port, place) as host, connected(host, version) as client:
        session_id = (await client.new_session(tmp_path))["sessionId"]
        for option, value in (("tone", "loud"), ("brief", True)):
            answer = await client.set_option(session_id, option, value)
            assert client.values(answer["result"]["configOptions"])[option] == value
        opened = port.sessions[session_id]
        assert opened.settings == [("tone", "loud"), ("brief", True)]
        assert (opened.session.value(TONE), opened.session.value(BRIEF)) == ("loud", True)


@pytest.mark.requirement("D1", "D2", "D6")
async def test_an_option_that_the_port_refuses_is_set_back(place: Path, tmp_path: Path, version: int) -> None:
    port = ScriptPort()
    async with served(port, place) as host, connected(host, version) as client:
        session_id = (await client.new_session(tmp_path))["sessionId"]
        await client.set_option(session_id, "tone", "loud")
        answer = await client.set_option(session_id, "tone", "rude")
        assert (answer["error"]["code"], answer["error"]["message"]) == (-32602, "This script is polite")
        opened = port.sessions[session_id]
        assert opened.settings == [("tone", "loud"), ("tone", "rude")]
        assert opened.session.value(TONE) == "loud"
        assert client.announced_values()[-1] == {"tone": "loud", "brief": False}
        _, reopened = await client.reopen(session_id, tmp_path)
        assert client.values(reopened["configOptions"]) == {"tone": "loud", "brief": False}


@pytest.mark.requirement("D1", "D6", "C10")
async def test_options_and_commands_change_while_a_session_lives(place: Path, tmp_path: Path, version: int) -> None:
    port = ScriptPort()
    async with served(port, place) as host, connected(host, version) as client:
        session_id, other_id = [(await client.new_session(tmp_path))["sessionId"] for _ in range(2)]
        opened = port.sessions[session_id]
        await client.set_option(session_id, "tone", "loud")
        opened.options = (BRIEF, Option("tone", "Tone", "plain", (Choice("plain", "Plain"),)))
        opened.session.options_changed()
        opened.commands = [FILL, DIG]
        opened.session.commands_changed()
        await client.update(lambda update: is_commands(update) and command_names(update) == ["fill", "dig"])
        # A value that is no longer offered is the default again.
        assert list(client.announced_values()[-1].items()) == [("brief", False), ("tone", "plain")]
        replayed, answer = await client.reopen(session_id, tmp_path)
        assert [command_names(update) for update in replayed if is_commands(update)] == [["fill", "dig"]]
        assert client.values(answer["configOptions"]) == {"brief": False, "tone": "plain"}
        _, others = await client.reopen(other_id, tmp_path)
        assert [len(option.get("options", ())) for option in others["configOptions"]] == [3, 0]


@pytest.mark.requirement("D6")
async def test_the_port_sets_an_option_itself(place: Path, tmp_path: Path, version: int) -> None:
    port = ScriptPort()
    async with served(port, place) as host, connected(host, version) as client:
        session_id = (await client.new_session(tmp_path))["sessionId"]
        opened = port.sessions[session_id]
        await opened.session.adjust_option("brief", value=True)
        update = await client.update(is_options)
        assert client.values(update["configOptions"]) == {"tone": "plain", "brief": True}
        assert opened.settings == []


DIALOGUE = [("user", "dig"), ("agent", "I dig"), ("tool", "completed"), ("agent", "Done")]


@pytest.mark.requirement("C2", "C3", "C7")
async def test_a_turn_says_what_its_script_has(place: Path, tmp_path: Path, version: int) -> None:
    async with served(ScriptPort(), place) as host, connected(host, version) as client:
        session_id = (await client.new_session(tmp_path))["sessionId"]
        assert await client.prompt(session_id, "dig") == "end_turn"
        calls = [update for update in client.updates if "toolCallId" in update]
        assert conversation(client.updates) == (DIALOGUE[1:] if version == 1 else DIALOGUE)
    assert [(call["toolCallId"], call["status"]) for call in calls] == [("t1", "in_progress"), ("t1", "completed")]
    assert calls[0]["title"] == "Dig"
    assert calls[-1]["content"] == [{"type": "content", "content": {"type": "text", "text": "A hole"}}]


@pytest.mark.requirement("P1", "B6", "B8", "B11")
async def test_what_is_said_between_turns_is_seen_and_replayed_in_its_place(
    place: Path, tmp_path: Path, version: int
) -> None:
    port = ScriptPort()
    async with served(port, place) as host, connected(host, version) as client:
        session_id = (await client.new_session(tmp_path))["sessionId"]
        await client.prompt(session_id, "dig")
        port.sessions[session_id].session.emit_update(said("m-between", "It rains"))
        await client.update(says("It rains"))
        await client.prompt(session_id, "again")
        port.sessions[session_id].session.emit_update(said("m-last", "It pours"))
        await client.update(says("It pours"))
        replayed, _ = await client.reopen(session_id, tmp_path)
        between, last = ("agent", "It rains"), ("agent", "It pours")
        assert conversation(replayed) == [*DIALOGUE, between, ("user", "again"), ("agent", "No"), last]


@pytest.mark.requirement("A3", "A10")
async def test_requests_and_notifications_of_ones_own_reach_the_port(place: Path, version: int) -> None:
    port = ScriptPort()
    async with served(port, place) as host, connected(host, version) as client:
        client.notify("_x/first", n=1)
        client.notify("_x/second", n=2)
        assert await client.result("_x/echo", deep=[1]) == {"to": "reader", "params": {"deep": [1]}}
        assert (await client.ask("_x/unknown"))["error"]["code"] == -32601
    assert port.notified == [("_x/first", {"n": 1}), ("_x/second", {"n": 2})]


@pytest.mark.requirement("B6", "B8", "B11", "D1", "C10")
async def test_after_a_restart_everything_is_there(place: Path, tmp_path: Path, version: int) -> None:
    first, second = ScriptPort(), ScriptPort()
    async with served(first, place) as host, connected(host, version) as client:
        session_id = (await client.new_session(tmp_path))["sessionId"]
        await client.set_option(session_id, "tone", "loud")
        await client.prompt(session_id, "dig")
        first.sessions[session_id].session.emit_update(said("m-between", "It rains"))
        await client.update(says("It rains"))
    async with served(second, place) as host, connected(host, version) as client:
        replayed, answer = await client.reopen(session_id, tmp_path)
        assert conversation(replayed) == [*DIALOGUE, ("agent", "It rains")]
        assert client.values(answer["configOptions"]) == {"tone": "loud", "brief": False}
        assert command_names(next(filter(is_commands, replayed))) == ["dig"]
        assert second.sessions[session_id].session.value(TONE) == "loud"
        assert await client.prompt(session_id, "again") == "end_turn"
        assert conversation(client.updates)[-1] == ("agent", "No")


@pytest.mark.requirement("B13", "F4")
async def test_the_port_is_told_who_comes_and_goes(place: Path, tmp_path: Path, version: int) -> None:
    first, second = ScriptPort(), ScriptPort()
    async with served(first, place) as host, connected(host, version) as client:
        session_id = (await client.new_session(tmp_path))["sessionId"]
        await client.reopen(session_id, tmp_path)
        async with connected(host, version) as other:
            await other.reopen(session_id, tmp_path)
    assert first.sessions[session_id].life == ["new", "attached", "attached", "detached", "detached", "closed"]
    async with served(second, place) as host, connected(host, version) as client:
        await client.reopen(session_id, tmp_path)
    assert second.sessions[session_id].life == ["restored", "attached", "detached", "closed"]
