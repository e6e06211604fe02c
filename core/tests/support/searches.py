"""Finding a session again whose owner is gone, held up by a test."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from holdfast.engine.relay.finding import SessionFinder

if TYPE_CHECKING:
    import pytest


class HeldSearches:
    """Every search for a session, from now on: it has `begun`, goes on when it `may_go_on`, and `is_over`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.is_over = asyncio.Event()
        reattach, go_on = SessionFinder._reattach, SessionFinder._go_on  # pyright: ignore[reportPrivateUsage]

        async def reattach_later(finder: SessionFinder, search: Any) -> Any:
            self.begun.set()
            await self.may_go_on.wait()
            return await reattach(finder, search)

        def go_on_and_tell(finder: SessionFinder, *found: Any) -> None:
            go_on(finder, *found)
            self.is_over.set()

        monkeypatch.setattr(SessionFinder, "_reattach", reattach_later)
        monkeypatch.setattr(SessionFinder, "_go_on", go_on_and_tell)
