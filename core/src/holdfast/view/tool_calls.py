"""What there is to show of a tool call: the end of its output while it runs, all of it afterwards."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.model import Entry, Terminal, is_object
from holdfast.view.blocks import Call
from holdfast.view.entries import Part, failed_command, locations_of, shown_status, view_entry
from holdfast.view.safe_text import terminal_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model import History, Update

LIVE_BYTES = 2_000
"""How much of the output is looked at while the tool runs."""
_FENCE = re.compile(r"(`{3,})[\w+-]*\n")


def call_block(history: History, key: str, *, live: bool = False) -> Call:
    """Return what there is to show of a tool call; while it is `live`, only the end of its output."""
    entry = history.get("tool_call_update", key) or Entry("tool_call_update", key, whole=True)
    values = [entry.members.get(name) for name in ("title", "name", "kind", "status")]
    title, name, kind, status = [value if isinstance(value, str) else "" for value in values]
    parts = _end(history, entry) if live else _all(history, entry)
    locations, failure = tuple(locations_of(entry)), ""
    if not live:
        failure = failed_command(entry, lambda key: history.get("terminal_update", key))
    status = shown_status(status or "pending", failure)
    return Call(title or name or key, kind, status, locations, tuple(parts), exit_status=failure, key=key)


def terminal_block(history: History, key: str, *, live: bool = False) -> Call:
    """Return what there is to show of a terminal that runs and that no known tool call shows."""
    entry = history.get("terminal_update", key)
    command = "" if entry is None else entry.members.get("command")
    title = command if isinstance(command, str) and command else key
    parts = tuple(_printed(entry, live=live)) if isinstance(entry, Terminal) else ()
    return Call(title, "execute", "in_progress", parts=parts, key=key)


def call_in_question(known: Entry | None, asked: Update) -> Call:
    """Return all that is known of a call that is to be permitted: nobody should agree to what is not shown (P13)."""
    entry = Entry("tool_call_update", str(asked.get("toolCallId", "")), whole=True)
    if known is not None:
        entry.members |= known.members
        entry.replace(known.content())
    entry.members |= {name: value for name, value in asked.items() if name != "content" and value is not None}
    if isinstance(content := asked.get("content"), list):
        entry.replace(content)
    locations = tuple(locations_of(entry))
    entry.members.pop("locations", None)
    view = view_entry(entry)
    return Call(view.title, "", "pending", locations, view.parts, whole=True)


def parts_of(block: Any) -> tuple[Part, ...]:
    """Return what there is to show of one content block."""
    alone = Entry("agent_message", "", whole=True)
    alone.append(block, {})
    return view_entry(alone).parts


def _all(history: History, entry: Entry) -> Iterator[Part]:
    content = entry.content()
    for item in content:
        if (terminal := _terminal(history, item)) is None:
            yield from _parts_of_item(item)
        else:
            yield from _printed(terminal, live=False)
    if not content and (output := entry.members.get("rawOutput")) is not None:
        bare = Entry("tool_call_update", "", whole=True)
        bare.members["rawOutput"] = output
        yield from view_entry(bare).parts


def _end(history: History, entry: Entry) -> Iterator[Part]:
    """Yield the end of what it shows, without looking at the rest: this runs many times a second."""
    content = entry.content()
    if not content:
        return
    last = content[-1]
    terminal = _terminal(history, last)
    if terminal is not None:
        yield from _printed(terminal, live=True)
    else:
        match last:
            case {"content": {"text": str(text)}}:
                yield Part("code", _end_of_text(text))
            case _:
                pass


def _end_of_text(text: str) -> str:
    """Return the end of the text that a tool gave, without the fence that many agents put around it."""
    end = text[-LIVE_BYTES:].strip("\n")
    fence = _FENCE.match(text)
    if fence is None or not end.endswith(fence[1]):
        return end
    begin = fence.end() if len(text) <= LIVE_BYTES else 0
    return text[-LIVE_BYTES:][begin:].strip("\n").removesuffix(fence[1]).strip("\n")


def _printed(terminal: Terminal, *, live: bool) -> Iterator[Part]:
    if text := terminal_text(terminal.last_output(LIVE_BYTES) if live else terminal.output()).strip("\n"):
        yield Part("code", text)


def _terminal(history: History, item: Any) -> Terminal | None:
    if not is_object(item) or item.get("type") != "terminal":
        return None
    entry = history.get("terminal_update", str(item.get("terminalId")))
    return entry if isinstance(entry, Terminal) else None


def _parts_of_item(item: Any) -> tuple[Part, ...]:
    alone = Entry("tool_call_update", "", whole=True)
    alone.append(item, {})
    return view_entry(alone).parts
