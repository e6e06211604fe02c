"""MCP servers that a client names: whether they are started, as they were named, and ended."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.testing.process_tree import alive
from holdfast_app.check.checks.prompts import ALLOWING
from holdfast_app.check.checks.registry import check
from holdfast_app.check.outcomes import Refused
from holdfast_app.check.trial import fail

if TYPE_CHECKING:
    from holdfast_app.check.trial import Trial
    from holdfast_app.check.wire import Json

SERVER = Path(__file__).parent.parent / "noting_server.py"


class NotingServer:
    """A server that notes what happens to it in a file."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._notes = Path(trial.directory) / "mcp-notes"

    def config(self) -> dict[str, Json]:
        """Return the server as a client names it."""
        env = [{"name": "HOLDFAST_CHECK_WORD", "value": "pebble"}]
        return {"name": "notes", "command": sys.executable, "args": [str(SERVER), str(self._notes)], "env": env}

    async def noted(self, what: str) -> dict[str, Any] | None:
        """Wait for a note; return it, None where it does not come."""
        patience = self._trial.settings.deadline
        deadline = asyncio.get_running_loop().time() + patience
        while asyncio.get_running_loop().time() < deadline:
            for line in self._notes.read_text().splitlines() if self._notes.exists() else ():
                note: dict[str, Any] = json.loads(line)
                if note["what"] == what:
                    return note
            await asyncio.sleep(0.05)
        return None


@check("mcp-started")
async def mcp_started(trial: Trial) -> None:
    """Name a server; some agents start it only when there is something to do."""
    server = NotingServer(trial)
    session = await (await trial.connect(ALLOWING)).new(servers=[server.config()])
    await session.prompt(trial.prompts.talk)
    if await server.noted("initialized") is None:
        fail("the server to be started and initialised", "it was not")


@check("mcp-env")
async def mcp_env(trial: Trial) -> None:
    """Look what the server got."""
    server = NotingServer(trial)
    session = await (await trial.connect(ALLOWING)).new(servers=[server.config()])
    await session.prompt(trial.prompts.talk)
    note = await server.noted("started")
    if note is None or note["word"] != "pebble":
        fail("the variable HOLDFAST_CHECK_WORD", note)


@check("mcp-broken")
async def mcp_broken(trial: Trial) -> None:
    """Name a server that does not exist."""
    broken: dict[str, Json] = {"name": "broken", "command": "/no/such/holdfast-check-server", "args": [], "env": []}
    session = await (await trial.connect(ALLOWING)).new(servers=[broken])
    turn = await session.prompt(trial.prompts.talk)
    if turn.stop_reason != "end_turn":
        fail("a turn that ends with end_turn", turn.stop_reason)


@check("mcp-ended")
async def mcp_ended(trial: Trial) -> None:
    """End the agent, and look for the server."""
    server = NotingServer(trial)
    session = await (await trial.connect(ALLOWING)).new(servers=[server.config()])
    await session.prompt(trial.prompts.talk)
    note = await server.noted("started")
    if note is None:
        fail("the server to be started", "it was not")
    await session.wire.link.close(trial.settings.exit_deadline)
    pid = frozenset({int(note["pid"])})
    for _ in range(20):
        if not alive(pid):
            return
        await asyncio.sleep(trial.quiet / 2)
    fail("the server's end with the agent's", "it still runs")


@check("mcp-unknown-type")
async def mcp_unknown_type(trial: Trial) -> None:
    """Name a server of a type that nobody knows."""
    connected = await trial.connect()
    try:
        await connected.new(servers=[{"type": "_holdfast_check", "name": "odd", "url": "x:y"}])
    except Refused:
        return
    fail("an error", "success")
