"""Zed as a client, from `crates/agent_servers/src/acp.rs` of zed-industries/zed at 7eec89207ccf (22 August 2026).

Line numbers below are of that file at that commit.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any

from core.tests.doubles.thread import Thread
from core.tests.support.acp import patiently

if TYPE_CHECKING:
    import asyncio

    from core.tests.support.acp import Client

CAPABILITIES: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "auth": {"terminal": True},
    "session": {"configOptions": {"boolean": {}}},
    "elicitation": {"form": {}, "url": {}},
    "_meta": {"terminal_output": True, "terminal-auth": True},
}
"""What it offers every agent (lines 767-795)."""


class Zed:
    """One connection of Zed's to one agent."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.threads: dict[str, Thread] = {}
        self.dropped: list[str] = []
        """The kinds of updates it has thrown away."""
        self.agent: dict[str, Any] = {}
        self._handles: dict[str, int] = {}
        self._creating: set[str] = set()
        self._read = 0

    async def start(self) -> None:
        """Introduce itself, in version 1 (lines 991-1000)."""
        about = {"name": "zed", "version": "1.8.0", "title": "Stable"}
        params = {"protocolVersion": 1, "clientCapabilities": CAPABILITIES, "clientInfo": about}
        self.agent = (await patiently(self._send("initialize", params)))["agentCapabilities"]

    async def new_session(self, *directories: str, mode: str | None = None, **options: str) -> str:
        """Open a new thread (1601-1709): it is known once the answer is there, so what came before is lost (4821-4828).

        Its defaults are sent at once and not waited for (1632-1653, 1381-1391): a mode only where the answer has no
        `configOptions` (4445-4458).
        """
        asked = self._send("session/new", self._directories(directories), creating=True)
        answer = await patiently(asked)
        self._catch_up()
        session = answer["sessionId"]
        if mode is not None and answer.get("configOptions") is None:
            self._send("session/set_mode", {"sessionId": session, "modeId": mode})
        self._apply_defaults(session, answer, options)
        return session

    async def load_session(self, session: str, *directories: str, **options: str) -> dict[str, Any]:
        """Open an old thread (1166-1301): known before the request is sent, so that a replay finds it (1229-1241)."""
        self._catch_up()
        self.threads[session] = Thread()
        self._handles[session] = self._handles.get(session, 0) + 1
        params = {"sessionId": session, **self._directories(directories)}
        answer = await patiently(self._send("session/load", params))
        self._apply_defaults(session, answer, options)
        self._catch_up()
        return answer

    async def close_session(self, session: str) -> None:
        """Close a view; the session is closed with its last one (1817-1880), also while it is being loaded."""
        self._handles[session] -= 1
        if self._handles[session] == 0:
            self._catch_up()
            del self.threads[session]
            assert await patiently(self._send("session/close", {"sessionId": session})) is not None

    async def prompt(self, session: str, text: str) -> str:
        """Send a prompt, shown before it is sent (acp_thread.rs 2560); return the stop reason (1952-2009)."""
        answer = await patiently(self.begin_prompt(session, text))
        self._catch_up()
        return answer["stopReason"]

    def begin_prompt(self, session: str, text: str) -> asyncio.Future[Any]:
        """Send a prompt."""
        self._catch_up()
        self.threads[session].type(text)
        prompt = [{"type": "text", "text": text}]
        return self._send("session/prompt", {"sessionId": session, "prompt": prompt})

    def cancel(self, session: str) -> None:
        """Cancel the turn (2012-2018); open questions are answered as cancelled by whoever shows them."""
        self.client.tell("session/cancel", {"sessionId": session})
        for asked in self.client.asked:
            if asked.method == "session/request_permission":
                asked.answer({"outcome": {"outcome": "cancelled"}})
        self.client.asked.clear()

    async def list_sessions(self, cwd: str) -> list[dict[str, Any]]:
        """List the sessions of a directory, page by page; times are read as RFC 3339 (560-600)."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            params = {"cwd": cwd} | ({"cursor": cursor} if cursor else {})
            page = await patiently(self._send("session/list", params))
            found += page["sessions"]
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        assert all(datetime.fromisoformat(row["updatedAt"]).tzinfo for row in found)
        return found

    async def delete_session(self, session: str) -> None:
        """Delete a session, where the agent can (605-622)."""
        await patiently(self._send("session/delete", {"sessionId": session}))

    async def settle(self) -> None:
        """Wait until all that was sent is answered, and look at what came."""
        await self.client.settle()
        self._catch_up()

    def _directories(self, directories: tuple[str, ...]) -> dict[str, Any]:
        """Return the first as the cwd; the others only where the agent can (1473-1492)."""
        more = "additionalDirectories" in self.agent.get("sessionCapabilities", {})
        return {
            "cwd": directories[0],
            "additionalDirectories": list(directories[1:]) if more else [],
            "mcpServers": [],
        }

    def _apply_defaults(self, session: str, answer: dict[str, Any], wanted: dict[str, str]) -> None:
        """Set the options of the user's settings that are offered with such a value (1303-1400), and no others."""
        options: list[dict[str, Any]] = answer.get("configOptions") or []
        for option in options:
            rows: list[dict[str, Any]] = option.get("options", [])
            values = [value["value"] for row in rows for value in (row, *row.get("options", [])) if "value" in value]
            if wanted.get(option["id"]) in values:
                params = {"sessionId": session, "configId": option["id"], "value": wanted[option["id"]]}
                self._send("session/set_config_option", params)

    def _send(self, method: str, params: dict[str, Any], *, creating: bool = False) -> asyncio.Future[Any]:
        """Send a request; ids are UUIDs."""
        id_ = str(uuid.uuid4())
        if creating:
            self._creating.add(id_)
        return self.client.begin(method, params, id_)

    def _catch_up(self) -> None:
        """Look at everything that came, in order: updates of sessions it does not know are dropped (4821-4828)."""
        for message in self.client.heard[self._read :]:
            if message.get("id") in self._creating and "result" in message:
                session = message["result"]["sessionId"]
                self.threads[session] = Thread()
                self._handles[session] = 1
            elif message.get("method") == "session/update":
                thread = self.threads.get(message["params"]["sessionId"])
                if thread is None:
                    self.dropped.append(message["params"]["update"]["sessionUpdate"])
                else:
                    thread.apply(message["params"]["update"])
        self._read = len(self.client.heard)
