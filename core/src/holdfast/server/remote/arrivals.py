"""People who come from a page of somebody else: by a link in a mail, a chat or an issue.

Their browser does not send our cookie with such a request, so that no other page can do anything in their name (H6).
They get a small page that asks once more by itself; then they come from here. What signs in asks them first: a link
that somebody else has made would sign them in as that other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.server.remote.requests import respond
from holdfast.server.remote.small_pages import small_page

if TYPE_CHECKING:
    from holdfast.server.remote.requests import RemoteRequest, Send

_AGAIN = 'if (performance.getEntriesByType("navigation")[0]?.type !== "reload") location.reload();'


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
        said = "<p>This link signs in this browser. Go on if you asked for it yourself.</p>"
        page = small_page("Sign in", f'{said}<p><a class="button" href="">Sign in</a></p>')
    else:
        page = small_page("One moment…", '<p><a class="button" href="">Go on</a></p>', script=_AGAIN)
    await respond(send, 200, page.body, page.headers)
