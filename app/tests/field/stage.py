"""The stage of one agent: its home, its working directory, a store, a model, and the clients that come and go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from app.tests.field.client import Client
from holdfast.store import open_store
from holdfast_app.wrap.record import AgentRecord

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.field.agents import FieldAgent


class Stage:
    """Where one agent plays, alone or wrapped, in one protocol version."""

    def __init__(
        self, directory: Path, agent: FieldAgent, model: str, *, version: int = 1, wrapped: bool = True
    ) -> None:
        self.agent, self.version, self.wrapped = agent, version, wrapped
        self.home, self.cwd, self.store = directory / "home", directory / "cwd", directory / "sessions.db"
        self.directory, self.model, self.stderr = directory, model, directory / "stderr.txt"
        self.cwd.mkdir(parents=True, exist_ok=True)
        agent.furnish(self.home, model)
        self.env = agent.environment(self.home, model) | {"HOLDFAST_STORE": str(self.store)}
        self.notes = self.cwd / "notes.txt"
        self.notes.write_text("These are notes.\n")

    def command(self, *options: str) -> list[str]:
        """Return the command that an editor would start."""
        agent = self.agent.start(self.version)
        if not self.wrapped:
            return agent
        return [sys.executable, "-m", "holdfast", "wrap", "--name", self.agent.name, *options, "--", *agent]

    def client(self, *options: str) -> Client:
        """Return a client with an agent of its own."""
        return Client(self.command(*options), self.env, self.cwd, version=self.version, stderr=self.stderr)

    def other(self, agent: FieldAgent) -> Stage:
        """Return a stage for another agent, wrapped, in the same directory and on the same store."""
        stage = Stage(self.directory / agent.name, agent, self.model)
        stage.cwd, stage.store = self.cwd, self.store
        stage.env["HOLDFAST_STORE"] = str(self.store)
        return stage

    def apart(self, name: str) -> Stage:
        """Return a stage for the same agent with a home and a store of its own."""
        return Stage(self.directory / name, self.agent, self.model, version=self.version, wrapped=self.wrapped)

    def alone(self) -> Stage:
        """Return a stage for the same agent, in the same home, without a proxy."""
        return Stage(self.directory, self.agent, self.model, version=self.version, wrapped=False)

    async def own_id(self, session: str) -> str:
        """Return the agent's own id of a session of ours."""

        store = await open_store(str(self.store))
        try:
            found = AgentRecord.read((await store.get(session)).state.memory).session
        finally:
            await store.close()
        assert found is not None
        return found

    def run_holdfast(self, *arguments: str) -> str:
        """Run a command of ours on the store; return what it printed."""
        command = [sys.executable, "-m", "holdfast", *arguments]
        done = subprocess.run(command, capture_output=True, check=False, text=True, env=self.env, cwd=self.cwd)
        assert done.returncode == 0, f"{arguments}: {done.stdout} {done.stderr}"
        return done.stdout

    def agent_processes(self, client: Client) -> list[int]:
        """Return the processes of the agent behind a client; where it is wrapped, without those of the proxy."""
        if not self.wrapped:
            return [client.pid, *descendants(client.pid)]
        return [pid for pid, command in descendants(client.pid).items() if "children/guard.py" not in command]

    def kill_agent(self, client: Client) -> None:
        """Kill the agent with -9, and all it started."""
        kill(self.agent_processes(client))

    def kill_proxy(self, client: Client) -> None:
        """Kill the proxy alone with -9."""
        kill([client.pid])

    def kill_both(self, client: Client) -> None:
        """Kill proxy and agent with -9 at once."""
        kill([client.pid, *self.agent_processes(client)])


def kill(processes: list[int]) -> None:
    """Kill processes with -9."""
    for pid in processes:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def descendants(pid: int) -> dict[int, str]:
    """Return the processes below a process, with their commands."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, check=True, text=True).stdout
    rows: list[Any] = [line.split(None, 2) for line in table.splitlines()]
    found: dict[int, str] = {}
    parents = {pid}
    while parents:
        children = {int(row[0]): row[2] if len(row) > 2 else "" for row in rows if int(row[1]) in parents}
        parents = set(children) - set(found)
        found |= children
    return found
