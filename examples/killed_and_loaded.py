"""A conversation that survives its agent: run it with `make demo`.

For each protocol version: an agent is started as an editor would, asked a few things, and killed with SIGKILL in the
middle of an answer. A second process loads the session and has all of it, up to the last word the client had received.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import Any, cast

import msgspec

from holdfast.peer import Peer, Routes
from holdfast.transport import ProcessTransport, spawn

CLIENT = {"name": "killed-and-loaded", "version": "1"}


class Note(msgspec.Struct, rename="camel"):
    """What an agent tells: something about a session."""

    update: dict[str, Any]


class Client:
    """A small ACP client that remembers what it is told."""

    def __init__(self, version: int, store: Path) -> None:
        self.version = version
        self.store = store
        self.updates: list[dict[str, Any]] = []
        self.heard = asyncio.Event()

    async def start(self) -> tuple[ProcessTransport, Peer]:
        """Start the agent and say hello."""
        command = (sys.executable, "-m", "holdfast", "run", "demo", "--store", str(self.store))
        transport = await spawn(*command, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        routes = Routes()
        routes.notification("session/update", self._told, Note)
        routes.request("session/request_permission", self._asked)
        peer = await Peer(transport, routes).__aenter__()
        answer = await peer.request(
            "initialize",
            {"protocolVersion": self.version, "clientCapabilities": {}, "capabilities": {}, "info": CLIENT},
            result=dict[str, Any],
        )
        assert answer["protocolVersion"] == self.version
        return transport, peer

    async def prompt(self, peer: Peer, session: str, text: str) -> None:
        """Ask something and wait for the end of the answer."""
        self.updates.append({"sessionUpdate": "said", "text": text})
        seen = len(self.updates)
        await peer.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})
        while self.version == 2 and not any(it.get("state") == "idle" for it in self.updates[seen:]):
            self.heard.clear()
            await self.heard.wait()

    async def _told(self, note: Note) -> None:
        self.updates.append(note.update)
        self.heard.set()

    async def _asked(self, _: msgspec.Raw) -> object:
        return {"outcome": {"outcome": "selected", "optionId": "allow_once"}}


async def show(version: int, store: Path) -> None:
    """Talk, kill, load."""
    print(f"\n━━━ Protocol version {version} " + "━" * 60)
    client = Client(version, store)
    transport, peer = await client.start()
    cwd: dict[str, Any] = {"cwd": str(Path.cwd()), "mcpServers": []}
    session = (await peer.request("session/new", cwd, result=dict[str, Any]))["sessionId"]
    for text in ("How do I hold fast?", "/tool", "/plan", "/ask"):
        await client.prompt(peer, session, text)

    streaming = asyncio.create_task(client.prompt(peer, session, "/stream 100000"))
    while " 300 " not in "".join(words(client.updates)):
        client.heard.clear()
        await client.heard.wait()
    kill_agent_of(transport.pid)
    await transport.wait()
    await peer.__aexit__(None, None, None)
    streaming.cancel()
    await asyncio.wait({streaming})
    received = "".join(words(client.updates))
    print(f"(the agent was killed with SIGKILL; the client had received {len(received.split())} words of the answer)\n")

    second = Client(version, store)
    transport, peer = await second.start()
    await peer.request("session/load", {"sessionId": session, **cwd})
    render(second.updates)
    loaded = "".join(words(second.updates))
    whole = loaded.startswith(received)
    print(f"\nloaded by a second process: {len(loaded.split())} words, all that was received among them: {whole}")
    await second.prompt(peer, session, "/history")
    print("and it goes on:", "".join(words(second.updates[-4:])))
    await peer.__aexit__(None, None, None)
    assert whole


def kill_agent_of(guard: int) -> None:
    """Kill the agent behind its guard: it has no chance to save anything."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, _, rest = entry.read_text().partition(" (")
            if int(rest.rpartition(")")[2].split()[1]) == guard:
                os.kill(int(pid), signal.SIGKILL)
        except (OSError, ValueError):
            continue


def words(updates: list[dict[str, Any]]) -> list[str]:
    """Pick what the agent said since the last prompt."""
    said: list[str] = []
    for it in updates:
        kind = it["sessionUpdate"]
        if kind in ("said", "user_message", "user_message_chunk"):
            said.clear()
        elif kind == "agent_message_chunk":
            said.append(it["content"].get("text", ""))
        elif kind == "agent_message":
            said += [block.get("text", "") for block in it["content"]]
    return said


def render(updates: list[dict[str, Any]]) -> None:
    """Print a conversation for people."""
    for it in updates:
        kind: str = it["sessionUpdate"]
        content: Any = it.get("content") or []
        blocks = cast("list[dict[str, Any]]", content if isinstance(content, list) else [content])
        text = "".join(block.get("text", "") for block in blocks)
        if kind.startswith("user_message"):
            print(f"\n  you    │ {text}")
        elif kind.startswith("agent_message"):
            print(f"  agent  │ {text if len(text) < 90 else text[:60] + ' … ' + text[-20:]}")
        elif kind.startswith("tool_call") and "title" in it:
            print(f"  tool   │ {it['title']} [{it.get('status')}]")
        elif kind in ("plan", "plan_update"):
            for entry in (it.get("plan") or it)["entries"]:
                print(f"  plan   │ {'☑' if entry['status'] == 'completed' else '☐'} {entry['content']}")
        elif kind == "terminal_update" and it.get("output"):
            print(f"  output │ {b64decode(it['output']['data']).decode()!r}")
        elif kind == "_holdfast/turn_end":
            print(f"  —      │ the turn ended: {it['reason']}")


async def main() -> None:
    """Show both versions."""
    with tempfile.TemporaryDirectory() as directory:
        for version in (1, 2):
            await show(version, Path(directory, "sessions.db"))


if __name__ == "__main__":
    asyncio.run(main())
