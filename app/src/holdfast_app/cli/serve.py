"""`holdfast serve`: an agent over WebSocket and HTTP."""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from holdfast_app.cli.agent_command import AgentCommand, command_behind
from holdfast_app.cli.hosting_options import check_hosting, has_launcher, hosting_options, make_hosting, make_workspaces
from holdfast_app.cli.node_options import node_address
from holdfast_app.cli.server_files import LocalOrTokens, announced, local_token, server_files

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from holdfast.engine import AgentPort
    from holdfast.server.audit import AuditLog
    from holdfast.server.host import Host, ProtocolChoice
    from holdfast.server.remote import RemoteServer, TokenFile, Workspaces
    from holdfast.store import SessionStore
    from holdfast_app.cli.server_files import ServerFiles
    from holdfast_app.sandbox import Hosting
    from holdfast_app.web import WebPages
    from holdfast_app.wrap import Launch, ProxyPort

HELP = """Serve an agent over WebSocket and HTTP: to browsers, phones, and with `holdfast connect` to every editor.

AGENT is a Python file that declares an agent (FILE or FILE:NAME), or `demo`, or `code`. Any other ACP agent is given by
its command, behind `--`:

\b
  holdfast serve weather.py                    on this machine, at http://127.0.0.1:8180/acp
  holdfast serve -- gemini --acp               the same for an agent that is not ours
  holdfast serve weather.py --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
                                               for others; give each of them a token: holdfast token new ada
  holdfast serve weather.py --web              with the page for browsers
  holdfast serve demo --port 8181 --no-auth    for tests: everybody on this machine is let in

\b
  holdfast serve --host 0.0.0.0 … --workspace '/srv/{principal}' --as-user 'agent-{principal}' -- gemini --acp
                                               for a team: each person's agent is another user of this machine

Sessions are opened in directories of this machine. You may choose any, as long as others cannot reach the server.
Everybody else, and everybody on a server that others can reach, has those of --workspace; without it, one of their own
beside the store.

On many machines, with sessions in PostgreSQL, every server is a node: a client connects to any of them, and one that
does not have its session passes everything on to the one that does. They know each other by a secret:

\b
  export HOLDFAST_STORE=postgresql://… HOLDFAST_NODE_SECRET=$(openssl rand -hex 32)      the same on all
  holdfast serve weather.py --node-url http://127.0.0.1:8180
  holdfast serve weather.py --port 8181 --node-url http://127.0.0.1:8181

Nobody is let in without a token. The one of this machine's user is found by `holdfast connect` and `holdfast chat` by
themselves. All limits can be put into a file: --config serve.toml.
"""


