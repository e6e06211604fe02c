"""Count the files and functions between a client's prompt on stdin and the author's handler, and back.

    python -m bench.main_road [--source TREE] [--functions]

Recorded with `sys.setprofile` in all threads of an agent's process: the first and a later prompt of a session (version
1, five chunks), and a call of an MCP tool inside a turn. A *jump* is a call in another file of the package than the
call before it in the same thread; *from another file* counts the calls whose caller is in one. For comparison, the same
of the `mcp` SDK, which calls a tool with client and server in one process.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from bench.places import a_store
from bench.processes import ROOT, SCRIPTS, ContenderProcess
from bench.sources import NoSource, sources_of
from bench.wire import INITIALIZE, take_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

SETTLES = 0.3
"""Seconds after a turn's end until all that belongs to it has been done."""

TITLES = {
    "first": "the first prompt of a session",
    "later": "a later prompt",
    "call_tool": "call_tool of an MCP server",
}
ECHO_SERVER = {
    "name": "echo",
    "command": sys.executable,
    "args": ["-S", str(SCRIPTS / "mcp_echo_server.py")],
    "env": list[object](),
}

Call: TypeAlias = tuple[str, str, str | None, int]
"""The file and the name of a function, the file of its caller, and the thread it was called in."""


class Road(NamedTuple):
    """What was called on the way."""

    name: str
    calls: Sequence[Call]

    @property
    def functions(self) -> dict[str, list[str]]:
        """The functions that were called, by file, in the order of their first calls."""
        found: dict[str, dict[str, None]] = {}
        for file, function, _, _ in self.calls:
            found.setdefault(file, {})[function] = None
        return {file: list(names) for file, names in found.items()}

    @property
    def jumps(self) -> int:
        """How often a thread went on in another file."""
        count, last = 0, dict[int, str]()
        for file, _, _, thread in self.calls:
            count += last.get(thread, file) != file
            last[thread] = file
        return count

    @property
    def from_another_file(self) -> int:
        """How many calls have a caller in another file."""
        return sum(caller is not None and caller != file for file, _, caller, _ in self.calls)

    def summary(self) -> str:
        """Return the figures as one line."""
        functions = self.functions
        counted = sum(map(len, functions.values()))
        return (
            f"{self.name:34} {len(functions):5} files {counted:5} functions {self.jumps:5} jumps "
            f"{self.from_another_file:5} from another file {len(self.calls):5} calls"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.main_road", description=__doc__)
    parser.add_argument(
        "--source", metavar="TREE", default=str(ROOT), help="a directory or a revision (default: this tree)"
    )
    parser.add_argument("--functions", action="store_true", help="list the functions, too")
    chosen = parser.parse_args(arguments)
    try:
        source = sources_of(chosen.source)
    except NoSource as e:
        parser.error(str(e))
    roads = [*record_holdfast(source), *record_mcp_sdk()]
    for road in roads:
        print(road.summary())
    for road in roads if chosen.functions else ():
        print(f"\n{road.name}:")
        for file, functions in road.functions.items():
            print(f"  {file} ({len(functions)})\n    {', '.join(functions)}")
    return 0


def record_holdfast(source: Path) -> list[Road]:
    """Record prompts and a tool call in an agent's process."""
    with _recorded_agent(source) as (agent, tell):
        agent.write(INITIALIZE)
        agent.read_line()
        session = _new_session(agent)
        for name in ("first", "later"):
            time.sleep(SETTLES)
            tell(f"start {name}")
            take_turn(agent, "hello", session)
            time.sleep(SETTLES)
            tell("stop")
        with_server = _new_session(agent, ECHO_SERVER)
        take_turn(agent, "call", with_server)  # the first call may wait until the server is there
        take_turn(agent, "call", with_server)
        recordings = msgspec.json.decode(tell("report"), type=dict[str, list[Call]])
    return [Road(title, recordings[name]) for name, title in TITLES.items()]


@contextmanager
def _recorded_agent(source: Path) -> Generator[tuple[ContenderProcess, Callable[[str], bytes]]]:
    """Start an agent; give it, and a way to tell its recorder something and have its answer."""
    read_commands, write_commands = os.pipe()
    read_reports, write_reports = os.pipe()
    theirs = read_commands, write_reports
    with a_store() as store, os.fdopen(write_commands, "wb", 0) as commands, os.fdopen(read_reports, "rb") as reports:
        script, agent_file = str(SCRIPTS / "road_recorder.py"), str(SCRIPTS / "ours_road.py")
        command = (sys.executable, script, *map(str, theirs), "run", agent_file, "--store", store)
        with ContenderProcess(command, theirs, source=source) as agent:

            def tell(what: str) -> bytes:
                commands.write(what.encode() + b"\n")
                return reports.readline()

            yield agent, tell
    for fd in theirs:
        os.close(fd)


def record_mcp_sdk() -> list[Road]:
    """Record a tool call of the `mcp` SDK."""
    with ContenderProcess((sys.executable, str(SCRIPTS / "mcp_sdk_road.py"))) as process:
        process.end()
        recordings = msgspec.json.decode(process.said().splitlines()[-1], type=dict[str, list[Call]])
    return [Road("call_tool of the mcp SDK alone", recordings["mcp"])]


def _new_session(agent: ContenderProcess, *servers: Mapping[str, object]) -> str:
    new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": servers}}
    agent.write(msgspec.json.encode(new) + b"\n")
    found = re.search(rb'"sessionId":\s*"([^"]*)"', agent.read_line())
    assert found is not None
    return found[1].decode()


if __name__ == "__main__":
    sys.exit(main())
