"""`holdfast wrap`: another agent on stdin and stdout, with sessions that hold."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, NoReturn

from holdfast.diagnostics.logging_setup import start_logging
from holdfast.proxy.launch import Launch
from holdfast.proxy.port import ProxyPort
from holdfast.server.host import Host
from holdfast.server.stdio import run_to_the_end, serve_stdio

if TYPE_CHECKING:
    import argparse


def wrap_agent(arguments: argparse.Namespace) -> NoReturn:
    """Serve until the client is gone."""
    command = tuple(arguments.command)
    start_logging(
        arguments.log_level,
        agent=arguments.name or command[0],
        store=arguments.store,
        file=arguments.log_file,
        format=arguments.log_format,
    )
    launch = Launch(
        command,
        name=arguments.name,
        lost_context=arguments.on_lost_context,
        on_stderr=show_stderr,
    )
    gc.freeze()
    gc.enable()

    async def serve() -> None:
        async with ProxyPort(launch) as port:
            await serve_stdio(Host(port, store=arguments.store, protocol=arguments.protocol))

    run_to_the_end(serve())


def show_stderr(chunk: bytes) -> None:
    """Write what the agent writes to stderr to ours: editors show it, or keep it in their logs."""
    try:
        sys.stderr.buffer.write(chunk)
        sys.stderr.buffer.flush()
    except (OSError, ValueError, AttributeError):  # nobody reads it, or there is none
        return