@click.command("serve", cls=AgentCommand, help=HELP)
@click.argument("agent", metavar="[AGENT | -- COMMAND…]", required=False, type=click.Path())
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=8180, show_default=True, type=click.IntRange(0, 65535), help="The port; 0 is any.")
@click.option(
    "--name", "names", metavar="HOST[:PORT]", multiple=True, help="Another name it is asked under, as behind a proxy."
)
@click.option("--origin", "origins", metavar="URL", multiple=True, help="Another page whose scripts may use it.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A certificate (PEM).")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Its key (PEM).")
@click.option("--insecure", is_flag=True, help="Listen to other machines without TLS: behind a proxy that has it.")
@click.option("--no-auth", is_flag=True, help="Let in everybody on this machine; refused for any other address.")
@click.option(
    "--tokens", type=click.Path(dir_okay=False, path_type=Path), help="The file of tokens (default: beside the store)."
)
@hosting_options
@click.option("--web", "has_page", is_flag=True, help="Serve the web page too: everybody sees their own sessions.")
@click.option("--remember", is_flag=True, help="Let `holdfast web` start this agent too, from now on (agents.toml).")
@click.option("--store", metavar="FILE", help="Where sessions are kept, as for `holdfast run`.")
@click.option(
    "--node-url",
    metavar="URL",
    help="Where the other nodes on the same PostgreSQL reach this one, as http://10.0.0.7:8180.",
)
@click.option(
    "--node-secret-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with the secret of the nodes (default: HOLDFAST_NODE_SECRET).",
)
@click.option("--protocol", type=click.Choice(["1", "2", "auto"]), default="auto", show_default=True)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TOML file with [limits], [environment], [principals.NAME].",
)
@click.option("--max-connections", type=click.IntRange(1), help="Connections of one principal at once (256).")
@click.option(
    "--max-turns",
    type=click.IntRange(1),
    help="Turns at once, of all principals (2000, or a half of the files that the process may open).",
)
@click.option("--max-message", type=click.IntRange(1_024), metavar="BYTES", help="The longest message (16 MiB).")
@click.option("--grace", type=click.FloatRange(0), metavar="SECONDS", help="What turns get to end on SIGTERM (30).")
@click.option(
    "--log-level", default="info", type=click.Choice(["debug", "info", "warning", "error"]), show_default=True
)
@click.option("--log-format", default="text", type=click.Choice(["text", "json"]), help="json: one object a line.")
@click.option(
    "--agent-name",
    metavar="NAME",
    help="The name its sessions belong to (default: what the agent calls itself).",
)
@click.option(
    "--on-lost-context", type=click.Choice(["seed", "refuse", "new"]), default="seed", help="As for `holdfast wrap`."
)
@click.pass_context
def serve(ctx: click.Context, agent: str | None, **options: Any) -> int:
    """See HELP."""
    from holdfast.diagnostics.logging_setup import start_logging  # noqa: PLC0415
    from holdfast.subprocesses.undumpable import make_undumpable  # noqa: PLC0415  (`--help` needs none of it)

    command = command_behind(ctx, agent)
    if command is None and agent is None:
        raise click.UsageError("serve what? Name a file, as in `holdfast serve weather.py`, or `demo`")
    make_undumpable()  # the environment may hold keys, and agents run commands (P10)
    called = agent or options["agent_name"] or command[0] if command else agent or ""
    start_logging(options["log_level"], agent=called, store=options["store"], format=options["log_format"])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # what it tells, we tell without paths
    asyncio.run(_serve(agent, command, options))
    return 0


async def _serve(agent: str | None, command: tuple[str, ...] | None, options: Mapping[str, Any]) -> None:
    from holdfast.server.remote.serving import listen, serve  # noqa: PLC0415
    from holdfast.store.address import MEMORY  # noqa: PLC0415

    _check(options)
    options = {**options, "node": node_address(options)}
    check_hosting(options, command)
    listening = listen(options["host"], options["port"])
    port = listening.getsockname()[1]
    hosted = _hosted(options)
    async with _agent_port(agent, command, options, hosted) as agent_port:
        server = _remote_server(_host(agent_port, options), options, port, hosted)
        is_found = options["has_page"] and options["store"] != MEMORY
        with announced(hosted.files, _base(options, port)) if is_found else nullcontext():
            await serve(
                server, listening, tls_cert=options["tls_cert"], tls_key=options["tls_key"],
                on_ready=lambda: _greet(server, options, port),
            )  # fmt: skip


