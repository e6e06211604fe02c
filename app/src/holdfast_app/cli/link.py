"""`holdfast link`: another link that signs in a browser, from a server that runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

ANSWER_SECONDS = 30.0
"""So long a server may take to answer."""

HELP = """Print a new link that signs in a browser at the page of a server that runs: it works once, for an hour.

URL is where the page is, as `holdfast web` and `holdfast serve --web` print it. `holdfast serve --web` on the same
store is found without it:

\b
  holdfast link
  holdfast link http://127.0.0.1:8190
  holdfast link http://127.0.0.1:8190 --store other.db      where the server has --store too
  holdfast link https://agents.example.org --token-file ada.token

It signs in the person whose token is in --token-file or $HOLDFAST_TOKEN. Without one it signs in you, the user who runs
the server, by the token that the server keeps for you beside its store. `holdfast token new NAME --link` makes a token
and a link at once.
"""


@click.command("link", help=HELP)
@click.argument("url", required=False)
@click.option("--store", metavar="FILE", help="The store of the server, if it is not the usual one.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with the token of the person to sign in (default: your own, beside the store).",
)
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False),
    help="The certificate of the authority that signed the server's.",
)
def link(url: str | None, store: str | None, token_file: Path | None, ca: str | None) -> None:
    """See HELP."""
    found = url or address_of_server(store)
    click.echo(new_link(found, _token(url, store, token_file), ca))
    click.echo("It works once, for an hour.", err=True)


def address_of_server(store: str | None) -> str:
    """Return the address of the server that runs on a store; raise `UsageError` if there is none."""
    from holdfast.errors import UsageError  # noqa: PLC0415
    from holdfast_app.cli.server_files import running_server, server_files  # noqa: PLC0415

    if (found := running_server(server_files(store))) is not None:
        return found
    raise UsageError("no `holdfast serve --web` runs on this store; start it, or name the URL of the server")


def new_link(url: str, token: str | None, ca: str | None = None) -> str:
    """Ask a server for a link that signs in the person of a token."""
    base = url.rstrip("/").removesuffix("/acp")
    return f"{base}/link/{asyncio.run(_ask(f'{base}/link', token, ca))}"


def _token(url: str | None, store: str | None, token_file: Path | None) -> str | None:
    """Return the token of the user who runs the server; for one on another machine, what `holdfast connect` takes."""
    from holdfast_app.cli.connect import find_token, is_here  # noqa: PLC0415
    from holdfast_app.cli.server_files import server_files  # noqa: PLC0415

    beside = server_files(store).local_token
    is_own = (url is None or is_here(url)) and beside.is_file()  # without a URL it runs on this very store
    return find_token(url or "", token_file or (beside if is_own else None))


async def _ask(url: str, token: str | None, ca: str | None) -> str:
    """Ask a server for the secret of a new link."""
    from holdfast.client.http_requests import HttpRequests  # noqa: PLC0415
    from holdfast.errors import ConnectionLost  # noqa: PLC0415

    tls = None
    if ca is not None:
        import ssl  # noqa: PLC0415

        tls = ssl.create_default_context(cafile=ca)
    server = HttpRequests(url, {} if token is None else {"Authorization": f"Bearer {token}"}, tls)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await server.post(b"", {})
    except TimeoutError:
        raise ConnectionLost(f"{url} has not answered for {ANSWER_SECONDS:g} seconds") from None
    finally:
        await server.close()
    return _secret_in(url, answer.status, answer.body)


def _secret_in(url: str, status: int, body: bytes) -> str:
    import msgspec  # noqa: PLC0415

    from holdfast.errors import UsageError  # noqa: PLC0415

    try:
        said = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        said = {}
    match said:
        case {"link": str(secret)} if status == 200:
            return secret
        case {"error": str(why)}:
            raise UsageError(f"{url} answered {status}: {why}")
        case _:
            raise UsageError(f"{url} answered {status}, and no link: is that a server of Holdfast?")
