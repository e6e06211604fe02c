"""`main`: decides quickly between `run` and `wrap`, which editors wait for, and the commands for people."""

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

AGENT is a Python file that declares an agent, or one of the two that come with Holdfast, `code` and `demo`:

  holdfast run weather.py          the agent in weather.py
  holdfast run weather.py:agent    the one called `agent`, if there are several
  holdfast run code                a coding agent, with the model in $HOLDFAST_MODEL
  holdfast run demo                streams, tools, diffs, plans, questions: try /help

Sessions are kept in one file, so that every editor finds them again. What goes wrong is logged beside it:
`holdfast logs` shows it, with the traceback."""

WRAP = """Give an agent that is not ours sessions that hold: this is the command to put into an editor's settings.

COMMAND starts any agent that speaks ACP on stdin and stdout, in any language:

  holdfast wrap -- gemini --acp
  holdfast wrap --name claude -- claude-agent-acp     the name that its sessions are listed under
  holdfast wrap --on-lost-context refuse -- opencode acp

Everything it says is stored before your editor shows it, so nothing of it is lost when the agent, the editor or this
process dies. Where the agent has forgotten a conversation, it is told again with your next prompt; you are told so."""

COMPLETE = "_HOLDFAST_COMPLETE"
"""A shell that wants to complete a command line sets this."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the status to exit with."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if COMPLETE not in os.environ:
        if arguments[:1] == ["run"]:
            return run(arguments[1:])
        if arguments[:1] == ["wrap"]:
            return wrap(arguments[1:])
    from holdfast_app.cli.commands import main_for_people  # noqa: PLC0415  (`run` needs none of it)

    return main_for_people(arguments)


def run(arguments: Sequence[str]) -> int:
    """Run an agent."""
    gc.disable()  # what is loaded now stays: looking through it again and again is a tenth of the start
    import argparse  # noqa: PLC0415  (starts sooner than click: docs/decisions/002)

    from holdfast_app.cli.model_options import add_model_arguments  # noqa: PLC0415

    parser = argparse.ArgumentParser("holdfast run", description=RUN, formatter_class=_help_formatter)
    parser.add_argument("agent", metavar="AGENT", help="a Python file (FILE or FILE:NAME), or `code`, or `demo`")
    parser.add_argument(
        "--name", metavar="NAME", help="the name its sessions belong to (default: the name that the file gives it)"
    )
    _add_common_arguments(parser)
    _add_author_arguments(parser)
    parser.add_argument(
        "--mcp-config",
        metavar="FILE",
        help='MCP servers for every session, besides those the client names: JSON like {"mcpServers": {…}}',
    )
    parser.add_argument(
        "--login", metavar="ID", help="log in here, in the terminal, by the agent's way of this name, and exit"
    )
    add_model_arguments(parser)
    chosen = parser.parse_args(arguments)

    from holdfast.run.run_agent import run_agent  # noqa: PLC0415  (`--help` needs none of it)

    return _to_the_end(run_agent, chosen)


def wrap(arguments: Sequence[str]) -> int:
    """Wrap another agent."""
    gc.disable()
    import argparse  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        "holdfast wrap",
        usage="holdfast wrap [OPTION …] -- COMMAND [ARGUMENT …]",
        description=WRAP,
        formatter_class=_help_formatter,
    )
    parser.add_argument(
        "command",
        metavar="COMMAND",
        nargs="*",
        help="the command of the agent, behind `--`; none as a component of a proxy chain",
    )
    parser.add_argument(
        "--name", metavar="NAME", help="the name its sessions belong to (default: what the agent calls itself)"
    )
    parser.add_argument(
        "--on-lost-context",
        choices=("seed", "refuse", "new"),
        default="seed",
        help="where the agent has forgotten a conversation: tell it again, answer -32002, begin anew (default: seed)",
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="append all that client and agent say to a file, as JSON lines, without keys",
    )
    _add_common_arguments(parser)
    chosen = parser.parse_args(arguments)

    from holdfast_app.cli.wrap import wrap_agent  # noqa: PLC0415  (`--help` needs none of it)

    return _to_the_end(wrap_agent, chosen)


@cache
def _terminal_width() -> int:
    try:
        return int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size().columns or 80
    except (OSError, ValueError):
        return 80


def _help_formatter(prog: str) -> argparse.HelpFormatter:
    """Return what writes the help, as wide as the terminal.

    Without a width argparse makes one for every argument that is added and asks `shutil` each time: 3 ms.
    """
    from argparse import RawDescriptionHelpFormatter  # noqa: PLC0415

    return RawDescriptionHelpFormatter(prog, width=_terminal_width() - 2)


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store", metavar="ADDRESS", help="where sessions are kept (default: $HOLDFAST_STORE, or your data directory)"
    )
    parser.add_argument(
        "--protocol", choices=("1", "2", "auto"), default="auto", help="protocol versions to speak (default: auto)"
    )
    parser.add_argument(
        "--remember", action="store_true", help="let `holdfast web` start this agent too, from now on (agents.toml)"
    )
    _add_log_arguments(parser)


def _to_the_end(serve: Callable[[argparse.Namespace], NoReturn], chosen: argparse.Namespace) -> int:
    """Serve until the process ends; return the status to exit with where it could not begin."""
    from holdfast.errors import HoldfastError  # noqa: PLC0415

    try:
        serve(chosen)
    except HoldfastError as e:
        from holdfast.view.safe_text import safe_text  # noqa: PLC0415

        sys.stderr.write(f"holdfast: {safe_text(str(e))}\n")
        return 1


def _add_log_arguments(parser: argparse.ArgumentParser) -> None:
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


def _add_author_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what an author looks into an agent with."""
    parser.add_argument("--wire", action="store_true", help="write every message, both ways, to stderr")
    parser.add_argument("--wire-file", metavar="FILE", help="append every message, both ways, to a file")
    parser.add_argument(
        "--watch-loop",
        metavar="SECONDS",
        type=float,
        help="log where a handler blocks the event loop for so long (with --log-level debug and info: 1)",
    )
