"""What an editor shows of one session, made of the updates it accepts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Update = dict[str, Any]


@dataclass
class Shown:
    """One entry on the screen."""

    kind: str
    """user, agent, thought or tool."""
    key: str | None
    text: str = ""
    status: str | None = None


@dataclass
class Thread:
    """One conversation on the screen, folded as Zed folds it (`crates/acp_thread/src/acp_thread.rs`).

    A chunk goes on with the last entry of its kind unless both have ids that differ (lines 383-391). What the user
    typed is shown before it is sent; its echo is skipped (2560-2584). An update for a call that nobody announced
    becomes a failed call "Tool call not found" (3124-3152).
    """

    entries: list[Shown] = field(default_factory=list[Shown])
    title: str | None = None
    commands: list[str] = field(default_factory=list[str])
    usage: int | None = None
    _typed: Shown | None = None

    def type(self, text: str) -> None:
        """Show what the user typed, before it is sent."""
        self._typed = Shown("user", None, text)
        self.entries.append(self._typed)

    def apply(self, update: Update) -> None:
        """Show an update; unknown ones are ignored (line 2652)."""
        match update["sessionUpdate"]:
            case "user_message_chunk":
                self._user(update)
            case "agent_message_chunk":
                self._chunk("agent", update)
            case "agent_thought_chunk":
                self._chunk("thought", update)
            case "tool_call":
                self._call(update["toolCallId"], update)
            case "tool_call_update":
                known = any(entry.key == update["toolCallId"] for entry in self.entries if entry.kind == "tool")
                self._call(update["toolCallId"], update if known else {"title": "Tool call not found"})
            case "session_info_update":
                self.title = update.get("title") or self.title
            case "available_commands_update":
                self.commands = [command["name"] for command in update["availableCommands"]]
            case "usage_update":
                self.usage = update["used"]
            case _:
                pass

    def _user(self, update: Update) -> None:
        last = self.entries[-1] if self.entries else None
        text = update["content"].get("text", "")
        if (
            last is not None
            and last is self._typed
            and text in last.text
            and last.key in (None, update.get("messageId"))
        ):
            last.key = update.get("messageId")
            return
        self._chunk("user", update)

    def _chunk(self, kind: str, update: Update) -> None:
        last = self.entries[-1] if self.entries else None
        id_, text = update.get("messageId"), update["content"].get("text", "")
        if last is not None and last.kind == kind and (last.key is None or id_ is None or last.key == id_):
            last.text += text
        else:
            self.entries.append(Shown(kind, id_, text))

    def _call(self, id_: str, update: Update) -> None:
        call = next((entry for entry in self.entries if entry.kind == "tool" and entry.key == id_), None)
        if call is None:
            call = Shown("tool", id_)
            self.entries.append(call)
        call.text = update.get("title") or call.text
        call.status = update.get("status") or call.status

    def text(self, kind: str) -> str:
        """Return all words of a kind."""
        return "".join(entry.text for entry in self.entries if entry.kind == kind)
