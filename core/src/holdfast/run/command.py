"""The command line of `run`. It uses `argparse`, which starts sooner than click (decision 002)."""

from __future__ import annotations

import gc
import os
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import NoReturn

RUN = """Speak ACP on stdin and stdout: this is the command to put into an editor's settings.

AGENT is a Python file that declares an agent, or `demo`:

  python -m holdfast run weather.py          the agent in weather.py
  python -m holdfast run weather.py:agent    the one called `agent`, if there are several
  python -m holdfast run demo                streams, tools, diffs, plans, questions: try /help

Sessions are kept in one file, so that every editor finds them again."""


def run(arguments: Sequence[str]) -> int:
    """Run an agent as the library alone can; return the status to exit with if it cannot start."""
    gc.disable()  # what is loaded now stays: looking through it again and again is a tenth of the start
    parser = run_parser("python -m holdfast run", RUN, "a Python file (FILE or FILE:NAME), or `demo`")
    chosen = parser.parse_args(arguments)

    from holdfast.run.load_agent import load_agent  # noqa: PLC0415  (`--help` needs none of it)
    from holdfast.run.run_agent import run_agent  # noqa: PLC0415

    return to_the_end(lambda: run_agent(chosen, load_agent))


def run_parser(prog: str, description: str, agent_help: str) -> argparse.ArgumentParser:
    """Return the parser of `run`; the products add their own options to it."""
    import argparse  # noqa: PLC0415

    parser = argparse.ArgumentParser(prog, description=description, formatter_class=help_formatter)
    parser.add_argument("agent", metavar="AGENT", help=agent_help)
    parser.add_argument(
        "--name", metavar="NAME", help="the name its sessions belong to (default: the name that the file gives it)"
    )
    add_common_arguments(parser)
    parser.add_argument("--wire", action="store_true", help="write every message, both ways, to stderr")
    parser.add_argument("--wire-file", metavar="FILE", help="append every message, both ways, to a file")
    parser.add_argument(
        "--watch-loop",
        metavar="SECONDS",
        type=float,
        help="log where a handler blocks the event loop for so long (with --log-level debug and info: 1)",
    )
    parser.add_argument(
        "--mcp-config",
        metavar="FILE",
        help='MCP servers for every session, besides those the client names: JSON like {"mcpServers": {…}}',
    )
    parser.add_argument(
        "--login", metavar="ID", help="log in here, in the terminal, by the agent's way of this name, and exit"
    )
    return parser


@cache
def _terminal_width() -> int:
    try:
        return int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size().columns or 80
    except (OSError, ValueError):
        return 80


def help_formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter that is as wide as the terminal.

    Without a width argparse makes one for every argument that is added and asks `shutil` each time: 3 ms.
    """
    from argparse import RawDescriptionHelpFormatter  # noqa: PLC0415

    return RawDescriptionHelpFormatter(prog, width=_terminal_width() - 2)


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what every command has that speaks ACP on stdin and stdout: the store, the protocol, the log."""
    parser.add_argument(
        "--store", metavar="ADDRESS", help="where sessions are kept (default: $HOLDFAST_STORE, or your data directory)"
    )
    parser.add_argument(
        "--protocol", choices=("1", "2", "auto"), default="auto", help="protocol versions to speak (default: auto)"
    )
    parser.add_argument(
        "--log-level",
        default="warning",
        choices=("debug", "info", "warning", "error"),
        help="what to log (default: warning); with debug and info, a handler that blocks the event loop too",
    )
    parser.add_argument("--log-file", metavar="FILE", help="log to a file instead of stderr")
    parser.add_argument(
        "--log-format", default="text", choices=("text", "json"), help="json: one object a line (default: text)"
    )


def to_the_end(serve: Callable[[], NoReturn]) -> int:
    """Serve until the process ends; return the status to exit with if it cannot start."""
    from holdfast.errors import HoldfastError  # noqa: PLC0415

    try:
        serve()
    except HoldfastError as e:
        from holdfast.view.safe_text import safe_text  # noqa: PLC0415

        sys.stderr.write(f"holdfast: {safe_text(str(e))}\n")
        return 1
