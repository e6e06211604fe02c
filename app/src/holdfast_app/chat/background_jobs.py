"""`/jobs` and `/stop`: what the agent does beside the turns, and how the user ends one of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors import UsageError
from holdfast.view.blocks import Note
from holdfast.view.safe_text import safe_line
from holdfast_app.chat.screen import ListQuestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.client import ClientSession
    from holdfast.model import Entry
    from holdfast_app.chat.conversation import Conversation
    from holdfast_app.chat.settings import ChatSettings

MAX_LINE = 120
"""So much of a command is listed."""


def list_jobs(chat: Conversation, session: ClientSession) -> None:
    """Show what goes on beside the turns."""
    jobs = _jobs(chat, session)
    chat.screen.show(Note("In the background:", "\n".join(_numbered(jobs)) + "\n/stop NUMBER ends one of them."))


async def stop_job(chat: Conversation, session: ClientSession, wanted: str) -> None:
    """Stop the job of a number or a name; where there are several and none is `wanted`, let the user choose.

    Raises `UsageError` where there is no such job, and where nobody can choose.
    """
    jobs = _jobs(chat, session)
    if (key := _chosen(jobs, wanted)) is None:
        if wanted or not chat.screen.interactive:
            listed = "; ".join(_numbered(jobs))
            raise UsageError(f"say which one by its number, as in /stop 1; there are: {listed}")
        items = tuple((line, key) for line, key in zip(_numbered(jobs), jobs, strict=True))
        key = await chat.screen.ask_item(ListQuestion("Stop which one? Type to find, Escape leaves", items))
    if key is not None:
        await session.stop_background(key)
        chat.screen.show(Note(f"Asked to stop: {safe_line(jobs[key]['title'])}", tone="good"))


def ending_with_agent(session: ClientSession, settings: ChatSettings) -> str | None:
    """Return what to tell of work that goes on and ends now, with the agent's process; None where there is none.

    An agent on a server goes on with it. Version 1 tells only of tool calls, and not every agent ends those it made.
    """
    if not settings.agent_command or session.running:
        return None
    titles = [str(job["title"]) for job in session.background.values()]
    if not titles and settings.runs_ours:
        titles = [_call_title(entry) for entry in session.history if _is_in_progress(entry)]
    if not titles:
        return None
    return f"Cancelled, because the agent ends with the chat: {', '.join(map(safe_line, titles))}"


def _is_in_progress(entry: Entry) -> bool:
    return entry.entity == "tool_call_update" and entry.members.get("status") == "in_progress"


def _call_title(entry: Entry) -> str:
    return str(entry.members.get("title") or entry.members.get("name") or entry.key)


def _jobs(chat: Conversation, session: ClientSession) -> dict[str, dict[str, Any]]:
    """Return what goes on, by id. Raises `UsageError` where that is nothing, or not known."""
    if session.background:
        return session.background
    if chat.connection.protocol == 1:
        raise UsageError(
            "version 1 of the protocol, which is spoken here, does not tell what goes on in the background"
        )
    raise UsageError("nothing goes on in the background")


def _chosen(jobs: Mapping[str, Mapping[str, Any]], wanted: str) -> str | None:
    if not wanted:
        return next(iter(jobs)) if len(jobs) == 1 else None
    if wanted.isdecimal():
        return dict(enumerate(jobs, 1)).get(int(wanted))
    found = [key for key, job in jobs.items() if wanted == key or wanted.lower() == str(job["title"]).lower()]
    return found[0] if len(found) == 1 else None


def _numbered(jobs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [f"{number}  {_line(job)}" for number, job in enumerate(jobs.values(), 1)]


def _line(job: Mapping[str, Any]) -> str:
    title, command = str(job["title"]), str(job.get("command") or "")
    line = safe_line(f"{title}: {command}" if command and command != title else title)
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"
