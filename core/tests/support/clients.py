"""Agents for tests of the client library to connect to, and what such tests look at."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import holdfast
from core.tests.support.links import PROGRAMS
from core.tests.support.updates import encoded
from holdfast.model import History

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractAsyncContextManager

    from holdfast.client import Connection
    from holdfast.model import Event


def odd(*habits: str, **settings: Any) -> AbstractAsyncContextManager[Connection]:
    """Connect to an agent with odd habits."""
    return holdfast.connect(sys.executable, PROGRAMS / "odd_agent.py", *habits, **settings)


def demo(*arguments: str, **settings: Any) -> AbstractAsyncContextManager[Connection]:
    """Connect to the demo agent in a process of its own."""
    return holdfast.connect(sys.executable, "-m", "holdfast", "run", "demo", *arguments, **settings)


def processes_with(token: str) -> list[str]:
    """Find the processes that were started with a word in their command."""
    found: list[str] = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and token.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(process.name)
    return found


def said(history: History) -> list[tuple[str, str]]:
    """Give what was said, and by whom."""
    messages = {"user_message", "agent_message", "agent_thought"}
    return [(entry.entity, entry.text()) for entry in history if entry.entity in messages]


def folded(events: Iterable[Event]) -> History:
    """Fold events into a history."""
    history = History()
    for event in events:
        history.apply(event)
    return history


def comparable(history: History, *, user_ids: bool = True) -> list[bytes]:
    """Give all that a history knows; without the ids of the user's messages where they cannot be known."""
    updates = list(history.updates())
    if not user_ids:
        updates = [
            {**update, "messageId": ""} if update["sessionUpdate"] == "user_message" else update for update in updates
        ]
    return [encoded(update) for update in updates]
