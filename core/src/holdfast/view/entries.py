"""What an entry says, cut into parts that are ready to be shown: as Markdown, as a page, in a terminal.

This module knows what each kind of entry is made of and what matters to a reader, not how any of it looks. Entries
come from agents of all sorts and from damaged stores: what is not shaped as expected is shown as the JSON it is, and no
entry makes this raise (P11).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import msgspec

from holdfast.model.history import Terminal
from holdfast.model.ids import made_at
from holdfast.model.kinds import DAMAGED, FORKED_EARLIER, HAND_OVER, LOST_CONTEXT, TURN_END
from holdfast.view.safe_text import terminal_text
from holdfast.view.terminal_colours import terminal_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from holdfast.model.events import Update
    from holdfast.model.history import Entry
    from holdfast.view.terminal_colours import TextRun

Role: TypeAlias = Literal["user", "agent", "thought", "session", "tool", "plan", "terminal", "note", "other"]
"""Who speaks, or what the entry is. A note is about the conversation: that a turn was cancelled, for example."""

PartKind: TypeAlias = Literal["prose", "code", "diff", "link", "image", "step", "remark"]

MAX_DIFF_CHARACTERS = 512 << 10
"""Of longer files only the new text is shown: the time to compare grows with the square of their length."""


class Part(NamedTuple):
    """A part of what an entry says.

    ``prose`` is Markdown; ``code`` is shown as it is, the label is its language; ``diff`` is a patch, the label is the
    file; of a ``link`` the label is the address; of an ``image`` the text is its type and the label its base64; of a
    ``step`` of a plan the label is its status; a ``remark`` is ours.
    """

    kind: PartKind
    text: str
    label: str = ""
    runs: tuple[TextRun, ...] = ()
    """Of ``code`` that a terminal showed in colours: the same text with them."""


class EntryView(NamedTuple):
    """An entry ready to be shown. Nothing in it is quoted or made safe yet."""

    role: Role
    key: str
    """The id by which a fork can name the entry; empty where it cannot."""
    title: str
    status: str
    parts: tuple[Part, ...]
    tool_kind: str = ""
    """Of a tool call: what the tool does, as `execute`."""
    tool_status: str = ""
    """Of a tool call: how far it is, as `in_progress`; of a call or a terminal whose command failed, `failed`."""
    terminal: str = ""
    """Of a terminal: the id by which tool calls name it."""
    at: int | None = None
    """When it began, in microseconds since 1970; None where that is not known, as of entries with foreign ids."""
    until: int | None = None
    """When it began at the latest, where `at` is only when it began at the earliest (`holdfast.view.times`)."""


_SPEAKERS: dict[str, Role] = {
    "user_message": "user",
    "agent_message": "agent",
    "agent_thought": "thought",
    "session_message": "session",
}

_ENDS = {
    "cancelled": "The turn was cancelled",
    "interrupted": "The turn was broken off: its process died",
    "refusal": "The agent refused to go on",
    "max_tokens": "The turn ended: the model had reached its limit",
    "max_turn_requests": "The turn ended: it had made as many requests as it may",
}

_COLOURING = re.compile(r"\x1b\[[0-9;:]*m|\r(?=\n)")
_STEERING = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")

_ONE_FENCE = re.compile(r"\s*(`{3,})([\w+-]*)[^`\n]*\n((?:(?! *```)[^\n]*\n)*)\1\s*")


def view_entry(entry: Entry, terminals: Mapping[str, Entry] | None = None) -> EntryView:
    """Return what there is to show of an entry; of a tool call with its `terminals`, also what they showed."""
    view = _view(entry, terminals or {})
    at = made_at(entry.key) if entry.entity else None
    return view if at is None else view._replace(at=at)


def _view(entry: Entry, terminals: Mapping[str, Entry]) -> EntryView:
    members = entry.members
    if (speaker := _SPEAKERS.get(entry.entity)) is not None:
        return EntryView(speaker, entry.key, "", "", tuple(map(_block, entry.blocks())))
    match entry.entity:
        case "tool_call_update":
            kind, status = _string(members.get("kind")), _string(members.get("status"))
            title = _string(members.get("title")) or _string(members.get("name")) or entry.key
            failure = failed_command(entry, terminals.get)
            shown = (kind, status, failure if status == "completed" else "")
            words = ", ".join(word.replace("_", " ") for word in shown if word and word != "other")
            status = shown_status(status, failure)
            return EntryView("tool", entry.key, title, words, tuple(_call(entry, terminals, title)), kind, status)
        case "plan_update":
            return EntryView("plan", "", "", "", tuple(_plan(members.get("plan"))))
        case "terminal_update":
            title = _string(members.get("command")) or entry.key
            status = _exit(members.get("exitStatus"))
            failed = "failed" if failure_of(members.get("exitStatus")) else ""
            return EntryView("terminal", "", title, status, tuple(_output(entry)), "", failed, terminal=entry.key)
        case "compaction_update":
            status = _string(members.get("status")).replace("_", " ")
            parts = [*map(_block, entry.blocks()), *_remarks(members.get("error"))]
            return EntryView("note", "", "What was said before was summed up", status, tuple(parts))
        case "subagent_update":
            return EntryView("note", "", f"Subagent {_string(members.get('title')) or entry.key}", "", ())
        case _:
            return _other(members)


def _other(members: dict[str, Any]) -> EntryView:
    kind = _string(members.get("sessionUpdate"))
    if kind == TURN_END:
        reason, error = _string(members.get("reason")), members.get("error")
        return EntryView("note", "", _ENDS.get(reason, "The turn failed"), "", tuple(_remarks(error)))
    if kind in (DAMAGED, HAND_OVER):
        return EntryView("note", "", note_text(members), "", tuple(_remarks(members.get("reason"))))
    if kind in (LOST_CONTEXT, FORKED_EARLIER):
        return EntryView("note", "", note_text(members), "", ())
    rest = {name: value for name, value in members.items() if name != "sessionUpdate"}
    return EntryView("other", "", kind, "", (_json(rest),) if rest else ())


def note_text(members: Update) -> str:
    """Return what a note of ours says: damage (P11), a hand-over (F2), a forgotten past (G6), a fork (B15)."""
    if members.get("sessionUpdate") == FORKED_EARLIER:
        return _string(members.get("text")) or "The conversation goes on from an earlier point here"
    if members.get("sessionUpdate") == LOST_CONTEXT:
        return _string(members.get("text")) or "The agent had forgotten what was said before"
    if members.get("sessionUpdate") == HAND_OVER:
        before, after = _string(members.get("from")), _string(members.get("to"))
        return f"The session was handed over from {before or 'no agent'} to {after or 'another agent'}"
    count = members.get("lines")
    lines = f"{count:,} line{'' if count == 1 else 's'}" if isinstance(count, int) else "a part"
    return f"Damaged: {lines} of the history cannot be read"


def _block(block: Any) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return Part("prose", text)
        case {"type": "image", "mimeType": str(mime), "data": str(data)}:
            return Part("image", mime, data)
        case {"type": "audio", "mimeType": str(mime), "data": str(data)}:
            return Part("remark", f"{mime}, {_size(data)}")
        case {"type": "resource_link", "uri": str(uri)}:
            return Part("link", _string(block.get("title")) or _string(block.get("name")) or uri, uri)
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            return Part("code", f"{uri}\n\n{text}")
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(blob)}}:
            return Part("link", f"{uri} ({_size(blob)})", uri)
        case _:
            return _json(block)


def _call(entry: Entry, terminals: Mapping[str, Entry], title: str) -> Iterator[Part]:
    members = entry.members
    if locations := tuple(locations_of(entry)):
        yield Part("remark", ", ".join(locations))
    output = [part for item in entry.content() for part in _item(item, terminals)]
    if not output and members.get("rawOutput") is not None:  # otherwise it is what the output was made into
        output = [_raw(members["rawOutput"])]
    if members.get("rawInput") is not None:
        yield Part("remark", "Input")
        yield from _input(members["rawInput"])
        if output:
            yield Part("remark", "Output")
    else:
        commands = [_string(terminal.members.get("command")) for terminal in terminals.values()]
        yield from (Part("code", command, "bash") for command in commands if command not in title)
    yield from output


def _item(item: Any, terminals: Mapping[str, Entry]) -> Iterator[Part]:
    match item:
        case {"type": "content", "content": {"type": "text", "text": str(text)}}:
            yield _result(text)
        case {"type": "content", "content": content}:
            yield _block(content)
        case {"type": "diff"}:
            yield from _diff(item)
        case {"type": "terminal", "terminalId": str(key)} if key in terminals:
            yield from _output(terminals[key])
        case {"type": "terminal", "terminalId": str(key)}:
            yield Part("remark", f"Terminal {key}")
        case _:
            yield _json(item)


def _result(text: str) -> Part:
    """Return the text that a tool gave. Many agents put it into a fence; that is not part of what the tool gave."""
    fence = _ONE_FENCE.fullmatch(text)
    text, language = (fence[3], fence[2]) if fence else (text, "")
    if "\x1b[" in text and not _STEERING.search(_COLOURING.sub("", text)):
        return terminal_part(text.encode(errors="replace"))
    return Part("code", text, language)  # what erases or overwrites is shown: nobody approves what is hidden (P13)


def _diff(item: dict[str, Any]) -> Iterator[Part]:
    match item:
        case {"patch": {"text": str(patch)}}:
            yield Part("diff", patch, _string(item.get("path")) or _changed_path(item))
        case {"path": str(path), "newText": str(new)}:
            yield _compared(path, _string(item.get("oldText")), new)
        case {"changes": list()}:
            for change in _items(item["changes"]):
                match change:
                    case {"operation": str(operation), "oldPath": str(old), "path": str(path)}:
                        yield Part("remark", f"{operation}: {old} to {path}")
                    case {"operation": str(operation), "path": str(path)}:
                        yield Part("remark", f"{operation}: {path}")
                    case _:
                        yield _json(change)
        case _:
            yield _json(item)


def _changed_path(diff: dict[str, Any]) -> str:
    """Return the file that a diff changes; nothing where it changes several."""
    match diff.get("changes"):
        case [{"path": str(path)}]:
            return path
        case _:
            return ""


def _compared(path: str, old: str, new: str) -> Part:
    from holdfast.view.line_diff import unified_patch  # noqa: PLC0415  (rarely needed)

    if len(old) + len(new) > MAX_DIFF_CHARACTERS:
        return Part("code", f"{path}\n\n{new}")
    lines = unified_patch(old.splitlines(), new.splitlines(), path if old else "/dev/null", path)
    return Part("diff", "\n".join(lines), path)


def _plan(plan: Any) -> Iterator[Part]:
    match plan:
        case {"entries": list()}:
            for step in _items(plan["entries"]):
                match step:
                    case {"content": str(text)}:
                        yield Part("step", text, _string(step.get("status")))
                    case _:
                        yield _json(step)
        case {"type": "markdown", "content": str(text)}:
            yield Part("prose", text)
        case {"type": "file", "uri": str(uri)}:
            yield Part("link", uri, uri)
        case _:
            yield _json(plan)


def _output(entry: Entry) -> Iterator[Part]:
    if isinstance(entry, Terminal):
        part = terminal_part(entry.output())
        if part.text:
            yield part


def terminal_part(output: bytes) -> Part:
    """Return what a terminal showed in the end, with its colours."""
    return Part("code", terminal_text(output).strip("\n"), runs=terminal_runs(output.strip(b"\r\n")))


def shown_status(status: str, failure: str) -> str:
    """Return what a tool call is marked as: one that has done its work has failed if its command has.

    Every face marks calls by this.
    """
    return "failed" if failure and status == "completed" else status


def failed_command(call: Entry, terminal: Callable[[str], Entry | None]) -> str:
    """Return how a command that a tool call ran has failed; empty where it succeeded, or none is known."""
    terminals = (terminal(key) for key in terminals_in(call.content()))
    statuses = [found.members.get("exitStatus") for found in terminals if found is not None]
    statuses += [call.members.get("rawOutput"), call.members.get("_meta")]
    return next((failure for status in statuses if (failure := failure_of(status))), "")


def terminals_in(content: Any) -> Iterator[str]:
    """Yield the ids of the terminals that a call shows, from its content or from an item of that."""
    for item in cast("list[Any]", content) if isinstance(content, list) else [content]:
        match item:
            case {"type": "terminal", "terminalId": str(key)}:
                yield key
            case _:
                pass


def failure_of(status: Any) -> str:
    """Return how a command has failed, by its exit status as agents have it; empty where it has not, or none is known.

    A terminal has it in version 2; agents of version 1 say it in `rawOutput` or `_meta`.
    """
    inner: Any
    match status:
        case {"exitCode": int(code)} | {"exit_code": int(code)} if code:
            return f"exit status {code}"
        case {"signal": str(number)}:
            return f"signal {number}"
        case {"terminal_exit": inner}:
            return failure_of(inner)
        case _:
            return ""


def _exit(status: Any) -> str:
    match status:
        case {"signal": str(signal)}:
            return f"ended by {signal}"
        case {"exitCode": int(code)}:
            return f"exited with {code}"
        case None:
            return "running"
        case _:
            return "ended"


def _input(value: Any) -> Iterator[Part]:
    """Yield what a tool was given: a command as one would type it, whatever else as it is."""
    match value:
        case {"command": str(command), **rest}:
            yield Part("code", command, "bash")
            if rest:
                yield _json(rest)
        case _:
            yield _raw(value)


def _raw(value: Any) -> Part:
    return Part("code", value) if isinstance(value, str) else _json(value)


def _json(value: Any) -> Part:
    return Part("code", msgspec.json.format(msgspec.json.encode(value), indent=2).decode(), "json")


def locations_of(entry: Entry) -> Iterator[str]:
    """Yield the files that a tool call is about, with the line where one is named."""
    for location in _items(entry.members.get("locations")):
        match location:
            case {"path": str(path), "line": int(line)}:
                yield f"{path}:{line}"
            case {"path": str(path)}:
                yield path
            case _:
                pass


def _remarks(error: Any) -> Iterator[Part]:
    if isinstance(error, str):
        yield Part("remark", error)
    elif error is not None:
        yield _json(error)


def _size(base64: str) -> str:
    size = len(base64) * 3 // 4
    return f"{size:,} bytes" if size < 10_000 else f"{size // 1_000:,} kB"


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
