"""`holdfast web`: the sessions of this machine in the browser."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Any

import click

from holdfast_app.cli.agent_command import AgentCommand, command_behind
from holdfast_app.cli.store_arguments import store_option

if TYPE_CHECKING:
    import socket

    from holdfast.server.remote import RemoteServer
    from holdfast.store import SessionStore
    from holdfast_app.web import PageAgent
    from holdfast_app.web.agents_file import AgentEntry, AgentsFile

PORT = 8190

HELP = """Read, search and go on with the sessions of this machine, of all agents, in the browser.

\b
  holdfast web                              opens the browser, with a link that works once
  holdfast web --no-browser                 prints the link
  holdfast web add -- gemini --acp          let the page start an agent: then you can talk to it there
  holdfast web add weather.py               the same for an agent of yours
  holdfast web agents                       which agents the page may start
  holdfast web remove gemini                no more

The page is for you alone: it listens on this machine only. Sessions of agents that it may not start are there to read.
`holdfast serve AGENT --web` is the same page on a server, for everybody who has a token.
"""


@click.group("web", invoke_without_command=True, help=HELP)
@click.option("--port", type=click.IntRange(0, 65535), help=f"The port (default: {PORT}, or any that is free).")
@click.option("--no-browser", is_flag=True, help="Print the link instead of opening it.")
@store_option
@click.option("--log-level", default="warning", type=click.Choice(["debug", "info", "warning", "error"]))
@click.pass_context
def web(ctx: click.Context, port: int | None, *, no_browser: bool, place: str | None, log_level: Any) -> None:
    """See HELP."""
    ctx.obj = place
    if ctx.invoked_subcommand is not None:
        return
    from holdfast.diagnostics.logging_setup import start_logging  # noqa: PLC0415
    from holdfast.subprocesses.undumpable import make_undumpable  # noqa: PLC0415  (`--help` needs none of it)

    make_undumpable()  # the environment may hold keys, and agents run commands (P10)
    start_logging(log_level, agent="web", store=place)
    asyncio.run(_serve(place, port, opens=not no_browser))


async def _serve(place: str | None, port: int | None, *, opens: bool) -> None:
    from holdfast.server.remote.serving import serve  # noqa: PLC0415

    listening = _listen(port)
    at = listening.getsockname()[1]
    server = page_server(place, at)
    await serve(server, listening, on_ready=lambda: _greet(server, at, opens=opens))


def _listen(port: int | None) -> socket.socket:
    from holdfast.errors import UsageError  # noqa: PLC0415
    from holdfast.server.remote.serving import listen  # noqa: PLC0415

    try:
        return listen("127.0.0.1", PORT if port is None else port)
    except UsageError:
        if port is not None:
            raise
        return listen("127.0.0.1", 0)


def page_server(place: str | None, port: int) -> RemoteServer:
    """Return the server of the page on a store: for the user of this machine, with the agents that may be started."""
    from holdfast.server.host import Host  # noqa: PLC0415
    from holdfast.server.remote import RemoteServer, SignIn, TokenFile, names_for  # noqa: PLC0415
    from holdfast_app.cli.remember import how_to_add  # noqa: PLC0415
    from holdfast_app.cli.server_files import local_token, server_files  # noqa: PLC0415
    from holdfast_app.share_links import ShareLinks  # noqa: PLC0415
    from holdfast_app.web import WebPages  # noqa: PLC0415
    from holdfast_app.web.agents_file import AgentsOfFile  # noqa: PLC0415
    from holdfast_app.web.no_agent import NoAgent  # noqa: PLC0415

    files = server_files(place)
    agents = AgentsOfFile(
        _agents_file(place), lambda name, entry: start_agent(name, entry, place), lambda name: how_to_add(name, place)
    )
    pages = WebPages(
        lambda: _open_library(place), agents, directory=files.tokens.parent / "web", shares=ShareLinks(files.shares)
    )
    return RemoteServer(
        Host(NoAgent(), store=place),
        names=names_for("127.0.0.1", port),
        authenticator=local_token(files, TokenFile(files.tokens.with_name("no-tokens.toml"))),
        sign_in=SignIn(files.cookie_key),
        pages=pages,
        shared=pages.shared,
        on_close=pages.close,
    )


async def _open_library(place: str | None) -> SessionStore:
    from holdfast.store import open_store  # noqa: PLC0415
    from holdfast_app.cli.name_joining import join_and_log  # noqa: PLC0415

    store = await open_store(place)
    await join_and_log(store)
    return store


def start_agent(name: str, entry: AgentEntry, place: str | None) -> PageAgent:
    """Return an agent of `agents.toml`, which is started when somebody talks to it."""
    from holdfast.engine import EngineLimits  # noqa: PLC0415
    from holdfast.server.host import Host  # noqa: PLC0415
    from holdfast.store import EventWindow  # noqa: PLC0415
    from holdfast_app.web import PageAgent  # noqa: PLC0415

    limits = EngineLimits(keep_events=EventWindow())
    if entry.run is not None:
        from holdfast.agent.port import AuthorAgent  # noqa: PLC0415
        from holdfast_app.cli.load_agent import load_agent  # noqa: PLC0415

        host = Host(AuthorAgent(load_agent(entry.run, name)), store=place, limits=limits, name="holdfast web")
        return PageAgent(name, host, command=("holdfast", "run", entry.run))
    from holdfast.store import store_mark  # noqa: PLC0415
    from holdfast_app.cli.agent_stderr import AgentStderr  # noqa: PLC0415
    from holdfast_app.wrap import Launch, ProxyPort  # noqa: PLC0415

    launch = Launch(entry.command, name=name, on_stderr=AgentStderr().take, store_mark=store_mark(place))
    port = ProxyPort(launch)
    return PageAgent(
        name, Host(port, store=place, limits=limits, name="holdfast web"), port.close, command=entry.command
    )


def _greet(server: RemoteServer, port: int, *, opens: bool) -> None:
    from holdfast_app.cli.server_files import LocalOrTokens  # noqa: PLC0415

    assert isinstance(server.authenticator, LocalOrTokens)
    link = f"http://127.0.0.1:{port}/link/{server.sign_in.new_link(server.authenticator.local)}"
    if opens:
        import threading  # noqa: PLC0415
        import webbrowser  # noqa: PLC0415

        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
    lines = [f"Your sessions are at http://127.0.0.1:{port}", ""]
    lines += [f"  in a browser   {link}   (works once, for an hour)", "  Ctrl-C ends it; what runs is stored."]
    sys.stderr.write("\n".join(lines) + "\n\n")
    sys.stderr.flush()
    logging.getLogger(__name__).info("Ready")


# The agents that may be started


@web.command("add", cls=AgentCommand)
@click.argument("agent", metavar="[FILE | -- COMMAND…]", required=False)
@click.option("--name", help="The name its sessions belong to (default: what the agent calls itself).")
@click.pass_context
def add(ctx: click.Context, agent: str | None, name: str | None) -> None:
    """Let the page start an agent: a Python FILE as for `holdfast run`, or any other by its COMMAND.

    \b
      holdfast web add weather.py
      holdfast web add -- gemini --acp
      holdfast web add --name claude -- claude-agent-acp

    Without --name a COMMAND is started once, and asked what it calls itself.
    """  # noqa: D301  (where `\b` stands, click keeps the lines)
    command = command_behind(ctx, agent)
    if command is None and agent is None:
        raise click.UsageError("add which agent? Name a file, or a command behind `--`")
    named, entry = _named(agent, command, name, ctx.obj)
    file = _agents_file(ctx.obj)
    changed = file.put(named, entry)
    click.echo(f"The page may start {named}{'' if changed else ' already'}. It is in {file.path}.")


@web.command("remove")
@click.argument("name")
@click.pass_context
def remove(ctx: click.Context, name: str) -> int:
    """Let the page start an agent no more; its sessions stay, to read."""
    if _agents_file(ctx.obj).remove(name):
        return 0
    click.echo(f"There is no agent {name!r}; `holdfast web agents` lists them.", err=True)
    return 1


@web.command("agents")
@click.pass_context
def agents(ctx: click.Context) -> None:
    """List the agents that the page may start."""
    entries = _agents_file(ctx.obj).entries()
    for name, entry in sorted(entries.items()):
        click.echo(f"{name}\t{entry.run or ' '.join(entry.command)}")
    if not entries:
        click.echo("None yet; `holdfast web add --help` says how to add one.", err=True)


def _agents_file(place: str | None) -> AgentsFile:
    from holdfast_app.cli.remember import agents_file  # noqa: PLC0415

    return agents_file(place)


def _named(
    agent: str | None, command: tuple[str, ...] | None, name: str | None, place: str | None
) -> tuple[str, AgentEntry]:
    """Return the name and the entry of an agent that a command line names."""
    from holdfast_app.cli.remember import entry_of_command, entry_of_file  # noqa: PLC0415
    from holdfast_app.known_agents import one_name  # noqa: PLC0415

    if command is None:
        from holdfast_app.cli.load_agent import load_agent  # noqa: PLC0415

        return load_agent(agent or "", name).name, entry_of_file(agent or "")
    entry = entry_of_command(command)
    return one_name(name) if name else asyncio.run(_name_of(entry.command, place)), entry


async def _name_of(command: tuple[str, ...], place: str | None) -> str:
    """Start an agent and return what it calls itself."""
    from holdfast.model import LOCAL  # noqa: PLC0415
    from holdfast.store import store_mark  # noqa: PLC0415
    from holdfast_app.web.agents import Visitor  # noqa: PLC0415
    from holdfast_app.wrap import Launch, ProxyPort  # noqa: PLC0415

    async with ProxyPort(Launch(command, store_mark=store_mark(place))) as port:
        return (await port.describe(Visitor(LOCAL))).name
