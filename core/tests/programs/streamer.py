"""Works on a store until it is killed, and tells on a pipe what happens, in the order it happens.

Each line is a JSON array: ``["about", …]`` before something is attempted, ``["did", …]`` when it was acknowledged,
``["saw", watcher, event]`` for every event the engine has shown to a watcher, past and live. Whatever was told must be
found in the store afterwards (`core.tests.support.witness` looks for it).

    python -m core.tests.programs.streamer STORE SEED [TURNS]
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from base64 import b64encode
from itertools import count
from typing import TYPE_CHECKING

from core.tests.support.sessions import CWD, Recorder, ScriptedAgent, block, permission
from holdfast.engine import Engine, EngineLimits
from holdfast.format import updates_in
from holdfast.model import Permission, new_id, text_event
from holdfast.store import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.engine import LiveSession, LiveTurn
    from holdfast.model import Answer, Event, Question, StopReason, Update

MAX_SESSIONS = 5


class Pipe:
    """Where it tells what happens: written at once, so that nothing is lost that was told."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def tell(self, *words: object) -> None:
        self.write(json.dumps(words).encode() + b"\n")

    def write(self, lines: bytes) -> None:
        view = memoryview(lines)
        while view:
            view = view[os.write(self._fd, view) :]


class Watcher(Recorder):
    """Tells what it was shown, and answers questions at random."""

    def __init__(self, pipe: Pipe, number: int, session_id: str, rng: random.Random) -> None:
        super().__init__()
        self._pipe = pipe
        self._number = number
        self._session_id = session_id
        self._rng = rng
        pipe.tell("watch", number, session_id)

    def saw(self, bodies: Sequence[bytes]) -> None:
        self._pipe.write(b"".join(b'["saw",%d,%s]\n' % (self._number, body) for body in bodies))

    def show(self, events: Sequence[Event]) -> None:
        self.saw([it.body for it in events])

    async def drain(self) -> None: ...

    async def ask(self, question: Question) -> Answer:
        await asyncio.sleep(0)
        assert isinstance(question, Permission)
        answer = self._rng.choice([*(it.id for it in question.options), None])
        if answer is not None and answer.endswith("_always"):
            about = ("permission", self._session_id, question.subject, answer == "allow_always")
            self._pipe.tell("about", *about)
        return answer

    def can_answer(self, question: Question) -> bool:
        return True

    def dropped(self, reason: str) -> None:
        if reason not in ("This session was archived", "This session was deleted"):
            self._pipe.tell("dropped", self._number, reason)


