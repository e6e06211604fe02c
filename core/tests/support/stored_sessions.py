"""Sessions put straight into a store, as if agents had had them: many, or long ones, in little time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.format import stored, with_texts
from holdfast.model import LOCAL, SessionInfo, SessionState, new_session_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.store import SessionStore

START = 1_700_000_000_000_000


def said(speaker: str, key: str, text: str) -> dict[str, Any]:
    """Return a message."""
    return {"sessionUpdate": f"{speaker}_message", "messageId": key, "content": [{"type": "text", "text": text}]}


async def add_session(
    store: SessionStore,
    conversation: Sequence[tuple[str, str] | dict[str, Any]],
    *,
    title: str,
    cwd: str = "/work",
    agent: str = "page-agent",
    at: int = 0,
    state: SessionState | None = None,
) -> str:
    """Add a session: its updates, or who said what; return its id. `at` is a second after the first."""
    updates = [
        each if isinstance(each, dict) else said(each[0], f"m{number}", each[1])
        for number, each in enumerate(conversation)
    ]
    info = SessionInfo(
        new_session_id(), cwd, (), title, START + at * 1_000_000, START + at * 1_000_000, archived=False,
        messages=len(updates), principal=LOCAL, agent=agent,
    )  # fmt: skip
    await store.add(info, state or SessionState(), lines_of(updates))
    return info.id


def lines_of(updates: Iterable[dict[str, Any]]) -> list[Any]:
    """Return updates as a store takes them."""
    return list(with_texts([stored(update) for update in updates]))
