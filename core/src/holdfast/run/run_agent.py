"""`run_agent`: an agent on stdin and stdout."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from holdfast.agent.port import AuthorAgent
from holdfast.diagnostics.logging_setup import start_logging
from holdfast.errors import UsageError
from holdfast.run.by_hand import tell_what_it_waits_for
from holdfast.server.host import Host
from holdfast.server.stdio import run_to_the_end, serve_stdio
from holdfast.subprocesses.undumpable import make_undumpable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Generator

    from holdfast.agent import Agent
    from holdfast.mcp import Server
    from holdfast.peer import Observer


def run_agent(arguments: argparse.Namespace, load: Callable[[str, str | None], Agent]) -> NoReturn:
    """Serve the agent that `load` returns for its name and the name of its sessions, until the client is gone."""
    make_undumpable()  # the environment may hold keys, and agents run commands (P10)
    start_logging(
        arguments.log_level,
        agent=arguments.agent,
        store=arguments.store,
        file=arguments.log_file,
        format=arguments.log_format,
    )
    with _nothing_printed():
        agent = load(arguments.agent, arguments.name)
    if arguments.login is not None:
        log_in_here(agent, arguments.login)
        sys.exit(0)
    servers: tuple[Server, ...] = ()
    if arguments.mcp_config is not None:
        from holdfast.mcp.config import read_config  # noqa: PLC0415  (few have one)

        servers = read_config(arguments.mcp_config)

    tell_what_it_waits_for([arguments.agent], name=arguments.name, store=arguments.store)
    on_frame = _wire_log(arguments)
    watched = arguments.watch_loop or (1.0 if arguments.log_level in ("debug", "info") else None)
    gc.freeze()
    gc.enable()

    async def serve() -> None:
        if watched is not None:
            from holdfast.diagnostics.blocked_loop import watch_loop  # noqa: PLC0415  (for authors alone)

            watch_loop(asyncio.get_running_loop(), watched)
        port = AuthorAgent(agent, servers)
        await serve_stdio(Host(port, store=arguments.store, protocol=arguments.protocol), on_frame=on_frame)

    run_to_the_end(serve())


def log_in_here(agent: Agent, login_id: str) -> None:
    """Let the author's login talk to the user in this terminal; raise `UsageError` that says why it failed."""
    login = next((login for login in agent.logins if login.id == login_id), None)
    if login is None:
        known = ", ".join(login.id for login in agent.logins) or "none"
        raise UsageError(f"the agent has no way to log in called {login_id!r}, but {known}")

    async def log_in() -> None:
        await login.log_in()

    try:
        asyncio.run(log_in())
    except (Exception, KeyboardInterrupt) as e:
        raise UsageError(f"the login failed: {e or type(e).__name__}") from e


def _wire_log(arguments: argparse.Namespace) -> Observer | None:
    """Return what writes every message to where the command line says, or None."""
    if not arguments.wire and arguments.wire_file is None:
        return None
    from holdfast.diagnostics.wire_log import WireLog, line_writer  # noqa: PLC0415  (for authors alone)

    return WireLog("agent", line_writer(arguments.wire_file)).observe_frame


@contextmanager
def _nothing_printed() -> Generator[None]:
    """Send to stderr what is printed while the block runs: the client reads stdout from the first byte on (A1)."""
    try:
        stdout = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # somebody started us without one of them
        yield
        return
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)
