"""`main`: decides quickly between `run` and `wrap`, which editors wait for, and the commands for people."""

from __future__ import annotations

import gc
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from holdfast import Agent

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
    from holdfast.run.command import run_parser, to_the_end  # noqa: PLC0415
    from holdfast_app.cli.model_options import add_model_arguments  # noqa: PLC0415

    parser = run_parser("holdfast run", RUN, "a Python file (FILE or FILE:NAME), or `code`, or `demo`")
    _add_remember(parser)
    add_model_arguments(parser)
    chosen = parser.parse_args(arguments)

    from holdfast.run.run_agent import run_agent  # noqa: PLC0415  (`--help` needs none of it)

    return to_the_end(lambda: run_agent(chosen, partial(_load, chosen)))


def _load(chosen: argparse.Namespace, name: str, called: str | None) -> Agent:
    """Return the agent, with the models that the command line names for it; remember it if that is wanted."""
    from holdfast_app.cli.load_agent import load_agent  # noqa: PLC0415
    from holdfast_app.cli.model_options import use_models  # noqa: PLC0415

    use_models(name, chosen.model, chosen.base_url, chosen.pass_env)
    agent = load_agent(name, called)
    if chosen.remember:
        from holdfast_app.cli.remember import agents_file, entry_of_file  # noqa: PLC0415  (seldom wanted)

        agents_file(chosen.store).put(agent.name, entry_of_file(name))
    return agent


def wrap(arguments: Sequence[str]) -> int:
    """Wrap another agent."""
    gc.disable()
    import argparse  # noqa: PLC0415  (starts sooner than click: docs/decisions/002)

    from holdfast.run.command import add_common_arguments, help_formatter, to_the_end  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        "holdfast wrap",
        usage="holdfast wrap [OPTION …] -- COMMAND [ARGUMENT …]",
        description=WRAP,
        formatter_class=help_formatter,
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
    add_common_arguments(parser)
    _add_remember(parser)
    chosen = parser.parse_args(arguments)

    from holdfast_app.cli.wrap import wrap_agent  # noqa: PLC0415  (`--help` needs none of it)

    return to_the_end(lambda: wrap_agent(chosen))


def _add_remember(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--remember", action="store_true", help="let `holdfast web` start this agent too, from now on (agents.toml)"
    )
