"""People who come from a page of somebody else: by a link in a mail, a chat or an issue.

Their browser does not send our cookie with such a request, so that no other page can do anything in their name (H6).
They get a small page that asks once more by itself; then they come from here. What signs in asks them first: a link
that somebody else has made would sign them in as that other.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from holdfast.server.remote.requests import respond

if TYPE_CHECKING:
    from holdfast.server.remote.requests import RemoteRequest, Send

_AGAIN = 'if (performance.getEntriesByType("navigation")[0]?.type !== "reload") location.reload();'
_HASH = base64.b64encode(hashlib.sha256(_AGAIN.encode()).digest()).decode()
_POLICY = f"default-src 'none'; script-src 'sha256-{_HASH}'; frame-ancestors 'none'"


def comes_from_another_page(request: RemoteRequest) -> bool:
    """Return whether another page has led somebody here: what they see next is a page of ours."""
    headers = request.headers
    return (
        request.method in ("GET", "HEAD")
        and headers.get("sec-fetch-site") in ("cross-site", "same-site")
        and (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    )


async def let_in(request: RemoteRequest, send: Send) -> None:
    """Answer with a page that comes back by itself, or, where that would sign in, on a click."""
    if request.path.startswith("/link/"):
        script, said, label = "", "This link signs in this browser. Go on if you asked for it yourself.", "Sign in"
    else:
        script, said, label = f"<script>{_AGAIN}</script>", "One moment…", "Go on"
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        '<meta name="color-scheme" content="light dark"><title>Holdfast</title><h1>Holdfast</h1>'
        f'<p>{said}</p><p><a href="">{label}</a></p>{script}</html>\n'
    )
    headers = [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("content-security-policy", _POLICY),
        ("x-content-type-options", "nosniff"),
    ]
    await respond(send, 200, page.encode(), headers)
