"""`holdfast connect`: a remote agent on stdin and stdout."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from holdfast.transport import Transport

ANSWER_SECONDS = 30.0
"""So long a server may take to answer an attempt to connect."""

HELP = """Use a remote agent in any editor: this is the command to put into the editor's settings.

URL is what `holdfast serve` prints. The connection may be cut, and the server started again: the editor sees a pause.

\b
  holdfast connect http://127.0.0.1:8180/acp
  holdfast connect https://agents.example.org/acp --token-file ~/.config/holdfast/token
  holdfast connect https://… --map /home/ada/project=/srv/project

Without --token-file the token is in $HOLDFAST_TOKEN; a server on this machine that is yours needs none. With --map,
paths have one name here and another one there: the project has to be in both places.
"""


@click.command("connect", help=HELP)
@click.argument("url")
@click.option(
    "--token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file that holds the token."
)
@click.option("--map", "maps", metavar="LOCAL=REMOTE", multiple=True, help="A directory here, and its name there.")
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False),
    help="The certificate of the authority that signed the server's.",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="How long the server may be out of reach when this begins.",
)
@click.option("--log-level", default="warning", type=click.Choice(["debug", "info", "warning", "error"]))
def connect(
    url: str, token_file: Path | None, maps: tuple[str, ...], ca: str | None, wait: float, log_level: str
) -> int:
    """See HELP."""
    from holdfast.run.by_hand import tell_what_it_waits_for  # noqa: PLC0415
    from holdfast.server.stdio import run_to_the_end  # noqa: PLC0415
    from holdfast.subprocesses.undumpable import make_undumpable  # noqa: PLC0415  (`--help` needs none of it)

    make_undumpable()
    tell_what_it_waits_for([url])
    _log_to_stderr(log_level)
    run_to_the_end(_relay(url, find_token(url, token_file), list(maps), ca, wait))


def _log_to_stderr(level: str) -> None:
    from holdfast.diagnostics.logging_setup import TextLines  # noqa: PLC0415  (`--help` needs none of it)

    stream = logging.StreamHandler(sys.stderr)
    stream.setFormatter(TextLines("holdfast connect: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[stream])


def find_token(url: str, token_file: Path | None) -> str | None:
    """Return the token for a server: of the file, of the environment, or for one that is here, of this user."""
    from holdfast_app.cli.server_files import read_token, server_files  # noqa: PLC0415

    if token_file is not None:
        return read_token(token_file)
    if named := os.environ.get("HOLDFAST_TOKEN"):
        return named
    local = server_files().local_token
    return read_token(local) if is_here(url) and local.is_file() else None


def is_here(url: str) -> bool:
    """Return whether a server is on this machine: no other is given the token of this machine's user."""
    from urllib.parse import urlsplit  # noqa: PLC0415

    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


async def _relay(url: str, token: str | None, maps: list[str], ca: str | None, patience: float) -> None:
    from holdfast.errors import ConnectionLost  # noqa: PLC0415
    from holdfast.transport import open_stdio  # noqa: PLC0415
    from holdfast.transport.websocket_client import connect_websocket  # noqa: PLC0415
    from holdfast.view.safe_text import safe_text  # noqa: PLC0415
    from holdfast_app.bridge import Bridge, PathMap  # noqa: PLC0415

    paths = PathMap.parse(maps) if maps else None
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    tls = None
    if ca is not None:
        import ssl  # noqa: PLC0415

        tls = ssl.create_default_context(cafile=ca)

    async def once() -> Transport:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await connect_websocket(url, headers=headers, tls=tls)
        except TimeoutError:
            raise ConnectionLost(f"{url} has not answered for {ANSWER_SECONDS:g} seconds") from None

    try:
        await Bridge(open_stdio(), once, paths, patience=patience).run()
    except ConnectionLost as e:
        sys.stderr.write(f"holdfast connect: {safe_text(str(e))}\n")
        raise SystemExit(1) from None