def _check(options: Mapping[str, Any]) -> None:
    """Refuse what would let strangers in, or listen in (H6)."""
    from holdfast.server.remote.names import is_loopback  # noqa: PLC0415

    here = is_loopback(options["host"])
    if (options["tls_cert"] is None) is not (options["tls_key"] is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    if options["no_auth"] and not here:
        raise click.UsageError("--no-auth is for this machine alone; make tokens with `holdfast token new NAME`")
    if not here and options["tls_cert"] is None and not options["insecure"]:
        raise click.UsageError(
            f"at {options['host']} others could listen in: give --tls-cert and --tls-key,"
            " or --insecure behind a proxy that has them"
        )


class _Hosted(NamedTuple):
    """What is decided before the agent is there: who may work where, how it is started, where that is noted."""

    files: ServerFiles
    tokens: TokenFile
    workspaces: Workspaces
    hosting: Hosting
    audit: AuditLog | None


def _hosted(options: Mapping[str, Any]) -> _Hosted:
    from holdfast.server.audit import AuditLog  # noqa: PLC0415
    from holdfast.server.remote import TokenFile  # noqa: PLC0415
    from holdfast.store.address import MEMORY  # noqa: PLC0415

    files = server_files(options["store"])
    tokens = TokenFile(options["tokens"] or files.tokens)
    workspaces = make_workspaces(options, tokens, files.workspaces)
    unwanted = options["no_audit"] or (options["audit"] is None and options["store"] == MEMORY)
    audit = None if unwanted else AuditLog(options["audit"] or files.audit)

    def used(principal: str, session: str, method: str, what: str) -> None:
        if audit is not None:
            audit.record(method, principal, session=session, what=what)

    hosting = make_hosting(options, workspaces, files.homes, _settings(options), used)
    return _Hosted(files, tokens, workspaces, hosting, audit)


def _remote_server(host: Host, options: Mapping[str, Any], port: int, hosted: _Hosted) -> RemoteServer:
    from holdfast.server.remote import Everybody, RemoteServer, SignIn, names_for  # noqa: PLC0415
    from holdfast.store.address import MEMORY  # noqa: PLC0415

    names = names_for(options["host"], port, options["names"], options["origins"])
    authenticator = Everybody() if options["no_auth"] else local_token(hosted.files, hosted.tokens)
    sign_in = SignIn(hosted.files.cookie_key)
    pages = _pages(host, options) if options["has_page"] else None
    return RemoteServer(
        host,
        pages=pages,
        shared=None if pages is None else pages.shared,
        on_close=None if pages is None else pages.close,
        names=names,
        authenticator=authenticator,
        sign_in=sign_in,
        limits=_limits(options),
        keep=None if options["store"] == MEMORY else hosted.files.connections,
        workspaces=hosted.workspaces,
        programs=options["mcp_programs"] or has_launcher(options),
        audit=hosted.audit,
    )


def _pages(host: Host, options: Mapping[str, Any]) -> WebPages:
    """Return the web page of a server: it talks to the agent that is served, and to no other."""
    from holdfast.store.address import MEMORY  # noqa: PLC0415
    from holdfast_app.share_links import ShareLinks  # noqa: PLC0415
    from holdfast_app.web import OneAgent, WebPages  # noqa: PLC0415

    async def library() -> SessionStore:
        return cast("SessionStore", (await host.engine()).store)

    secret = None if host.node is None else host.node.secret
    if options["store"] == MEMORY:
        return WebPages(library, OneAgent(host), secret=secret)
    files = server_files(options["store"])
    shares = ShareLinks(files.shares)
    directory = files.tokens.parent / "web"
    return WebPages(library, OneAgent(host), directory=directory, shares=shares, secret=secret)


@asynccontextmanager
async def _agent_port(
    agent: str | None, command: tuple[str, ...] | None, options: Mapping[str, Any], hosted: _Hosted
) -> AsyncGenerator[AgentPort]:
    """Yield the agent that the command line names: one of ours, or another process."""
    if command is None:
        from holdfast.agent.port import AuthorAgent  # noqa: PLC0415
        from holdfast_app.cli.load_agent import load_agent  # noqa: PLC0415

        loaded = load_agent(agent or "", options["agent_name"])
        if options["remember"]:
            from holdfast_app.cli.remember import agents_file, entry_of_file  # noqa: PLC0415

            agents_file(options["store"]).put(loaded.name, entry_of_file(agent or ""))
        yield AuthorAgent(loaded)
        return
    from holdfast.store import store_mark  # noqa: PLC0415
    from holdfast_app.cli.agent_stderr import AgentStderr  # noqa: PLC0415
    from holdfast_app.wrap import Launch  # noqa: PLC0415

    launch = Launch(
        command,
        name=options["agent_name"],
        lost_context=options["on_lost_context"],
        on_stderr=AgentStderr().take,
        hosting=hosted.hosting,
        store_mark=store_mark(options["store"]),
    )
    async with _proxy(launch, options) as port:
        yield port


def _proxy(launch: Launch, options: Mapping[str, Any]) -> ProxyPort:
    if options["remember"]:
        from holdfast_app.cli.remember import RememberingPort  # noqa: PLC0415

        return RememberingPort(launch, options["store"])
    from holdfast_app.wrap import ProxyPort  # noqa: PLC0415

    return ProxyPort(launch)


def _host(port: AgentPort, options: Mapping[str, Any]) -> Host:
    from holdfast.engine import EngineLimits  # noqa: PLC0415
    from holdfast.server.host import Host  # noqa: PLC0415
    from holdfast.server.remote.limits import turns_at_most  # noqa: PLC0415
    from holdfast.store import EventWindow  # noqa: PLC0415
    from holdfast_app.cli.name_joining import join_and_log  # noqa: PLC0415

    protocol = cast("ProtocolChoice", options["protocol"])
    most = options["max_turns"] or turns_at_most()
    limits = EngineLimits(keep_events=EventWindow(), turns=most)
    store, node = options["store"], options["node"]
    return Host(
        port, store=store, protocol=protocol, limits=limits, node=node, name="holdfast serve", on_open=join_and_log
    )


def _limits(options: Mapping[str, Any]) -> Any:
    import msgspec  # noqa: PLC0415

    from holdfast.server.remote import RemoteLimits  # noqa: PLC0415

    limits = RemoteLimits()
    try:
        chosen = msgspec.convert(_settings(options).get("limits", {}), dict[str, float])
        limits = limits._replace(**{name: type(getattr(limits, name))(value) for name, value in chosen.items()})
    except (msgspec.ValidationError, AttributeError, ValueError) as e:
        raise click.UsageError(f"{options['config']} makes no sense: {e}") from None
    flags = {
        "connections": options["max_connections"],
        "message": options["max_message"],
        "grace": options["grace"],
    }
    return limits._replace(**{name: value for name, value in flags.items() if value is not None})


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the file of settings says: [limits], [environment], [principals.NAME]."""
    import msgspec  # noqa: PLC0415

    if options["config"] is None:
        return {}
    try:
        return msgspec.toml.decode(options["config"].read_bytes(), type=dict[str, dict[str, Any]])
    except msgspec.DecodeError as e:
        raise click.UsageError(f"{options['config']} makes no sense: {e}") from None


def _greet(server: RemoteServer, options: Mapping[str, Any], port: int) -> None:
    """Tell how to connect."""
    base = _base(options, port)
    lines = [f"Serving at {base}{server.path}", "", f"  in a browser      {_for_a_browser(server, options, base)}"]
    token, tokens = _options_to_find_tokens(options)
    lines += [
        f"  in an editor      holdfast connect {base}{server.path}{token}",
        f"  in the terminal   holdfast chat {base}{server.path}{token}",
    ]
    if not options["no_auth"]:
        link = "" if not options["has_page"] else f" --link --url {base}" if tokens else " --link"
        lines.append(f"  for others        holdfast token new NAME{link}{tokens}")
    sys.stderr.write("\n".join(lines) + "\n\n")
    sys.stderr.flush()
    logging.getLogger(__name__).info("Ready")


def _base(options: Mapping[str, Any], port: int) -> str:
    """Return the address under which the server is reached."""
    scheme = "http" if options["tls_cert"] is None else "https"
    if options["names"]:
        return f"{scheme}://{options['names'][0]}"
    address = options["host"] if options["host"] not in ("0.0.0.0", "::") else "127.0.0.1"  # noqa: S104
    return f"{scheme}://{address}:{port}"


def _for_a_browser(server: RemoteServer, options: Mapping[str, Any], base: str) -> str:
    """Return what to open in a browser, or what is missing for that."""
    if not isinstance(server.authenticator, LocalOrTokens):
        return f"{base}/" if options["has_page"] else "add --web for a page"
    needs = "" if options["has_page"] else "; add --web for a page"
    return f"{base}/link/{server.sign_in.new_link(server.authenticator.local)}   (signs in once, for an hour{needs})"


def _options_to_find_tokens(options: Mapping[str, Any]) -> tuple[str, str]:
    """Return what commands need so as to find the user's own token, and the file of tokens, where they would not look.

    They look beside the store that they would use themselves.
    """
    import shlex  # noqa: PLC0415

    from holdfast_app.cli.server_files import server_files  # noqa: PLC0415

    ours, theirs = server_files(options["store"]), server_files()
    is_elsewhere = ours.local_token != theirs.local_token and not options["no_auth"]
    tokens = options["tokens"] or ours.tokens
    return (
        f" --token-file {shlex.quote(str(ours.local_token.absolute()))}" if is_elsewhere else "",
        f" --tokens {shlex.quote(str(tokens.absolute()))}" if tokens != theirs.tokens else "",
    )
