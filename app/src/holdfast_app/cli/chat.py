"""The command line of `holdfast chat`; the chat itself is in `holdfast_app.chat`, imported when needed."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import click

from holdfast_app.cli.agent_command import AgentCommand, command_behind
from holdfast_app.cli.completion import complete_sessions
from holdfast_app.known_agents import KNOWN_AGENTS

if TYPE_CHECKING:
    from holdfast.diagnostics import LogLevel
    from holdfast_app.chat.settings import Belonging, ChatSettings, PermissionChoice, PrintFormat

HELP = f"""Talk to an agent in the terminal.

AGENT is a Python file that declares one (FILE or FILE:NAME), `demo`, `code`, or an agent that you have:
{", ".join(KNOWN_AGENTS)}. Any other ACP agent is given by its command, behind `--`.
An agent that is not ours is wrapped, so that its sessions are kept as ours are:

\b
  holdfast chat weather.py
  holdfast chat gemini
  holdfast chat -- gemini --acp -m pro       the same agent, with options of yours
  holdfast chat --continue                   the newest session of this directory, with its agent
  holdfast chat --resume 3fa9                this session, with its agent
  holdfast chat https://agents.example.org/acp --cwd /srv/ada
  holdfast chat weather.py --continue
  echo "How warm is it?" | holdfast chat weather.py --print
  holdfast chat code --print --format json --approve-reads --timeout 300 --prompt "Review the last commit"

While you write an agent: what its code prints, warns and raises is shown, with the traceback. `--reload` starts it
again, in the same session, whenever you save it; `--wire` shows every message.

\b
  holdfast chat weather.py --reload
  holdfast chat weather.py --wire --log-level debug
