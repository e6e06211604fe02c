"""`make field-check`: run `holdfast check` on real agents, each alone and wrapped, and write docs/field.md.

What comes out is kept in app/tests/field/verdicts, without frames: a run of some agents, or of some rules, changes
their lines of the page and leaves the others as they are.

python -m app.tests.field.check                      all agents
python -m app.tests.field.check claude codex         some
python -m app.tests.field.check gemini --only alone  without the proxy
python -m app.tests.field.check vibe --jobs 2        two processes of the agent at once
python -m app.tests.field.check --page               write the page of the verdicts that are kept, and run nothing

Stopped (Ctrl-C, SIGTERM), it notes what it has found so far; the page says what was not run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import sys
import time
from typing import TYPE_CHECKING, BinaryIO

from rich.console import Console

from app.tests.field.agents import CACHE, ROOT, declared
from app.tests.field.install import NotInstalled, install, install_node
from app.tests.field.kept_verdicts import keep
from app.tests.field.page import MANNERS, PROFILES, write_page
from holdfast.testing.model_server import ModelServer, obey
from holdfast_app.check.report import from_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from app.tests.field.agents import FieldAgent

SDK = ROOT / "node_modules" / "@agentclientprotocol" / "sdk"
"""Its schemas know both versions."""
DEADLINE, EXIT_DEADLINE, QUIET = 120, 20, 1
"""Generous: what an idle machine does in a second must pass on a busy one."""


async def check(agent: FieldAgent, version: int, manner: str, chosen: argparse.Namespace) -> tuple[Path, int]:
    """Run `holdfast check` on one agent in a home of its own; return where the report is, and the status."""
    name = f"{agent.name}-v{version}-{manner}"
    directory = CACHE / "check-runs" / (f"{name}-some" if chosen.requirement or chosen.profile else name)
    shutil.rmtree(directory, ignore_errors=True)
    home, report = directory / "home", directory / "report.json"
    async with ModelServer(obey, log=None) as model:
        agent.furnish(home, model.root)
        env = agent.environment(home, model.root) | {"HOLDFAST_STORE": str(directory / "sessions.db")}
        rules = [f"--only={id_}" for id_ in chosen.requirement]
        rules = rules or [f"--profile={profile}" for profile in chosen.profile or PROFILES]
        waits = [f"--deadline={DEADLINE}", f"--exit-deadline={EXIT_DEADLINE}", f"--quiet={QUIET}"]
        modes = [f"--option=mode={agent.asking_mode}"] if agent.asking_mode else []
        command = [
            sys.executable, "-m", "holdfast", "check", *rules, *modes, *waits,
            "--protocol", str(version), "--jobs", str(chosen.jobs), "--verbose", "--schemas", str(SDK),
            "--name", agent.title, "--json", str(report), "--", *_command(agent, version, manner),
        ]  # fmt: skip
        with (directory / "output.txt").open("wb") as output:
            status = await _run(command, env, output)
    if not report.exists():
        return report, status
    return keep(name, _command_to_read(agent, version, manner), from_json(report.read_bytes())), status


async def _run(command: list[str], env: dict[str, str], output: BinaryIO) -> int:
    """Run a command to its end. One that is to stop is told so, and has time to write its report."""
    process = await asyncio.create_subprocess_exec(
        *command, env=env, stdout=output, stderr=output, start_new_session=True
    )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        return await process.wait()


def _command(agent: FieldAgent, version: int, manner: str) -> list[str]:
    if manner == "alone":
        return agent.start(version)
    return [sys.executable, "-m", "holdfast", "wrap", "--name", agent.name, "--", *agent.start(version)]


def _command_to_read(agent: FieldAgent, version: int, manner: str) -> str:
    """Return the command as one types it where the agent is installed."""
    command = " ".join(agent.command_in(version))
    return command if manner == "alone" else f"holdfast wrap --name {agent.name} -- {command}"


async def main() -> int:
    """Check the field; return 0 where every check could be made."""
    agents = declared()
    parser = argparse.ArgumentParser(
        "python -m app.tests.field.check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("agents", nargs="*", choices=[*agents, []], help="which agents (default: all)")
    parser.add_argument("--only", choices=MANNERS)
    parser.add_argument("--protocol", type=int, choices=(1, 2))
    parser.add_argument("--profile", action="append", default=[], choices=PROFILES, help="check these alone")
    parser.add_argument("--requirement", action="append", default=[], metavar="ID", help="check this alone")
    parser.add_argument("--jobs", type=int, default=1, help="so many processes of an agent at once")
    parser.add_argument(
        "--page", action="store_true", help="write the page of the verdicts that are kept, and run nothing"
    )
    parser.add_argument("--no-page", action="store_true", help="leave docs/field.md as it is")
    chosen = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    failed = 0
    install_node()
    for agent in () if chosen.page else (agents[name] for name in chosen.agents or agents):
        try:
            with console.status(f"installing {agent.title}"):
                install(agent)
        except NotInstalled as e:
            console.print(f"{agent.name}: skipped, it cannot be installed: {e}", markup=False)
            continue
        for version in agent.protocols if chosen.protocol is None else [chosen.protocol]:
            for manner in MANNERS if chosen.only is None else [chosen.only]:
                began = time.monotonic()
                with console.status(f"checking {agent.title} in version {version}, {manner}"):
                    report, status = await check(agent, version, manner, chosen)
                took = time.monotonic() - began
                failed += status not in (0, 1)
                console.print(f"{agent.name} v{version} {manner}: {report} ({took:.0f} s)", markup=False)
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    return _stopped(agents, console, page=not chosen.no_page)
    if not chosen.no_page:
        write_page(agents)
    return 1 if failed else 0


def _stopped(agents: Mapping[str, FieldAgent], console: Console, *, page: bool) -> int:
    console.print("stopped: what was found so far is noted")
    if page:
        write_page(agents)
    return 2


async def until_stopped() -> int:
    """Run until SIGTERM or Ctrl-C comes."""
    task = asyncio.ensure_future(main())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await task


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(asyncio.run(until_stopped()))
