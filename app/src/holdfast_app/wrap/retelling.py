"""A conversation as an agent is told it again: quoted, within a budget. Pure (G6).

The beginning and the newest are told word for word, except that long messages are cut in the middle. What was between
them becomes a table of what was done: files, commands, and what the user asked for.

Each part stands behind a line with a mark that no part contains. So nothing that an agent, a tool or a page has said
can end the quotation, or stand in it as the user's words (P13).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from holdfast.model import Terminal, is_object
from holdfast.model.kinds import DAMAGED, FORKED_EARLIER, HAND_OVER, TURN_END
from holdfast.view.entries import failure_of, view_entry
from holdfast.view.safe_text import terminal_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holdfast.model import Entry
    from holdfast.view.entries import Part
    from holdfast_app.wrap.compare import Turn

TOOL_CHARACTERS = 4_000
"""So much is told of what a tool was given, and of each thing that it gave."""

BEGINNING, BETWEEN = 0.15, 0.25
"""The shares of the budget for the beginning and for the table; the newest get the rest."""

LONGEST = 0.2
"""Where not everything can be told, no message takes more of the budget than this share."""

ROW_CHARACTERS = 160

_MARKING = 32  # the line in front of a part

_SPEAKERS = {"user": "User", "agent": "Agent", "session": "Another session", "plan": "The agent's plan", "note": "Note"}
_MESSAGES = frozenset({"user_message", "agent_message", "session_message", "compaction_update"})
_TOLD = frozenset({"tool_call_update", "plan_update", "subagent_update"})
_TOLD_KINDS = frozenset({TURN_END, HAND_OVER, FORKED_EARLIER, DAMAGED})
_DONE = {"edit": "edited", "delete": "deleted", "move": "moved", "read": "read"}


class Retold(NamedTuple):
    """A conversation, or what of it fits into a budget."""

    parts: Sequence[str]
    """What was said and done, in order. Each begins with who said it."""
    left_out: int = 0
    """How many messages and tool calls stand only in the table."""

    def quoted(self, mark: str) -> str:
        """Return the parts behind lines with a mark, between two lines with it."""
        return f"<quoted-{mark}>\n" + "".join(f"--{mark}--\n{part}\n" for part in self.parts) + f"</quoted-{mark}>"


def retell(turns: Sequence[Turn], budget: int) -> Retold:
    """Return what an agent is told of turns, within a budget of characters."""
    entries = [entry for turn in turns for entry in turn.entries]
    told = _Told(entries)
    said = [entry for entry in entries if _is_told(entry)]
    newest = told.newest(said, budget, longest=budget)
    if len(newest) == len(said):
        return Retold(newest)
    for_table = int(budget * BETWEEN)
    beginning = told.beginning(said, int(budget * BEGINNING))
    room = budget - for_table - _length(beginning)
    newest = told.newest(said[len(beginning) :], room, longest=int(budget * LONGEST))
    between = said[len(beginning) : len(said) - len(newest)]
    if not between:
        return Retold([*beginning, *newest])
    return Retold([*beginning, cut(_table(between, for_table), for_table), *newest], len(between))


def cut(text: str, limit: int) -> str:
    """Return a text that is no longer than a limit; of a longer one its head and its tail."""
    if len(text) <= limit:
        return text
    note = f"\n[… {len(text) - limit:,} characters are left out …]\n"
    keep = limit - len(note)
    if keep <= 0:
        return text[:limit]
    tail = keep // 3
    return f"{text[: keep - tail]}{note}{text[len(text) - tail :]}"


def _is_told(entry: Entry) -> bool:
    if entry.entity in _MESSAGES:
        return bool(entry.content())
    return entry.entity in _TOLD or entry.members.get("sessionUpdate") in _TOLD_KINDS


def _length(parts: Iterable[str]) -> int:
    return sum(len(part) + _MARKING for part in parts)


class _Told:
    """Tells the entries of a conversation, with what its terminals have printed."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._terminals = {entry.key: entry for entry in entries if isinstance(entry, Terminal)}

    def newest(self, said: Sequence[Entry], room: int, *, longest: int) -> list[str]:
        """Return the last parts that there is room for, in order. The very last is cut until it fits."""
        parts: list[str] = []
        for entry in reversed(said):
            text = cut(self._part(entry), longest if parts else min(longest, room - _MARKING))
            room -= len(text) + _MARKING
            if room < 0:
                break
            parts.append(text)
        return parts[::-1]

    def beginning(self, said: Sequence[Entry], room: int) -> list[str]:
        """Return the first parts that there is room for. The very first is cut until it fits: it is the task."""
        parts: list[str] = []
        for entry in said:
            text = cut(self._part(entry), room // 2 if parts else room - _MARKING)
            room -= len(text) + _MARKING
            if room < 0:
                break
            parts.append(text)
        return parts

    def _part(self, entry: Entry) -> str:
        view = view_entry(entry)
        match view.role:
            case "tool":
                title = f"Agent used a tool: {_line(view.title)}" + (f" ({view.status})" if view.status else "")
                return "\n".join([title, *self._shown_by_tool(entry, view.parts)])
            case "note":
                return "\n".join([f"Note: {_line(f'{view.title} {view.status}')}", *map(_shown, view.parts)])
            case _:
                return f"{_SPEAKERS[view.role]}: " + "\n".join(map(_shown, view.parts)).strip()

    def _shown_by_tool(self, entry: Entry, parts: Sequence[Part]) -> Iterator[str]:
        shown = [str(item.get("terminalId")) for item in entry.content() if is_object(item)]
        terminals = {f"Terminal {key}": self._terminals[key] for key in shown if key in self._terminals}
        for part in parts:
            terminal = terminals.get(part.text) if part.kind == "remark" else None
            if terminal is None:
                yield cut(_shown(part), TOOL_CHARACTERS)
            else:
                yield terminal_text(terminal.last_output(TOOL_CHARACTERS)).strip("\n")


def _shown(part: Part) -> str:
    match part.kind:
        case "link":
            return f"[link: {part.text}]" if part.text == part.label else f"[link: {part.text} <{part.label}>]"
        case "image":
            return f"[image: {part.text}, {len(part.label) * 3 // 4:,} bytes]"
        case "diff":
            return f"Change of {part.label}:\n{part.text}" if part.label else part.text
        case "step":
            return f"- {part.text}" + (f" ({part.label})" if part.label else "")
        case _:
            return part.text


# What was done, in rows


def _table(between: Sequence[Entry], budget: int) -> str:
    files: dict[str, Counter[str]] = {}
    commands: Counter[str] = Counter()
    others: Counter[str] = Counter()
    asked: list[str] = []
    for entry in between:
        if entry.entity == "user_message":
            asked.append(_row(entry.text()))
        elif entry.entity == "tool_call_update":
            touched = _files(entry)
            for path, done in touched.items():
                files.setdefault(path, Counter())[done] += 1
            if entry.members.get("kind") == "execute":
                commands[_command(entry)] += 1
            elif not touched:
                others[_title(entry)] += 1
    by_changes = sorted(files.items(), key=lambda item: not item[1].keys() - {"read", "used"})
    sections = {
        "Files": [f"{_row(path)}: {', '.join(map(_times, done.items()))}" for path, done in by_changes],
        "Commands": [_times(counted) for counted in commands.items()],
        "Other tools": [_times(counted) for counted in others.items()],
        "What the user asked for": asked,
    }
    filled = {heading: rows for heading, rows in sections.items() if rows}
    head = f"Left out here by Holdfast: {len(between):,} messages and tool calls. What was done in them:"
    room = (budget - len(head)) // max(len(filled), 1)
    return "\n".join([head, *(_section(heading, rows, room) for heading, rows in filled.items())])


def _section(heading: str, rows: Sequence[str], room: int) -> str:
    """Return a heading and the rows that there is room for: the first and the last."""
    room -= len(heading) + 40
    lines = [f"- {row}" for row in rows]
    if sum(len(line) + 1 for line in lines) > room:
        first = _that_fit(lines, room // 3)
        last = _that_fit(lines[len(first) :][::-1], room - room // 3)[::-1]
        lines = [*first, f"[… {len(rows) - len(first) - len(last):,} rows are left out …]", *last]
    return "\n".join([f"\n{heading}:", *lines])


def _that_fit(lines: Sequence[str], room: int) -> list[str]:
    fitting: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        fitting.append(line)
    return fitting


def _files(entry: Entry) -> dict[str, str]:
    """Return by path what a tool call did with the files that it names."""
    done = _DONE.get(str(entry.members.get("kind")), "used")
    item: Any
    files: dict[str, str] = {}
    for item in _listed(entry.members.get("locations")):
        if is_object(item) and "path" in item:
            files[str(item["path"])] = done
    for item in entry.content():
        match item:
            case {"type": "diff", "path": str(path)}:
                files[path] = "edited"
            case {"type": "diff", "changes": [*changes]}:
                files |= {str(change["path"]): "edited" for change in changes if is_object(change) and "path" in change}
            case _:
                pass
    return files


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _command(entry: Entry) -> str:
    match entry.members.get("rawInput"):
        case {"command": str(command)}:
            command = _row(command)
        case {"command": [*words]}:
            command = _row(" ".join(map(str, words)))
        case _:
            command = _title(entry)
    failure = failure_of(entry.members.get("rawOutput")) or failure_of(entry.members.get("_meta"))
    failed = failure or ("failed" if entry.members.get("status") == "failed" else "")
    return f"{command} ({failed})" if failed else command


def _title(entry: Entry) -> str:
    return _row(str(entry.members.get("title") or entry.members.get("name") or entry.key))


def _times(counted: tuple[str, int]) -> str:
    what, times = counted
    return what if times == 1 else f"{what} ({times:,} times)"


def _row(text: str) -> str:
    line = _line(text)
    return line if len(line) <= ROW_CHARACTERS else f"{line[: ROW_CHARACTERS - 1]}…"


def _line(text: str) -> str:
    return " ".join(text.split())
