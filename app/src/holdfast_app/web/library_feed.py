"""The feed of the library: which sessions run, wait for the user, or have changed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast_app.web.feeds import ALIVE_SECONDS, send_json
from holdfast_app.web.library_page import session_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast_app.web.principal import Desk
    from holdfast_app.web.requests import Send

NEWEST = 20
"""So many sessions at the top of the list are looked at for changes."""


class LibraryFeed:
    """The feed of one tab on the library.

    It says ``{"type": "rows", "rows": [[id, html], …]}``: sessions as they are listed now, those of the top in order.
    """

    def __init__(self, desk: Desk, principal: str) -> None:
        self._desk = desk
        self._principal = principal
        self._said: dict[str, str] | None = None

    async def send_all(self, send: Send) -> None:
        """Send rows that have changed."""
        activity = self._desk.activity
        activity.watch()
        try:
            while True:
                rows = await self._changed()
                await send_json(send, {"type": "rows", "rows": rows} if rows else {})
                with suppress(TimeoutError):
                    async with asyncio.timeout(ALIVE_SECONDS / 5):
                        await activity.changed()
        finally:
            activity.unwatch()

    async def _changed(self) -> Sequence[tuple[str, str]]:
        rows = {listed.info.id: session_row(listed) for listed in await self._desk.newest(self._principal, NEWEST)}
        known = rows if self._said is None else self._said  # the page itself has said how it was at first
        changed = [(session, row) for session, row in rows.items() if known.get(session) != row]
        self._said = {**known, **rows}
        return changed
