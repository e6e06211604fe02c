"""Questions as a user sees them, on a screen of lines."""

from __future__ import annotations

import asyncio
import io
import os
from typing import Any, cast

from holdfast.model import Permission
from holdfast.view.live import LiveView
from holdfast_app.chat.line_screen import LineScreen
from holdfast_app.chat.questions import ask_permission


async def test_a_question_about_no_tool_call_shows_the_question_alone() -> None:
    stdin, typed = os.pipe()
    shown = io.StringIO()
    screen = LineScreen(cast("Any", None), stdin, shown, terminal=True, width=80, unicode=True, cwd="/")
    async with screen.opened():
        permission = Permission("And the caches?", {})
        asking = asyncio.create_task(
            ask_permission(screen, permission, LiveView().asked(permission.shown_call(), None))
        )
        while "? " not in shown.getvalue():  # noqa: ASYNC110  (a stream tells nobody what is written to it)
            await asyncio.sleep(0.01)
        os.write(typed, b"y\n")
        assert await asking == "allow_once"
    os.close(typed)
    os.close(stdin)
    assert shown.getvalue().startswith("And the caches?\n")
