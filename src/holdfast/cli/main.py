"""Reads the command line and hands over to the command."""

from __future__ import annotations

import argparse
import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = "Sessions that hold, for every agent that speaks the Agent Client Protocol."

RUN = """Speak ACP on stdin and stdout: this is the command to put into an editor's settings.

AGENT is a Python file that declares an agent, or `demo`, the agent that comes with Holdfast:

  holdfast run weather.py          the agent in weather.py
  holdfast run weather.py:agent    the one called `agent`, if there are several
  holdfast run demo                streams, tools, diffs, plans, questions: try /help

Sessions are kept in one file, so that every editor finds them again."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the status to exit with."""
    parser = argparse.ArgumentParser("holdfast", description=DESCRIPTION)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    run = commands.add_parser(
        "run",
        help="speak ACP on stdin and stdout",
        description=RUN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("agent", metavar="AGENT", help="a Python file (FILE or FILE:NAME), or `demo`")
    run.add_argument(
        "--store", metavar="FILE", help="where sessions are kept (default: $HOLDFAST_STORE, or your data directory)"
    )
    run.add_argument(
        "--protocol", choices=("1", "2", "auto"), default="auto", help="protocol versions to speak (default: auto)"
    )
    run.add_argument(
        "--log-level", default="warning", choices=("debug", "info", "warning", "error"), help="default: warning"
    )
    run.add_argument("--log-file", metavar="FILE", help="log to a file instead of stderr")
    run.add_argument(
        "--mcp-config",
        metavar="FILE",
        help='MCP servers for every session, besides those the client names: JSON like {"mcpServers": {…}}',
    )
    arguments = parser.parse_args(argv)

    gc.disable()  # what is loaded now stays: looking through it again and again is a tenth of the start
    from holdfast.cli.run import run_agent  # noqa: PLC0415  (`--help` needs none of it)
    from holdfast.errors import HoldfastError  # noqa: PLC0415

    try:
        return run_agent(arguments)
    except HoldfastError as e:
        sys.stderr.write(f"holdfast: {e}\n")
        return 1
