"""Saying something otherwise that was said before: the conversation goes on in a fork that ends right before it.

What was there stays in the session it was in, and `/undo` goes back to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import HoldfastError, UsageError
from holdfast.model.sessions import FILES_ARE_NEW
from holdfast.view.blocks import Note
from holdfast.view.safe_text import safe_line
from holdfast_app.chat.screen import ListQuestion
from holdfast_app.chat.session_opening import begin_session, fork_session, restore_session

if TYPE_CHECKING:
    from holdfast.client import ClientSession
    from holdfast_app.chat.conversation import Conversation

SHOWN = 200
"""So many characters of a message are shown in a list."""

_FORKABLE = ("user_message", "agent_message", "tool_call_update")
"""What a fork can end with; a thought is cut off together with what follows it."""


class Said(NamedTuple):
    """Something the user said."""

    key: str
    text: str
    others: tuple[Any, ...]
    """The blocks of it that are no text."""
    before: str | None
    """The id of the last message or tool call before it; None where it is the first."""


class Revision:
    """What the user is saying otherwise, and where that can be undone to."""

    def __init__(self, chat: Conversation) -> None:
        self._chat = chat
        self.said: Said | None = None
        """What is being edited."""
        self._left: list[str] = []  # the sessions that were gone on from, the last one last

    async def choose(self, number: str = "") -> None:
        """Let the user choose one of his messages, the newest first, and edit it; `number` 1 is the newest."""
        session = self._chat.session
        said = [] if session is None else list(reversed(said_in(session)))
        if not said:
            raise UsageError("you have said nothing yet in this session")
        if not number:
            items = tuple((safe_line(one.text)[:SHOWN] or "(no text)", str(at)) for at, one in enumerate(said))
            chosen = await self._chat.screen.ask_item(
                ListQuestion("Which of your messages do you want to edit?", items)
            )
            if chosen is None:
                return
        elif not number.isdecimal() or not 0 < int(number) <= len(said):
            raise UsageError(f"/edit takes a number from 1, your last message, to {len(said)}, your first")
        else:
            chosen = str(int(number) - 1)
        self.said = said[int(chosen)]
        self._chat.screen.edit(self.said.text)

    def give_up(self) -> bool:
        """Leave what was said as it is; return whether it was being edited."""
        was = self.said is not None
        self.said = None
        return was

    async def begin(self) -> ClientSession:
        """Return the session in which what was edited is said: a fork up to what stood before it."""
        chat, said = self._chat, self.said
        session = chat.session
        assert said is not None and session is not None
        if said.before is None:
            fork = await begin_session(chat.connection, chat.settings, session.cwd, session.additional)
            await _set_alike(session, fork)
        elif not chat.connection.can("fork_at"):
            raise UsageError("this agent cannot go back to a message; begin it without --bare, and it can")
        else:
            fork = await fork_session(chat.connection, chat.settings, session, said.before)
        self.said = None
        self._left.append(session.id)
        return fork

    async def undo(self) -> ClientSession:
        """Return the session as it was before the last edit."""
        chat = self._chat
        if not self._left or chat.session is None:
            raise UsageError("nothing was edited in this chat")
        before = await restore_session(chat.connection, chat.settings, self._left[-1], chat.session.cwd)
        self._left.pop()
        return before


def said_in(session: ClientSession) -> list[Said]:
    """Return what the user said in a session, in order."""
    found: list[Said] = []
    before: str | None = None
    for entry in session.history:
        if entry.entity == "user_message":
            others = tuple(block for block in entry.blocks() if block.get("type") != "text")
            found.append(Said(entry.key, entry.text(), others, before))
        if entry.entity in _FORKABLE:
            before = entry.key
    return found


async def _set_alike(session: ClientSession, other: ClientSession) -> None:
    """Set in another session what is set in this one, as far as the agent lets it."""
    for option_id, option in session.options.items():
        value = option.get("currentValue")
        if option_id in other.options and other.options[option_id].get("currentValue") != value and value is not None:
            try:
                await other.set(option_id, value)
            except HoldfastError as e:
                raise UsageError(f"{option_id} cannot be set as it was: {e}") from None


def revised_note(said: str) -> Note:
    """Return what is shown where the conversation goes on from an earlier point."""
    return Note(
        f"You go on from before this message, in a copy; /undo goes back. {FILES_ARE_NEW} "
        f"It was: {safe_line(said)[:SHOWN]}",
        tone="end",
    )
