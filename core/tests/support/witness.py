"""Listens to a `core.tests.programs.streamer`, and says afterwards whether the store has all that it must have.

What must hold, whatever the moment at which the streamer was killed:

- what any watcher saw is in the history, in the same order, and the history goes on from there without a gap;
- what was acknowledged is there: sessions, prompts, ends of turns, options, titles, answers for ever, deletions;
- a turn that was broken has its end, and nothing in it is left open; no turn is performed again;
- what was attempted and not acknowledged has happened or has not: there is no third state.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from core.tests.support.sessions import CWD, OPTIONS, folded, history
from holdfast.errors import SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.engine import Engine, LiveSession
    from holdfast.model import Update

FINAL = {"completed", "failed", "cancelled"}
UNKNOWN = "unknown"


@dataclass
class Fact:
    """Something that has a value: the latest that was acknowledged, and those that were only attempted."""

    value: Any = UNKNOWN
    attempted: list[Any] = field(default_factory=list[Any])

    def try_(self, value: Any) -> None:
        self.attempted.append(value)

    def confirm(self, value: Any) -> None:
        if value in self.attempted:
            self.attempted.remove(value)
        self.value = value

    def allows(self, value: Any) -> bool:
        return self.value in (UNKNOWN, value) or value in self.attempted


@dataclass
class Known:
    """What is known of one session."""

    history: list[Update] = field(default_factory=list[Any])
    """As it was when it was last looked at."""
    attempted: set[str] = field(default_factory=set[str])
    prompts: list[str] = field(default_factory=list[str])
    ends: dict[str, str] = field(default_factory=dict[str, str])
    facts: defaultdict[str, Fact] = field(default_factory=lambda: defaultdict(Fact))
    forked: bool = False
    """Whether it began with what another session had said so far, perhaps in the middle of a turn."""
    deleting: bool = False
    deleted: bool = False


class Watched:
    """What one watcher saw."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.lines: list[bytes] = []
        self.past = 0


class Witness:
    """See above. One for all the streamers that work on a store, one after the other."""

    def __init__(self) -> None:
        self.sessions: defaultdict[str, Known] = defaultdict(Known)
        self.watched: dict[int, Watched] = {}
        self.forks: list[tuple[str, str, int]] = []
        self.seen = 0

    def hear(self, told: bytes) -> None:
        """Take all that a streamer told before it was killed; the last line may be broken off."""
        for line in told.split(b"\n")[:-1]:
            if line.startswith(b'["saw"'):
                _, number, event = line.split(b",", 2)
                self._saw(self.watched[int(number)], event[:-1])
            else:
                self._heard(*json.loads(line))

    def _saw(self, watched: Watched, event: bytes) -> None:
        self.seen += 1
        watched.lines.append(event)
        if event.startswith(b'{"sessionUpdate":"session_info_update"'):
            self.sessions[watched.session_id].facts["title"].confirm(json.loads(event)["title"])

    def _heard(self, kind: str, *words: Any) -> None:
        match kind, *words:
            case "watch", number, session_id:
                self.watched[number] = Watched(session_id)
            case "follows", number:
                self.watched[number].past = len(self.watched[number].lines)
            case "did", "fork", source, fork, number:
                self.forks.append((source, fork, number))
            case "did", "create", session_id, forked:
                self.sessions[session_id].forked = forked
            case "about", "prompt", session_id, message:
                self.sessions[session_id].attempted.add(message)
            case "did", "prompt", session_id, message:
                self.sessions[session_id].prompts.append(message)
            case "did", "end", session_id, message, reason:
                self.sessions[session_id].ends[message] = reason
            case "about", "delete", session_id:
                self.sessions[session_id].deleting = True
            case "did", "delete", session_id:
                self.sessions[session_id].deleted = True
            case "did", "title", _, _:
                pass  # it may have got another one since; where it has not, somebody saw it
            case "about", what, session_id, *about, value:
                self.sessions[session_id].facts["/".join([what, *about])].try_(value)
            case "did", what, session_id, *about, value:
                self.sessions[session_id].facts["/".join([what, *about])].confirm(value)
            case "did", ("open" | "shut down"):
                pass
            case _:
                raise AssertionError(f"a streamer said {kind} {words}")

    async def look(self, engine: Engine) -> None:
        """Look at all sessions; complain about the first thing that is not as it must be."""
        for session_id, known in list(self.sessions.items()):
            try:
                session = await engine.restore(session_id, CWD)
            except SessionNotFound:
                assert known.deleting, f"{session_id} is gone"
                del self.sessions[session_id]
                continue
            assert not known.deleted, f"{session_id} was deleted and is there"
            found = await history(engine, session)
            _check_history(known, found)
            await _check_facts(engine, session, known, found)
            known.history = found
        self._check_watched()
        await self._check_list(engine)

    def settle(self) -> None:
        """Forget what was only attempted: it has been looked at."""
        self.watched.clear()
        self.forks.clear()
        for known in self.sessions.values():
            known.attempted.clear()
            known.prompts.clear()
            known.ends.clear()
            known.deleting = False

    def _check_watched(self) -> None:
        for watched in self.watched.values():
            known = self.sessions.get(watched.session_id)
            if known is not None:
                check_prefix(folded(watched.lines), known.history)
        for source, fork, number in self.forks:
            watched = self.watched[number]
            if source in self.sessions and watched.past:
                began = folded(watched.lines[: watched.past])
                assert began == self.sessions[source].history[: len(began)], f"{fork} is not as {source} was"

    async def _check_list(self, engine: Engine) -> None:
        page = await engine.list(archived="include", limit=100_000)
        times = [it.updated_at for it in page.sessions]
        assert times == sorted(times, reverse=True)
        assert len(set(times)) == len(times) or len({it.id for it in page.sessions}) == len(times)
        listed = {it.id: it.messages for it in page.sessions}
        for session_id, known in self.sessions.items():
            messages = [it for it in known.history if it["sessionUpdate"] in ("user_message", "agent_message")]
            assert listed.get(session_id, 0) == len(messages), f"{session_id} has {len(messages)} messages"


