"""A JetBrains IDE as a client: its library, and what captures of WebStorm show.

The IDE itself is not public. Its library is: agentclientprotocol/kotlin-sdk at 6ddbfee0a48e (21 August 2026), in
`acp/src/commonMain/kotlin/com/agentclientprotocol/`; line numbers are of its files there. Captures (November 2026)
show that WebStorm may send `initialize` twice, with tokens in `_meta`, and sets every option again before each
prompt. An adapter for Cursor had to send its commands after the answer to `session/new`, or WebStorm hung
(blowmage/cursor-agent-acp-npm, issue 33).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.tests.doubles.thread import Thread
from core.tests.support.acp import Refused, patiently

if TYPE_CHECKING:
    from core.tests.support.acp import Client

TOKEN = "a-token-of-the-ide"


class JetBrains:
    """One connection of an IDE's to one agent."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.threads: dict[str, Thread] = {}
        self.failures: list[str] = []
        """Updates of sessions that it does not know: its handler fails (client/Client.kt 99-126)."""
        self.after_the_turn: list[str] = []
        """What came when its prompt was answered: no part of the turn (client/ClientSessionImpl.kt 172-182)."""
        self._options: dict[str, list[dict[str, Any]]] = {}
        self._opening = 0
        self._prompting: set[str] = set()
        self._read = 0

    async def start(self) -> dict[str, Any]:
        """Introduce itself, twice (captures); ids are numbers from 1 (protocol/Protocol.kt 141, 222)."""
        params = {
            "protocolVersion": 1,
            "clientInfo": {"name": "WebStorm", "version": "2026.2"},
            "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True},
            "_meta": {"proxy": {"token": TOKEN}},
        }
        first = await self.client.ask("initialize", params)
        assert await self.client.ask("initialize", params) == first
        return first

    async def new_session(self, cwd: str) -> str:
        """Create a session; what comes before the answer is kept for it (client/Client.kt 48-87)."""
        answer = await self._open("session/new", {"cwd": cwd, "mcpServers": []})
        session = answer["sessionId"]
        self._options[session] = answer.get("configOptions") or []
        return session

    async def load_session(self, session: str, cwd: str) -> dict[str, Any]:
        """Load a session; the replay is kept until the answer is there, however long it is."""
        answer = await self._open("session/load", {"sessionId": session, "cwd": cwd, "mcpServers": []})
        self._options[session] = answer.get("configOptions") or []
        return answer

    async def prompt(self, session: str, text: str) -> str:
        """Set every option as it is (captures), then prompt; a second prompt meanwhile is its own mistake (line 62)."""
        assert session not in self._prompting, "There is active prompt execution"
        for option in self._options[session]:
            params = {"sessionId": session, "configId": option["id"], "value": option["currentValue"]}
            answer = await self.client.ask("session/set_config_option", params)
            self._options[session] = answer["configOptions"]
        self.threads[session].type(text)
        self._prompting.add(session)
        asked = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        answer = await self.client.ask("session/prompt", asked)
        self._catch_up()
        self._prompting.discard(session)
        return answer["stopReason"]

    async def give_up(self, session: str, text: str) -> Refused | dict[str, Any]:
        """Prompt, cancel the request itself, and wait for its answer (protocol/Protocol.kt 241-265)."""
        number = self.client.begin_prompt(session, text)
        id_ = self.client.last_id
        await self.client.until(self.client.said)
        self.client.tell("$/cancel_request", {"requestId": id_, "message": "cancelled"})
        try:
            return await patiently(number)
        except Refused as e:
            return e

    async def close_session(self, session: str) -> None:
        """Close a session and forget it: what comes for it from now on fails (client/ClientSessionImpl.kt 96-100)."""
        await self.client.ask("session/close", {"sessionId": session})
        self._catch_up()
        del self.threads[session]

    async def settle(self) -> None:
        """Wait until all that was sent is answered, and look at what came."""
        await self.client.settle()
        self._catch_up()

    async def _open(self, method: str, params: dict[str, Any]) -> Any:
        self._catch_up()
        self._opening += 1
        answer = await self.client.ask(method, params)
        self._catch_up()
        self._opening -= 1
        self.threads.setdefault(params.get("sessionId") or answer["sessionId"], Thread())
        return answer

    def _catch_up(self) -> None:
        """Look at everything that came, in order."""
        for message in self.client.heard[self._read :]:
            if message.get("method") != "session/update":
                continue
            session, update = message["params"]["sessionId"], message["params"]["update"]
            if session not in self.threads and self._opening == 0:
                self.failures.append(update["sessionUpdate"])
                continue
            self.threads.setdefault(session, Thread()).apply(update)
            if session not in self._prompting and self._opening == 0:
                self.after_the_turn.append(update["sessionUpdate"])
        self._read = len(self.client.heard)
