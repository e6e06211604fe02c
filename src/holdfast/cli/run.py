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


def run_agent(arguments: argparse.Namespace) -> NoReturn:
    """Serve until the client is gone."""
    logging.basicConfig(
        level=arguments.log_level.upper(),
        filename=arguments.log_file,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    agent = load_agent(arguments.agent)

    gc.freeze()
    gc.enable()

    async def serve() -> None:
        await serve_stdio(Host(agent, store=arguments.store, protocol=arguments.protocol))

    run_to_the_end(serve())