def _check_history(known: Known, found: list[Update]) -> None:
    before = len(known.history)
    assert found[:before] == known.history, "what was there before has changed"
    turns: dict[str, list[Update]] = {}
    for it in found[before:]:
        if it["sessionUpdate"] == "user_message":
            turns[it["messageId"]] = []
        elif turns and it["sessionUpdate"] != "_between":  # those are said when no turn runs
            turns[next(reversed(turns))].append(it)
    new = [it for it in turns if it in known.prompts]
    assert new == known.prompts, "prompts that were accepted are missing or out of order"
    for message, said in turns.items():
        _check_turn(said, known.ends.get(message), whole=not known.forked or message in known.attempted)


def _check_turn(said: list[Update], acknowledged: str | None, *, whole: bool) -> None:
    numbers = [n for it in said for n in numbers_in(it)]
    assert sorted(numbers) == list(range(len(numbers))), f"there is a gap: {numbers}"
    marks = [it["reason"] for it in said if it["sessionUpdate"] == "_holdfast/turn_end"]
    done = any(it["sessionUpdate"] == "_done" for it in said)
    assert len(marks) <= 1, "a turn ended twice"
    assert not marks or said[-1]["sessionUpdate"] == "_holdfast/turn_end"
    assert done or marks or not whole, "a turn that was broken has no end"
    if acknowledged is not None:
        assert marks == ([] if acknowledged == "end_turn" else [acknowledged])
    for it in said:
        if it["sessionUpdate"] == "tool_call_update":
            assert it["status"] in FINAL, "a tool call was left open"
        if it["sessionUpdate"] == "terminal_update":
            assert isinstance(it["exitStatus"], dict), "a terminal was left open"


async def _check_facts(engine: Engine, session: LiveSession, known: Known, found: list[Update]) -> None:
    record = await engine.store.get(session.id)
    values = {f"option/{it.id}": session.value(it) for it in OPTIONS}
    values |= {f"permission/{subject}": allow for subject, allow in session.state.permissions.items()}
    values |= {"title": session.title, "archive": record.info.archived}
    assert record.info.title == session.title
    for about, fact in known.facts.items():
        value = values.get(about, UNKNOWN)
        assert fact.allows(value), f"{about} is {value!r}, not {fact.value!r}; attempted: {fact.attempted}"
    for about, value in values.items():
        known.facts[about] = Fact(value)
    ended = [it["messageId"] for it in found if it["sessionUpdate"] == "user_message"]
    last = next((it for it in reversed(ended) if known.ends.get(it) in ("end_turn", "max_tokens")), None)
    if last is not None:
        remembered = session.state.memory["last"]
        assert ended.index(remembered) >= ended.index(last), "what the agent remembered is lost"


def numbers_in(update: Update) -> Iterable[int]:
    """Find the numbers an entry carries."""
    kind = update["sessionUpdate"]
    if kind in ("_n", "_done"):
        yield update["n"]
    elif kind == "terminal_update":
        yield from map(int, b64decode(update.get("output", {}).get("data", "")).split())
    elif kind == "tool_call_update":
        yield from (int(it["content"]["text"]) for it in update.get("content", ()))
    elif kind in ("agent_message", "agent_thought"):
        yield from (int(n) for it in update["content"] for n in it["text"].split())


def check_prefix(seen: list[Update], stored: list[Update]) -> None:
    """Make sure that what was seen is the beginning of what is stored."""
    missing = seen[len(stored) :]
    assert not missing, f"entries that were seen are missing: {missing}; the last that is stored: {stored[-1:]}"
    for ours, theirs in zip(seen, stored, strict=False):
        for name in ("sessionUpdate", "messageId", "toolCallId", "terminalId", "title", "n", "id", "reason"):
            assert ours.get(name) == theirs.get(name), f"{name} is {theirs.get(name)!r}, seen was {ours.get(name)!r}"
        if ours.get("status") in FINAL:
            assert ours["status"] == theirs["status"]
        text, whole = _text(ours), _text(theirs)
        assert whole.startswith(text), f"seen was {text!r}, stored is {whole!r}"


def _text(update: Update) -> str:
    if update["sessionUpdate"] == "terminal_update":
        return b64decode(update.get("output", {}).get("data", "")).decode()
    items: list[Any] = update.get("content") or []
    return "".join(it["text"] if "text" in it else it["content"]["text"] for it in items)


def encode(witness: Witness) -> bytes:
    """Write down what is known, for the next who looks."""
    known = {
        session_id: (it.history, {about: fact.value for about, fact in it.facts.items()})
        for session_id, it in witness.sessions.items()
    }
    return msgspec.json.encode(known)


def decode(written: bytes, seen: int) -> Witness:
    """Read what was written down."""
    witness = Witness()
    witness.seen = seen
    for session_id, (found, values) in msgspec.json.decode(written).items():
        facts = defaultdict(Fact, {about: Fact(value) for about, value in values.items()})
        witness.sessions[session_id] = Known(history=found, facts=facts)
    return witness
