"""What a running session shows: events in, blocks out.

A block that is finished is yielded once, to be printed; `live` yields what may still change. Text is finished part by
part, a tool call when it has ended, a plan when the turn has. What an agent says while one of its tools still runs does
not wait for the tool. What goes on beside the turns is live until it ends. Pure: no terminal, no clock, no session.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import reason_beyond
from holdfast.model import FINAL_STATUSES, History, event_from, is_object
from holdfast.model.kinds import DAMAGED, FORKED_EARLIER, HAND_OVER, LOST_CONTEXT, TURN_END
from holdfast.view.blocks import AgentContent, AgentText, Block, Call, Note, Plan, Prompt
from holdfast.view.earlier_calls import EarlierCalls, has_exited, unfinished
from holdfast.view.entries import note_text, terminals_in, view_entry
from holdfast.view.markdown_stream import MarkdownStream
from holdfast.view.tool_calls import call_block, call_in_question, parts_of, terminal_block

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast.model import Entry, Event, Update
    from holdfast.view.entries import Part

_MESSAGES = frozenset({"user_message", "agent_message", "agent_thought", "session_message"})
_TERMINAL = "terminal_update"
_FOLDED = frozenset(
    {"tool_call_update", "tool_call_content_chunk", "terminal_update", "terminal_output_chunk", "plan_update"}
    | {"plan_removed", "compaction_update", "compaction_summary_chunk", "subagent_update"}
)
_ENDS = {
    "cancelled": "cancelled",
    "refusal": "the agent refuses to go on",
    "max_tokens": "stopped: the model has reached its limit",
    "max_turn_requests": "stopped: the turn has made as many requests as it may",
    "interrupted": "broken off here: the agent's process died",
}


class LiveView:
    """What one session shows, from the moment it is made."""

    def __init__(self) -> None:
        self._speaker = ("", "")  # which message is being said
        self._first = True
        self._said: dict[tuple[str, str], list[str]] = {}
        self._stream = MarkdownStream()
        self._told_end = False
        self._forgotten: str | None = None  # what was said of an agent that had forgotten what was before
        self._echoes: deque[str] = deque(maxlen=16)
        self._earlier = EarlierCalls()
        self._background: dict[str, str] = {}  # ids of what goes on beside the turns, and the entity of each
        self._shown_in: dict[str, str] = {}  # by terminal, the tool call that shows it
        self._entries = History()
        self._begin_turn()

    def _begin_turn(self) -> None:
        before = self._entries
        self._entries = History()  # tool calls, terminals and plans
        self._open: dict[str, None] = {}  # tool calls that were not given yet
        self._given: dict[str, Call] = {}  # those that were, as they were
        self._again: dict[str, None] = {}  # those that were given twice…
        self._late: dict[str, None] = {}  # …and those that have more to show nevertheless
        self._asked: dict[str, tuple[Part, ...]] = {}  # what was shown of them when the user was asked
        self._said.clear()
        for entry in before:
            if entry.entity == "tool_call_update":
                self._earlier.note(entry)
        for entry in unfinished(before):
            self._take_whole(entry)
        for key in self._background:  # of which no call may be known
            if self._entries.get(_TERMINAL, key) is None and (entry := before.get(_TERMINAL, key)) is not None:
                self._take_whole(entry)
        self._shown_in = {key: call for key, call in self._shown_in.items() if self._entries.get(_TERMINAL, key)}

    def _take_whole(self, entry: Entry) -> None:
        for update in entry.updates():
            self._entries.apply(event_from(update))

    def prompted(self, text: str) -> Prompt:
        """Return the block of a prompt that the user typed here. An agent that repeats it is not shown again."""
        self._echoes.append(text)
        return Prompt(text)

    def knows(self, call: str) -> bool:
        """Return whether a tool call was seen."""
        return call in self._open or call in self._given or call in self._earlier

    def asked(self, members: Update, known: Entry | None) -> Call:
        """Return what to show of a tool call that is to be permitted. It is not shown again when the call ends."""
        call = call_in_question(known, members)
        self._asked[str(members.get("toolCallId", ""))] = call.parts
        return call

    def feed(self, event: Event) -> Iterator[Block]:
        """Take an event; yield what is finished now."""
        kind = event.kind
        if event.text is not None:
            yield from self._say(kind.removesuffix("_chunk"), event.key, event.text)
            return
        update = event.update()
        if kind.removesuffix("_chunk") in _MESSAGES:
            yield from self._message(event, update)
        elif kind in _FOLDED:
            self._fold(event, update)
            yield from self._changed(kind, event.key)
        elif kind == "notice":
            yield from self._pause()
            if update.get("title") != self._forgotten:  # a notice says what the entry before it has said
                yield _notice(update)
        elif kind == "state_update":
            yield from self._state_changed(update)
        elif kind in (DAMAGED, HAND_OVER, FORKED_EARLIER):
            yield from self._pause()
            yield Note(note_text(update), str(update.get("reason") or ""), "warning" if kind == DAMAGED else "end")
        elif kind == LOST_CONTEXT:
            yield from self._pause()
            self._forgotten = note_text(update)
            yield Note(self._forgotten, "", "warning")
        elif kind == TURN_END:  # the same as idle, as it is stored
            yield from self._end_turn()
            yield from _ended(update.get("reason"), update.get("error"))
            self._told_end = True

    def replay(
        self,
        entries: Iterable[Entry],
        *,
        running: bool = False,
        background: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Iterator[Block]:
        """Yield a whole conversation; where its last turn is `running`, without the tool calls that go on.

        So it is with those that are in the `background`, as `ClientSession` has it. One that has not ended is known by
        its title later, too: it may end after all.
        """
        past = list(entries)
        self._background = {
            key: _TERMINAL if work["type"] == "terminal" else "tool_call_update"
            for key, work in (background or {}).items()
        }
        terminals = {entry.key: entry for entry in past if entry.entity == _TERMINAL}
        for entry in past:
            if entry.entity == _TERMINAL:
                continue  # shown with its call, which comes before or after
            if entry.entity == "tool_call_update":
                for terminal in (terminals.pop(key, None) for key in terminals_in(entry.content())):
                    if terminal is not None:
                        self._take_whole(terminal)
            for update in entry.updates():
                yield from self.feed(event_from(update))
            yield from self._pause()
            yield from self._plans()
        for terminal in terminals.values():
            self._take_whole(terminal)
        yield from self._pause() if running else self._end_turn()
        self._told_end = False

    def finish(self) -> Iterator[Block]:
        """Yield all that is left, also of what went on beside the turns: nothing more will come."""
        yield from self._pause()
        yield from [call for call in self.going_on() if call.key not in self._open and call.key not in self._late]
        self._background = {}
        yield from self._end_turn()

    def _end_turn(self) -> Iterator[Block]:
        """Yield what is left of a turn, but for what goes on beside it."""
        yield from self._pause()
        beside = self._beside()
        for key in list(self._open):
            if key not in beside:
                yield self._finished(key)
        for key in self._late:
            yield call_block(self._entries, key)
        yield from self._plans()
        self._begin_turn()

    def live(self, limit: int = 2000) -> Iterator[Block]:
        """Yield what may still change: the end of the text, tool calls, the plan."""
        rest = None if self._speaker[0] == "user_message" else self._stream.rest(limit)
        if rest is not None:
            yield AgentText(rest, self._first, thought=self._speaker[0] == "agent_thought")
        yield from self._running(live=True)
        for entry in self._entries:
            if entry.entity == "plan_update":
                yield Plan(view_entry(entry).parts)
            elif entry.entity == "compaction_update" and self._status(entry.key, entry.entity) not in FINAL_STATUSES:
                yield Note("The agent sums up what was said so far…")

    def going_on(self) -> Iterator[Call]:
        """Yield what goes on, in the turn or beside it, with all that it has shown so far."""
        yield from self._running(live=False)

    def _running(self, *, live: bool) -> Iterator[Call]:
        beside = self._beside()
        for key in dict.fromkeys((*self._open, *self._late, *beside)):
            if beside.get(key) == key and self._entries.get("tool_call_update", key) is None:
                yield terminal_block(self._entries, key, live=live)
            else:
                call = call_block(self._entries, key, live=live)
                yield replace(call, status="in_progress") if key in beside else call

    # Text

    def _say(self, kind: str, key: str, text: str) -> Iterator[Block]:
        if self._speaker != (kind, key):
            yield from self._pause()
            self._speaker = (kind, key)
        self._said.setdefault(self._speaker, []).append(text)
        if kind != "user_message":
            yield from self._parts(self._stream.feed(text))

    def _parts(self, parts: Iterable[Any]) -> Iterator[Block]:
        for part in parts:
            yield AgentText(part, self._first, thought=self._speaker[0] == "agent_thought")
            self._first = False

    def _pause(self) -> Iterator[Block]:
        """End the message that is being said; yield the rest of it and what waited for its end."""
        if self._speaker[0] == "user_message":
            text = "".join(self._said.get(self._speaker, ()))
            if text in self._echoes:
                self._echoes.remove(text)
            else:
                yield Prompt(text)
        else:
            yield from self._parts(self._stream.finish())
        self._speaker, self._first, self._stream = ("", ""), True, MarkdownStream()
        for key in list(self._open):
            if self._status(key) in FINAL_STATUSES:
                yield self._finished(key)

    def _message(self, event: Event, update: Update) -> Iterator[Block]:
        """Take a message, or a chunk of one, that is more than plain text."""
        kind = event.kind.removesuffix("_chunk")
        content: Any = update.get("content")
        if event.kind != kind:
            yield from self._items(kind, event.key, [content])
        elif content is not None:
            items = cast("list[Any]", content) if isinstance(content, list) else [content]
            yield from self._replaced(kind, event.key, items)

    def _items(self, kind: str, key: str, items: list[Any]) -> Iterator[Block]:
        for item in items:
            if (text := _text_of(item)) is not None:
                yield from self._say(kind, key, text)
            else:
                yield from self._pause()
                for part in parts_of(item):
                    yield AgentContent(part)

    def _replaced(self, kind: str, key: str, items: list[Any]) -> Iterator[Block]:
        """Take the whole of a message. What was printed stays where it is; what is new is shown."""
        before = "".join(self._said.get((kind, key), ()))
        texts = [_text_of(item) for item in items]
        text = "".join(text for text in texts if text is not None)
        if before and None not in texts and text.startswith(before):
            if text != before:
                yield from self._say(kind, key, text[len(before) :])
            return
        if before:
            yield from self._pause()
            yield Note("The agent says that again, in other words:")
            del self._said[kind, key]
        yield from self._items(kind, key, items)

    # Tool calls, what goes on beside the turns, and plans

    def _fold(self, event: Event, update: Update) -> None:
        if event.kind in ("tool_call_update", "tool_call_content_chunk"):
            known = self._entries.get("tool_call_update", event.key) is not None
            if not known and (beginning := self._earlier.beginning(event.key, update)) is not None:
                self._entries.apply(beginning)
            for terminal in terminals_in(update.get("content")):
                self._shown_in[terminal] = event.key
        self._entries.apply(event)

    def _changed(self, kind: str, key: str) -> Iterator[Block]:
        if kind in ("tool_call_update", "tool_call_content_chunk"):
            yield from self._call_changed(key)
        elif kind == _TERMINAL:
            yield from self._terminal_changed(key)
        elif kind == "plan_update" and self._carried_out(key):
            yield from self._pause()
            yield from self._plans()
        elif kind == "compaction_update" and self._status(key, kind) in FINAL_STATUSES:
            yield from self._pause()
            entry = self._entries.get("compaction_update", key)
            failed = self._status(key, kind) != "completed"
            text = "What was said so far could not be summed up" if failed else "What was said so far was summed up"
            reason = entry.members.get("error") if entry is not None else ""
            yield Note(text, str(reason or ""), "warning" if failed else "info")

    def _call_changed(self, key: str) -> Iterator[Block]:
        if key in self._given:
            yield from self._more_after_end(key)
        elif key in self._earlier:
            yield from self._earlier_changed(key)
        else:
            if key not in self._open:
                yield from self._pause()
                self._open[key] = None
            if self._status(key) in FINAL_STATUSES and not self._speaker[0]:
                yield self._finished(key)

    def _more_after_end(self, key: str) -> Iterator[Block]:
        """Give a call again that has more to show after its end; if that goes on, with the end of the turn.

        In version 1 a command that goes on beside the turns says all that it has printed again with each line.
        """
        if key in self._late or call_block(self._entries, key) == self._given[key]:
            return
        if key in self._again:
            self._late[key] = None
        else:
            yield from self._give_again(key)

    def _earlier_changed(self, key: str) -> Iterator[Block]:
        """Give a call of an earlier turn when it ends; until then it is live."""
        if self._status(key) in FINAL_STATUSES and not self._earlier.had_ended(key):
            yield from self._give_again(key)
        elif key not in self._beside():
            self._late[key] = None

    def _terminal_changed(self, key: str) -> Iterator[Block]:
        """Give a call again whose command has ended after the call itself."""
        call = self._shown_in.get(key)
        if call is None or call in self._open or not has_exited(self._entries.get(_TERMINAL, key)):
            return
        self._background.pop(key, None)
        if call in self._earlier or self._given.get(call) != call_block(self._entries, call):
            yield from self._give_again(call)

    def _give_again(self, key: str) -> Iterator[Block]:
        yield from self._pause()
        self._late.pop(key, None)
        self._again[key] = None
        if (entry := self._entries.get("tool_call_update", key)) is not None and key in self._earlier:
            self._earlier.note(entry)
        call = self._given[key] = call_block(self._entries, key)
        yield call

    def _state_changed(self, update: Update) -> Iterator[Block]:
        before = self._beside()
        self._background = _listed(update.get("background"))
        now = self._beside()
        for key in before:  # the agent tells how it ended before it says that it has
            if key not in now and key in self._earlier and self._status(key) not in (*FINAL_STATUSES, ""):
                yield from self._give_again(key)
        if update.get("state") == "idle":
            yield from self._end_turn()
            if not self._told_end:
                yield from _ended(update.get("stopReason"), _error_text(update.get("error")))
            self._told_end = False

    def _beside(self) -> dict[str, str]:
        """Return the tool calls that stand for what goes on beside the turns; a terminal without one is itself."""
        shown = ((self._shown_in.get(key, key), key) for key in self._background)
        return {call: key for call, key in shown if not self._has_ended(key)}

    def _has_ended(self, key: str) -> bool:
        entity = self._background[key]
        entry = self._entries.get(entity, key)
        return has_exited(entry) if entity == _TERMINAL else self._status(key) in FINAL_STATUSES

    def _finished(self, key: str) -> Call:
        del self._open[key]
        call = self._given[key] = call_block(self._entries, key)
        return replace(call, parts=tuple(part for part in call.parts if part not in self._asked.get(key, ())))

    def _status(self, key: str, entity: str = "tool_call_update") -> str:
        entry = self._entries.get(entity, key)
        status = None if entry is None else entry.members.get("status")
        return status if isinstance(status, str) else ""

    def _carried_out(self, key: str) -> bool:
        entry = self._entries.get("plan_update", key)
        parts = () if entry is None else view_entry(entry).parts
        return bool(parts) and all(part.kind == "step" and part.label in FINAL_STATUSES for part in parts)

    def _plans(self) -> Iterator[Block]:
        for entry in list(self._entries):
            if entry.entity == "plan_update" and (parts := view_entry(entry).parts):
                yield Plan(parts)
                self._entries.apply(event_from({"sessionUpdate": "plan_removed", "planId": entry.key}))


def _listed(background: Any) -> dict[str, str]:
    """Return the ids of what goes on beside the turns, and the entity of each."""
    found: dict[str, str] = {}
    for item in cast("list[Any]", background) if isinstance(background, list) else ():
        match item:
            case {"type": "terminal", "terminalId": str(key)}:
                found[key] = _TERMINAL
            case {"type": "tool_call", "toolCallId": str(key)}:
                found[key] = "tool_call_update"
            case _:
                pass
    return found


def _notice(update: Update) -> Note:
    severity = update.get("severity")
    tone = "error" if severity == "error" else "warning" if severity == "warning" else "info"
    return Note(str(update.get("title") or ""), str(update.get("description") or ""), tone)


def _text_of(item: Any) -> str | None:
    """Return the text of a text block, None for any other item."""
    match item:
        case {"type": "text", "text": str(text)}:
            return text
        case _:
            return None


def _error_text(error: Any) -> str:
    """Return the message of an error, and the reason that many agents give in its data."""
    if not is_object(error):
        return str(error or "")
    message = str(error.get("message") or "")
    reason = reason_beyond(message, error.get("data"))
    return f"{message}: {reason}" if reason else message


def _ended(reason: Any, error: Any) -> Iterator[Note]:
    if reason in (None, "end_turn"):
        return
    if isinstance(reason, str) and reason in _ENDS:
        yield Note(_ENDS[reason], tone="end" if reason == "cancelled" else "warning")
    else:
        yield Note("the turn failed", str(error or ""), "error")
