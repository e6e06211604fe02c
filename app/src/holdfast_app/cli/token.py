"""`holdfast token`: who may use a server."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast_app.cli.server_files import server_files


@click.group("token")
def token() -> None:
    """Make and remove the tokens with which others use `holdfast serve`.

    \b
      holdfast token new ada           print a token for Ada, once; only its hash is stored
      holdfast token new ada --link    the same, and a link that signs in her browser
      holdfast token new ada --workspace /srv/ada
                                       the same, and say where on the server she may work
      holdfast token list              who has tokens
      holdfast token remove ada        let her in no more; takes effect at once

    Sessions belong to the name: whoever has a token for it sees them.
    """  # noqa: D301  (where `\b` stands, click keeps the lines)


@token.command("new")
@click.argument("name")
@click.option(
    "--workspace",
    "workspaces",
    metavar="DIR",
    multiple=True,
    help="A directory on the server in which NAME may open sessions; may be given more than once.",
)
@click.option("--link", "with_link", is_flag=True, help="Also print a link that signs in a browser, once.")
@click.option("--url", metavar="URL", help="With --link: the server (default: the one that runs on the store).")
@click.option("--tokens", type=click.Path(dir_okay=False, path_type=Path), help="The file (default: beside the store).")
@click.option("--store", metavar="FILE", help="The store of the server, if it is not the usual one.")
def new(
    name: str, workspaces: tuple[str, ...], *, with_link: bool, url: str | None, tokens: Path | None, store: str | None
) -> None:
    """Print a new token for NAME. With --link, a link for the browser of NAME follows in a second line."""
    from holdfast.server.remote.authentication import TokenFile  # noqa: PLC0415
    from holdfast_app.cli.link import address_of_server, new_link  # noqa: PLC0415

    if url is not None and not with_link:
        raise click.UsageError("--url belongs to --link")
    server = url or address_of_server(store) if with_link else None
    file = TokenFile(tokens or server_files(store).tokens)
    token = file.add(name, workspaces)
    click.echo(token)
    if server is not None:
        click.echo(new_link(server, token))
        click.echo("The link works once, for an hour.", err=True)
    click.echo(f"The token is shown once. Its hash is in {file.path}.", err=True)


@token.command("list")
@click.option("--tokens", type=click.Path(dir_okay=False, path_type=Path), help="The file (default: beside the store).")
def list_(tokens: Path | None) -> None:
    """List who has tokens."""
    from holdfast.server.remote.authentication import TokenFile  # noqa: PLC0415

    entries = TokenFile(tokens or server_files().tokens).entries()
    for entry in entries:
        click.echo(f"{entry.name}\t{entry.created}\t{entry.sha256[:8]}…")
    if not entries:
        click.echo("Nobody has a token; make one with `holdfast token new NAME`.", err=True)


@token.command("remove")
@click.argument("name")
@click.option("--keep-links", is_flag=True, help="Let the links with which NAME shares sessions go on.")
@click.option("--tokens", type=click.Path(dir_okay=False, path_type=Path), help="The file (default: beside the store).")
@click.option("--store", metavar="FILE", help="The store of the server, if it is not the usual one.")
def remove(name: str, *, keep_links: bool, tokens: Path | None, store: str | None) -> int:
    """Remove all tokens of NAME, and revoke its share links.

    Within a second the connections and pages of NAME are closed. A token that NAME gets later does not revive them.
    """
    from holdfast.server.remote.authentication import TokenFile  # noqa: PLC0415
    from holdfast_app.share_links import ShareLinks  # noqa: PLC0415

    files = server_files(store)
    links = ShareLinks(files.shares)
    shared = links.links(principal=name)
    if keep_links:
        for link in shared:
            links.keep(link)
    removed = TokenFile(tokens or files.tokens).remove(name)
    if not keep_links:
        for link in shared:
            links.revoke(link)
    said = [f"{removed} removed." if removed else f"{name} has no token."]
    if shared:
        count = f"{len(shared)} share link{'' if len(shared) == 1 else 's'}"
        said.append(f"{count} still work: `holdfast sessions share` lists them." if keep_links else f"{count} revoked.")
    click.echo(" ".join(said), err=True)
    return 0 if removed or shared else 1
