"""`holdfast sessions share` and `unshare`: links with which others read a session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from holdfast_app.cli import output
from holdfast_app.cli.completion import complete_sessions
from holdfast_app.cli.store_arguments import find_session, on_store, short_id

if TYPE_CHECKING:
    from holdfast.store import SessionStore
    from holdfast_app.share_links import ShareLink, ShareLinks

LOCAL_PAGE = "http://127.0.0.1:8190"
"""Where `holdfast web` shows the page."""

_UNITS = {"m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}
_DURATION = re.compile(r"(\d{1,5})([mhdw])")


@click.command("share")
@click.argument("session", required=False, shell_complete=complete_sessions)
@click.option("--for", "lasts", metavar="TIME", default="7d", show_default=True, help="How long: 30m, 12h, 7d, 4w.")
@click.option("--no-redact", is_flag=True, help="Show what looks like a secret too.")
@click.option(
    "--url",
    metavar="URL",
    default=LOCAL_PAGE,
    show_default=True,
    help="Where people reach the server of this store: `holdfast web`, or `holdfast serve … --web`.",
)
@on_store()
async def share(
    store: SessionStore, *, session: str | None, lasts: str, no_redact: bool, url: str, as_json: bool
) -> None:
    """Print a link with which anybody who has it reads a session, without signing in, and can do nothing else.

    \b
      holdfast sessions share last --url https://agents.example.com
      holdfast sessions share 3fa9 --for 2h
      holdfast sessions share                   which links there are
      holdfast sessions unshare 81c07b          let one lead nowhere, at once

    The link shows the session as it is when somebody looks, without what looks like a secret. It is printed once.
    With --json: {"link", "id", "session", "until", "redacted"}, or {"links": […]}.
    """  # noqa: D301  (where `\b` stands, click keeps the lines)
    links = _links()
    if session is None:
        _list(links, as_json=as_json)
        return
    info = await find_session(store, session)
    secret, link = links.add(info.id, info.principal, _seconds(lasts), redacts=not no_redact)
    address = f"{url.rstrip('/')}/share/{secret}"
    if as_json:
        output.say(output.json_text({"link": address, **_described(link)}))
        return
    output.say(address)
    output.tell(f"It works until {_time(link.until)}; `holdfast sessions unshare {link.id[:8]}` revokes it.")


@click.command("unshare")
@click.argument("link")
@on_store()
async def unshare(store: SessionStore, *, link: str, as_json: bool) -> int:
    """Revoke a LINK: named by the beginning of its id, or by the link itself.

    It leads nowhere from now on, as if it had never been. With --json: {"revoked": its id}.
    """
    del store
    links = _links()
    secret = link.rpartition("/share/")[2] if "/share/" in link else ""
    named = links.find(secret) if secret else None
    found = [named] if named else [each for each in links.links() if len(link) >= 6 and each.id.startswith(link)]
    if len(found) != 1:
        several = "several links have ids that begin so" if found else "there is no such link"
        output.tell(f"{several}; `holdfast sessions share` lists them.")
        return 1
    links.revoke(found[0])
    output.say(output.json_text({"revoked": found[0].id}) if as_json else f"{found[0].id[:8]} is revoked.")
    return 0


def _list(links: ShareLinks, *, as_json: bool) -> None:
    found = links.links()
    if as_json:
        output.say(output.json_text({"links": [_described(link) for link in found]}))
        return
    for link in found:
        whole = "" if link.redacts else "  with secrets"
        output.say(f"{link.id[:8]}  session {short_id(link.session)}  until {_time(link.until)}{whole}")
    if not found:
        output.tell("No session is shared; `holdfast sessions share SESSION` makes a link.")


def _described(link: ShareLink) -> dict[str, object]:
    return {"id": link.id, "session": link.session, "until": _time(link.until), "redacted": link.redacts}


def _links() -> ShareLinks:
    """Return the links of the store that the command line names."""
    from holdfast_app.cli.server_files import server_files  # noqa: PLC0415
    from holdfast_app.share_links import ShareLinks  # noqa: PLC0415

    return ShareLinks(server_files(click.get_current_context().params.get("place")).shares)


def _seconds(lasts: str) -> int:
    if (found := _DURATION.fullmatch(lasts.strip())) is None:
        raise click.UsageError(f"--for {lasts}: write a time as 30m, 12h, 7d or 4w")
    return int(found[1]) * _UNITS[found[2]]


def _time(seconds: int) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415

    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