"""


@click.command("chat", cls=AgentCommand, help=HELP)
@click.argument("agent", metavar="[AGENT | -- COMMAND…]", required=False, type=click.Path())
@click.argument("words", metavar="", nargs=-1)
@click.option(
    "--continue",
    "newest",
    is_flag=True,
    help="Go on with the newest session of this directory; without an AGENT, of any agent.",
)
@click.option(
    "--resume",
    metavar="ID",
    shell_complete=complete_sessions,
    help="Go on with this session; the beginning of its id is enough. Its agent need not be named.",
)
@click.option("--prompt", metavar="TEXT", help="The first thing to say.")
@click.option("--print", "prints", is_flag=True, help="Print the answer to --prompt, or to stdin, and nothing else.")
@click.option(
    "--format",
    "print_format",
    type=click.Choice(["text", "json", "quiet"]),
    help="With --print: the answer as it comes (text), every message of the protocol, one a line (json), or the last "
    "message alone (quiet).",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="With --print: how long the agent may take; the status is 3 if it takes longer.",
)
@click.option(
    "--permissions",
    type=click.Choice(["ask", "allow", "deny", "reads"]),
    help="What to do when the agent asks for permission (default: ask; deny where nobody can be asked).",
)
@click.option("--approve-reads", is_flag=True, help="Allow what only reads or searches: short for --permissions reads.")
@click.option(
    "--theme",
    type=click.Choice(["auto", "dark", "light"]),
    help="Colours for a dark or a light terminal (default: $HOLDFAST_THEME, or as the terminal says it is).",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="Show what the agent logs from this level on, and all that the agent's process writes to stderr "
    "(default: warning, for an agent in a Python file).",
)
@click.option("--wire", is_flag=True, help="Show every message that goes to the agent and comes from there.")
@click.option("--wire-file", metavar="FILE", help="Append every message to a file instead.")
@click.option("--reload", is_flag=True, help="Start the agent again, in the same session, when its file changes.")
@click.option("--verbose", is_flag=True, help="With --print: tell on stderr what else happens.")
@click.option(
    "--model",
    "models",
    metavar="PROVIDER:NAME",
    multiple=True,
    help="For `code`: a model, as openai:gpt-5.2; may be given several times (default: $HOLDFAST_MODEL).",
)
@click.option(
    "--base-url",
    metavar="URL",
    help="For `code`: an endpoint that speaks OpenAI's protocol and has all models (default: $HOLDFAST_BASE_URL).",
)
@click.option(
    "--pass-env",
    metavar="NAME",
    multiple=True,
    help="For `code`: an environment variable that commands may see; may be given several times "
    "(default: $HOLDFAST_PASS_ENV).",
)
@click.option("--token-file", type=click.Path(exists=True, dir_okay=False), help="For a URL: a file with the token.")
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False),
    help="For a URL: the certificate of the authority that signed the server's.",
)
@click.option(
    "--map",
    "maps",
    metavar="LOCAL=REMOTE",
    multiple=True,
    help="For a URL: a directory here, and its name on the server.",
)
@click.option(
    "--cwd", "directory", metavar="DIR", help="The directory of the session (default: this one); for a URL, one there."
)
@click.option("--name", metavar="NAME", help="The name its sessions belong to (default: what the agent calls itself).")
@click.option("--store", "place", metavar="FILE", help="Where sessions are kept, as for `holdfast run` and `wrap`.")
@click.option(
    "--mcp-config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help='MCP servers for every session of the chat: a JSON file like {"mcpServers": {…}}.',
)
@click.option("--bare", is_flag=True, help="Talk to the command behind `--` itself, not through `holdfast wrap`.")
@click.option(
    "--protocol",
    type=click.Choice(["1", "2", "auto"]),
    default="auto",
    show_default=True,
    help="Protocol version to speak.",
)
@click.pass_context
def chat(ctx: click.Context, agent: str | None, words: tuple[str, ...], **options: object) -> int:
    """See HELP."""
    if words:
        raise click.UsageError(_words_told(cast("str", agent), words))
    command = command_behind(ctx, agent)
    if options["reload"] and options["prints"]:
        raise click.UsageError("--print ends with its answer, so there is nothing to --reload")
    if not options["prints"] and (options["print_format"] or options["timeout"]):
        raise click.UsageError("--format and --timeout go with --print")
    if options["approve_reads"] and options["permissions"] is not None:
        raise click.UsageError("--approve-reads and --permissions say two things; choose one")
    if options["newest"] and options["resume"] is not None:
        raise click.UsageError("--continue and --resume name two sessions; choose one")
    from holdfast.subprocesses.undumpable import make_undumpable  # noqa: PLC0415
    from holdfast_app.chat.print_answer import PrintOptions  # noqa: PLC0415
    from holdfast_app.chat.run_chat import run_chat  # noqa: PLC0415  (`--help` needs none of it)
    from holdfast_app.chat.settings import Inspection, chat_settings, settings_in  # noqa: PLC0415
    from holdfast_app.cli.model_options import use_models  # noqa: PLC0415

    make_undumpable()  # the agent's commands must not find here what the agent hides from them (P10)
    use_models(
        "",
        cast("tuple[str, ...]", options["models"]),
        cast("str | None", options["base_url"]),
        cast("tuple[str, ...]", options["pass_env"]),
    )
    protocol = cast("str", options["protocol"])
    asked = Asked(
        agent,
        command,
        cast("str | None", options["name"]),
        cast("str | None", options["resume"]),
        newest=bool(options["newest"]),
    )
    if (asked.newest or asked.resume is not None) and not options["bare"]:
        asked = _found_in_store(asked, cast("str | None", options["place"]), cast("str | None", options["directory"]))
    settings, remark = chat_settings(
        asked.agent,
        asked.command,
        cwd=os.getcwd(),  # noqa: PTH109
        newest=asked.newest,
        resume=asked.resume,
        name=asked.name,
        permissions="reads" if options["approve_reads"] else cast("PermissionChoice | None", options["permissions"]),
        store=cast("str | None", options["place"]),
        protocol="auto" if protocol == "auto" else cast("Literal[1, 2]", int(protocol)),
        inspection=Inspection(
            cast("LogLevel | None", options["log_level"]),
            bool(options["wire"]),
            cast("str | None", options["wire_file"]),
            bool(options["reload"]),
        ),
        bare=bool(options["bare"]),
        token_file=cast("str | None", options["token_file"]),
        ca=cast("str | None", options["ca"]),
        maps=_checked_maps(cast("tuple[str, ...]", options["maps"])),
    )
    if (directory := cast("str | None", options["directory"])) is not None:
        settings = settings_in(directory, settings)
    settings = replace(settings, theme=cast("str | None", options["theme"]), belongs_to=asked.belongs_to)
    if (mcp_config := cast("str | None", options["mcp_config"])) is not None:
        settings = _with_servers(settings, mcp_config)
    prints = PrintOptions(
        cast("PrintFormat", options["print_format"] or "text"),
        bool(options["verbose"]),
        cast("float | None", options["timeout"]),
    )
    return run_chat(settings, cast("str | None", options["prompt"]), remark, prints if options["prints"] else None)


class Asked(NamedTuple):
    """The agent and the session that a command line asks for."""

    agent: str | None
    command: tuple[str, ...] | None
    name: str | None
    resume: str | None
    newest: bool
    belongs_to: Belonging | None = None


def _found_in_store(asked: Asked, place: str | None, directory: str | None) -> Asked:
    """Return what is asked for, with what the store knows: the agent of a session, or whose the session is."""
    from holdfast_app.chat.settings import is_elsewhere  # noqa: PLC0415
    from holdfast_app.cli.session_agent import newest_session, session_to_resume, whose_session  # noqa: PLC0415
    from holdfast_app.cli.store_arguments import run_async  # noqa: PLC0415

    if is_elsewhere(asked.agent, asked.command):
        return asked
    if asked.agent is not None or asked.command is not None:
        known = run_async(whose_session(place, asked.resume)) if asked.resume is not None else None
        return asked if known is None else asked._replace(resume=known[0], belongs_to=known[1])
    if asked.resume is not None:
        found = run_async(session_to_resume(place, asked.resume))
    else:
        found = run_async(newest_session(place, directory and os.path.abspath(directory)))  # noqa: PTH100
    if found is None:
        return asked
    agent, command, name = found.start
    return asked._replace(agent=agent, command=command, name=asked.name or name, resume=found.id, newest=False)


def _checked_maps(maps: tuple[str, ...]) -> tuple[str, ...]:
    """Return what `--map` was given. Raises `UsageError` where that maps nothing: `connect` would say so late."""
    if maps:
        from holdfast_app.bridge import PathMap  # noqa: PLC0415  (few have one)

        PathMap.parse(list(maps))
    return maps


def _with_servers(settings: ChatSettings, file: str) -> ChatSettings:
    """Return the settings of a chat whose sessions all have the MCP servers of a file."""
    from holdfast.mcp.config import read_config  # noqa: PLC0415  (few have one)
    from holdfast.mcp.servers import described  # noqa: PLC0415

    servers = tuple(described(server) for server in read_config(file))
    return replace(settings, mcp_servers=servers, named=("--mcp-config", file, *settings.named))


def _words_told(agent: str, words: tuple[str, ...]) -> str:
    """Return what to write instead of words behind the agent: something to say, or the command of another agent."""
    said, command = shlex.join((agent, "--prompt", " ".join(words))), shlex.join((agent, *words))
    return (
        f"what is to be said stands behind --prompt: holdfast chat {said}\n"
        f"(the command of another agent stands behind `--`: holdfast chat -- {command})"
    )
