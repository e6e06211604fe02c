"""What there is to show of a tool call: while it goes on the end of what it prints, afterwards all of it."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any, cast

from holdfast.model import Entry, Terminal
from holdfast.view.blocks import Call
from holdfast.view.entries import Part, view_entry
from holdfast.view.safe_text import terminal_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model import History, Update

LIVE_BYTES = 2_000
"""So much of what a tool prints is looked at while it runs."""


def call_block(history: History, key: str, *, live: bool = False) -> Call:
    """Say what there is to show of a tool call."""
    entry = history.get("tool_call_update", key)
    assert entry is not None
    members = entry.members
    words = [it if isinstance(it := members.get(name), str) else "" for name in ("title", "name", "kind", "status")]
    title, name, kind, status = words
    parts = _end(history, entry) if live else _all(history, entry)
    places, failure = tuple(_places(entry)), "" if live else failed_command(history, entry)
    return Call(title or name or key, kind, status or "pending", places, tuple(parts), exit_status=failure)


def failed_command(history: History, entry: Entry) -> str:
    """Return how a command that a tool call ran has failed; empty where it succeeded, or none is known.

    A terminal says so in version 2; agents of version 1 have `rawOutput` or `_meta` for it.
    """
    terminals = (_terminal(history, item) for item in entry.content())
    statuses = [terminal.members.get("exitStatus") for terminal in terminals if terminal is not None]
    statuses += [entry.members.get("rawOutput"), entry.members.get("_meta")]
    return next((failure for status in statuses if (failure := _failure(status))), "")


def _failure(status: Any) -> str:
    inner: Any
    match status:
        case {"exitCode": int(code)} | {"exit_code": int(code)} if code:
            return f"exit status {code}"
        case {"signal": str(number)}:
            return f"signal {number}"
        case {"terminal_exit": inner}:
            return _failure(inner)
        case _:
            return ""


def call_in_question(known: Entry | None, asked: Update) -> Call:
    """Say all there is to know of a call that is to be permitted: nobody should agree to what is not shown."""
    entry = Entry("tool_call_update", str(asked.get("toolCallId", "")), whole=True)
    if known is not None:
        entry.members |= known.members
        entry.replace(known.content())
    entry.members |= {name: value for name, value in asked.items() if name != "content" and value is not None}
    if isinstance(content := asked.get("content"), list):
        entry.replace(content)
    places = tuple(_places(entry))
    entry.members.pop("locations", None)
    view = view_entry(entry)
    return Call(view.title, "", "pending", places, view.parts, whole=True)


def parts_of(block: Any) -> tuple[Part, ...]:
    """Say what there is to show of one content block."""
    alone = Entry("agent_message", "", whole=True)
    alone.append(block, {})
    return view_entry(alone).parts


def _all(history: History, entry: Entry) -> Iterator[Part]:
    content = entry.content()
    for item in content:
        if (terminal := _terminal(history, item)) is None:
            yield from _parts_of_item(item)
        elif text := terminal_text(terminal.output()).strip("\n"):
            yield Part("code", text)
    if not content and (output := entry.members.get("rawOutput")) is not None:
        bare = Entry("tool_call_update", "", whole=True)
        bare.members["rawOutput"] = output
        yield from view_entry(bare).parts


def _end(history: History, entry: Entry) -> Iterator[Part]:
    """Give the end of what it shows, without looking at the rest: it is looked at many times a second."""
    content = entry.content()
    if not content:
        return
    last = cast("dict[str, Any]", content[-1])
    terminal = _terminal(history, last)
    if terminal is not None:
        if text := terminal_text(_tail(terminal)).strip("\n"):
            yield Part("code", text)
    else:
        match last:
            case {"content": {"text": str(text)}}:
                yield Part("code", text[-LIVE_BYTES:].strip("\n"))
            case _:
                pass


def _terminal(history: History, item: Any) -> Terminal | None:
    if item.get("type") != "terminal":
        return None
    entry = history.get("terminal_update", str(item.get("terminalId")))
    return entry if isinstance(entry, Terminal) else None


def _tail(terminal: Terminal) -> bytes:
    parts: list[bytes] = []
    room = LIVE_BYTES
    for it in reversed(terminal.items or ()):
        if room <= 0:
            break
        parts.append(b64decode(it[-(room * 4 // 3 + 4) // 4 * 4 :]))
        room -= len(parts[-1])
    return b"".join(reversed(parts))


def _parts_of_item(item: Any) -> tuple[Part, ...]:
    alone = Entry("tool_call_update", "", whole=True)
    alone.append(item, {})
    return view_entry(alone).parts


def _places(entry: Entry) -> Iterator[str]:
    for it in cast("list[Any]", entry.members.get("locations") or ()):
        if isinstance(it, dict) and isinstance(path := cast("dict[str, Any]", it).get("path"), str):
            line = cast("dict[str, Any]", it).get("line")
            yield f"{path}:{line}" if isinstance(line, int) else path