class NumberingAgent(ScriptedAgent):
    """Says things that carry numbers, without a gap, so that one can see if anything is missing."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self._pipe = pipe

    async def perform(self, turn: LiveTurn) -> StopReason | None:
        rng = random.Random(turn.prompt[0]["text"])
        said = _Speech(turn, rng)
        for _ in range(rng.randint(2, 25)):
            match rng.randrange(12):
                case 0 | 1 | 2:
                    for _ in range(rng.randint(2, 40)):  # a burst: one write
                        said.text()
                case 3 | 4 | 5:
                    for _ in range(rng.randint(1, 8)):  # one by one
                        said.text()
                        await asyncio.sleep(0)
                case 6:
                    said.tool()
                case 7:
                    said.terminal()
                case 8:
                    said.number({"sessionUpdate": "_n"}, "n")
                case 9:
                    await self._ask(turn, rng)
                case 10:
                    value = rng.choice(["c", "f"])
                    self._pipe.tell("about", "option", turn.session.id, "units", value)
                    await turn.session.adjust_option("units", value)
                    self._pipe.tell("did", "option", turn.session.id, "units", value)
                case _:
                    title = new_id("title")
                    self._pipe.tell("about", "title", turn.session.id, title)
                    said.other({"sessionUpdate": "session_info_update", "title": title})
                    said.other({"sessionUpdate": "usage_update", "used": rng.randrange(100), "size": 100})
        said.number({"sessionUpdate": "_done"}, "n")
        turn.session.state.memory["last"] = turn.message_id
        return rng.choice([None, None, None, "max_tokens"])

    async def _ask(self, turn: LiveTurn, rng: random.Random) -> None:
        question = permission(rng.choice("abc"))
        asked = question.subject not in turn.session.state.permissions
        answer = question.chosen(await turn.ask(question))
        if asked and answer is not None and answer.kind.endswith("_always"):
            self._pipe.tell("did", "permission", turn.session.id, question.subject, answer.kind == "allow_always")


class _Speech:
    """What one turn says."""

    def __init__(self, turn: LiveTurn, rng: random.Random) -> None:
        self._turn = turn
        self._rng = rng
        self._numbers = count()
        self._message = ("", "")

    def text(self) -> None:
        if self._message[0] == "" or self._rng.random() < 0.05:
            self._message = (self._rng.choice(["agent_message_chunk", "agent_thought_chunk"]), new_id("msg"))
        self._turn.emit(text_event(*self._message, f"{next(self._numbers)} "))

    def tool(self) -> None:
        key = new_id("call")
        self.other({"sessionUpdate": "tool_call_update", "toolCallId": key, "title": "Run", "status": "in_progress"})
        for _ in range(self._rng.randint(0, 4)):
            item = {"type": "content", "content": block(f"{next(self._numbers)} ")}
            self.other({"sessionUpdate": "tool_call_content_chunk", "toolCallId": key, "content": item})
        if self._rng.random() < 0.7:
            self.other({"sessionUpdate": "tool_call_update", "toolCallId": key, "status": "completed"})

    def terminal(self) -> None:
        key = new_id("term")
        self.other({"sessionUpdate": "terminal_update", "terminalId": key, "command": "ls"})
        for _ in range(self._rng.randint(1, 4)):
            data = b64encode(f"{next(self._numbers)} ".encode()).decode()
            self.other({"sessionUpdate": "terminal_output_chunk", "terminalId": key, "data": data})

    def number(self, update: Update, member: str) -> None:
        self.other({**update, member: next(self._numbers)})

    def other(self, update: Update) -> None:
        self._message = ("", "")
        self._turn.emit_update(update)


class Streamer:
    """Does things with sessions, at random."""

    def __init__(self, engine: Engine, pipe: Pipe, rng: random.Random) -> None:
        self._engine = engine
        self._pipe = pipe
        self._rng = rng
        self._watchers = count()
        self._sessions: list[LiveSession] = []

    async def open(self, session_ids: Sequence[str]) -> None:
        for session_id in session_ids:
            self._sessions.append(await self._engine.restore(session_id, CWD))
            await self._watch(self._sessions[-1])

    async def work(self, turns: int | None = None) -> None:
        """Go on until killed, or for so many turns."""
        while turns is None or turns > 0:
            if not self._sessions or (len(self._sessions) < MAX_SESSIONS and self._rng.random() < 0.1):
                await self._create()
            chosen = self._rng.sample(self._sessions, min(len(self._sessions), self._rng.choice([1, 1, 2])))
            await asyncio.gather(*(self._talk(it) for it in chosen))
            if turns is not None:
                turns -= len(chosen)
            elif self._rng.random() < 0.3:
                await self._between(self._rng.choice(self._sessions))

    async def _create(self) -> None:
        session = await self._engine.create(CWD)
        self._pipe.tell("did", "create", session.id, False)
        self._sessions.append(session)
        await self._watch(session)

    async def everything_once(self, text: str) -> None:
        """Do everything there is, once: first a turn, then the rest."""
        (session,) = self._sessions
        await self._talk(session, text)
        await self._rename(session)
        await self._say(session)
        await self._archive(session, archived=True)
        (session,) = self._sessions
        await self._fork(session)
        await self._create()
        await self._talk(self._sessions.pop(), "")
        await self._delete(self._sessions.pop())
        await self._reopen(session)

    async def _talk(self, session: LiveSession, text: str | None = None) -> None:
        text = f"turn {self._rng.random()}" if text is None else text
        if session.state.title_by == "":
            self._pipe.tell("about", "title", session.id, text)
        acknowledged = self._rng.random() < 0.5  # as with version 2; otherwise the end tells of the prompt too
        turn = session.prompt([block(text)], acknowledged=acknowledged)
        self._pipe.tell("about", "prompt", session.id, turn.message_id)
        aside = asyncio.ensure_future(self._aside(session)) if self._rng.random() < 0.5 else None
        await turn.accepted
        if acknowledged:
            self._pipe.tell("did", "prompt", session.id, turn.message_id)
        end = await turn.ended
        if not acknowledged:
            self._pipe.tell("did", "prompt", session.id, turn.message_id)
        self._pipe.tell("did", "end", session.id, turn.message_id, end.reason)
        if aside is not None:
            await aside

    async def _aside(self, session: LiveSession) -> None:
        """Do something while the turn runs."""
        for _ in range(self._rng.randint(0, 30)):
            await asyncio.sleep(0)
        match self._rng.randrange(6):
            case 0:
                session.cancel()
            case 1:
                await self._watch(session)
            case 2:
                await self._rename(session)
            case 3:
                loud = self._rng.random() < 0.5
                self._pipe.tell("about", "option", session.id, "loud", loud)
                await session.set_option("loud", loud)
                self._pipe.tell("did", "option", session.id, "loud", loud)
            case 4:
                await self._fork(session)
            case _:
                await self._watch(session)
                await asyncio.sleep(0)
                session.detach(session.attachments[-1])

    async def _between(self, session: LiveSession) -> None:
        """Do something between turns."""
        match self._rng.randrange(8):
            case 0:
                await self._rename(session)
            case 6 | 7:
                await self._say(session)
            case 1:
                await self._archive(session, archived=self._rng.random() < 0.5)
            case 2:
                await self._fork(session)
            case 3 if len(self._sessions) > 2:
                self._sessions.remove(session)
                await self._delete(session)
            case _:
                await self._reopen(session)

    async def _say(self, session: LiveSession) -> None:
        """Say something while no turn runs; sometimes wait until it is seen."""
        for number in range(self._rng.randint(1, 6)):
            session.emit_update({"sessionUpdate": "_between", "number": number, "id": new_id("b")})
            if self._rng.random() < 0.5:
                await asyncio.sleep(0)
        if self._rng.random() < 0.7:
            await session.journal.shown()

    async def _archive(self, session: LiveSession, *, archived: bool) -> None:
        self._pipe.tell("about", "archive", session.id, archived)
        await self._engine.archive(session.id, archived=archived)
        self._pipe.tell("did", "archive", session.id, archived)
        if archived:  # it was closed with that
            self._sessions.remove(session)
            await self.open([session.id])

    async def _delete(self, session: LiveSession) -> None:
        self._pipe.tell("about", "delete", session.id)
        await self._engine.delete(session.id)
        self._pipe.tell("did", "delete", session.id)

    async def _reopen(self, session: LiveSession) -> None:
        self._sessions.remove(session)
        await self._engine.close(session.id)
        await self.open([session.id])

    async def _rename(self, session: LiveSession) -> None:
        title = new_id("title")
        self._pipe.tell("about", "title", session.id, title)
        await session.rename(title)
        self._pipe.tell("did", "title", session.id, title)

    async def _fork(self, session: LiveSession) -> None:
        fork = await self._engine.fork(session.id, CWD)
        self._pipe.tell("did", "create", fork.id, True)
        number = await self._watch(fork)
        self._pipe.tell("did", "fork", session.id, fork.id, number)
        if len(self._sessions) < MAX_SESSIONS:
            self._sessions.append(fork)

    async def _watch(self, session: LiveSession) -> int:
        number = next(self._watchers)
        watcher = Watcher(self._pipe, number, session.id, self._rng)
        attachment = await session.attach(watcher)
        async for blocks in attachment.past(self._engine.store):
            watcher.saw([line for it in blocks for line in updates_in(it).split(b"\n")])
        self._pipe.tell("follows", number)
        attachment.follow()
        return number


async def stream(
    place: str, fd: int, seed: int, session_ids: Sequence[str], *, turns: int | None = None, once: str | None = None
) -> None:
    """Open a store and work on it: until killed, for so many turns, or doing everything once."""
    pipe = Pipe(fd)
    agent = NumberingAgent(pipe)
    engine = Engine(await open_store(place), agent, limits=EngineLimits(cancel_grace=0.05))
    pipe.tell("did", "open")
    streamer = Streamer(engine, pipe, random.Random(seed))
    await streamer.open(session_ids)
    if once is None:
        await streamer.work(turns)
    else:
        await streamer.everything_once(once)
    await engine.shut_down()
    pipe.tell("did", "shut down")


if __name__ == "__main__":
    asyncio.run(stream(sys.argv[1], 1, int(sys.argv[2]), [], turns=int(sys.argv[3]) if sys.argv[3:] else None))
