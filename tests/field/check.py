"""`make field-check`: run `holdfast check` on real agents, each alone and wrapped, and write docs/field.md.

python -m tests.field.check                      all agents
python -m tests.field.check claude codex         some
python -m tests.field.check gemini --only alone  without the proxy
python -m tests.field.check --page               write the page of the reports there are, and run nothing
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

from msgspec.structs import replace
from rich.console import Console

from holdfast.check.report import from_json, to_json
from holdfast.testing.model_server import ModelServer, obey
from tests.field.agents import CACHE, ROOT, declared
from tests.field.install import NotInstalled, install, install_node
from tests.field.page import MANNERS, write_page

if TYPE_CHECKING:
    from pathlib import Path

    from tests.field.agents import FieldAgent

REPORTS = CACHE / "check"
PROFILES = ("spec", "sessions", "durability", "hostile", "mcp", "client-services")
SDK = ROOT / "node_modules" / "@agentclientprotocol" / "sdk"
"""Its schemas know both versions."""
DEADLINE, EXIT_DEADLINE, QUIET = 120, 20, 1
"""Generous: what an idle machine does in a second must pass on a busy one."""


async def check(agent: FieldAgent, version: int, manner: str, only: list[str], profiles: list[str]) -> tuple[Path, int]:
    """Run `holdfast check` on one agent in a home of its own; return where the report is, and the status."""
    name = f"{agent.name}-v{version}-{manner}"
    directory = CACHE / "check-runs" / (f"{name}-some" if only or profiles else name)
    shutil.rmtree(directory, ignore_errors=True)
    home, report = directory / "home", directory / "report.json"
    async with ModelServer(obey, log=None) as model:
        agent.furnish(home, model.root)
        env = agent.environment(home, model.root) | {"HOLDFAST_STORE": str(directory / "sessions.db")}
        chosen = [f"--only={id_}" for id_ in only] or [f"--profile={profile}" for profile in profiles or PROFILES]
        waits = [f"--deadline={DEADLINE}", f"--exit-deadline={EXIT_DEADLINE}", f"--quiet={QUIET}"]
        modes = [f"--option=mode={agent.asking_mode}"] if agent.asking_mode else []
        command = [
            sys.executable, "-m", "holdfast", "check", *chosen, *modes, *waits,
            "--protocol", str(version), "--verbose", "--schemas", str(SDK),
            "--name", agent.title, "--json", str(report), "--", *_command(agent, version, manner),
        ]  # fmt: skip
        with (directory / "output.txt").open("wb") as output:
            process = await asyncio.create_subprocess_exec(*command, env=env, stdout=output, stderr=output)
            try:
                status = await process.wait()
            finally:
                if process.returncode is None:
                    process.terminate()
    return _note(name, report) if report.exists() else report, status


def _note(name: str, report: Path) -> Path:
    """Put the results of a run in place of earlier ones; those that it did not try stay."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    noted = REPORTS / f"{name}.json"
    now = from_json(report.read_bytes())
    if noted.exists():
        tried = {result.key for result in now.results}
        kept = [result for result in from_json(noted.read_bytes()).results if result.key not in tried]
        now = replace(now, profiles=PROFILES, results=(*now.results, *kept))
    noted.write_bytes(to_json(now))
    return noted


def _command(agent: FieldAgent, version: int, manner: str) -> list[str]:
    if manner == "alone":
        return agent.start(version)
    return [sys.executable, "-m", "holdfast", "wrap", "--name", agent.name, "--", *agent.start(version)]


async def main() -> int:
    """Check the field; return 0 where every check could be made."""
    agents = declared()
    parser = argparse.ArgumentParser(
        "python -m tests.field.check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("agents", nargs="*", choices=[*agents, []], help="which agents (default: all)")
    parser.add_argument("--only", choices=MANNERS)
    parser.add_argument("--protocol", type=int, choices=(1, 2))
    parser.add_argument("--profile", action="append", default=[], choices=PROFILES, help="check these alone")
    parser.add_argument("--requirement", action="append", default=[], metavar="ID", help="check this alone")
    parser.add_argument("--page", action="store_true", help="write the page of the reports there are, and run nothing")
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
                    report, status = await check(agent, version, manner, chosen.requirement, chosen.profile)
                took = time.monotonic() - began
                failed += status not in (0, 1)
                console.print(f"{agent.name} v{version} {manner}: {report} ({took:.0f} s)", markup=False)
    if not chosen.no_page:
        write_page(agents, REPORTS)
    return 1 if failed else 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(asyncio.run(main()))
