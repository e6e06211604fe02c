"""`holdfast run`: an agent on stdin and stdout."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING, NoReturn

from holdfast.cli.loading import load_agent
from holdfast.server.host import Host
from holdfast.server.stdio import run_to_the_end, serve_stdio

if TYPE_CHECKING:
    import argparse

    from holdfast.mcp import Server


def run_agent(arguments: argparse.Namespace) -> NoReturn:
    """Serve until the client is gone."""
    logging.basicConfig(
        level=arguments.log_level.upper(),
        filename=arguments.log_file,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    agent = load_agent(arguments.agent)
    servers: tuple[Server, ...] = ()
    if arguments.mcp_config is not None:
        from holdfast.mcp.config import read_config  # noqa: PLC0415  (few have one)

        servers = read_config(arguments.mcp_config)

    gc.freeze()
    gc.enable()

    async def serve() -> None:
        await serve_stdio(Host(agent, store=arguments.store, protocol=arguments.protocol, servers=servers))

    run_to_the_end(serve())
