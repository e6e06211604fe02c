"""A conversation: the agent's process, the session, the turns, and what the user says in between.

It shows what happens on a `Screen` and knows no terminal. One task follows the session as long as it is open; a turn
runs until it ends, the user stops it, or the agent dies. An agent that died can be started again with the same session.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.chat.acting import act
from holdfast.chat.asking import ask_permission, ask_question
from holdfast.chat.commands import complete, parse
from holdfast.chat.opening import AUTH_REQUIRED, open_session, restorable
from holdfast.chat.screen import Ask, Choice
from holdfast.chat.status import status_line
from holdfast.client import connect
from holdfast.errors import ConnectionLost, HoldfastError, ProcessExited, RemoteError, UsageError
from holdfast.view.blocks import Note
from holdfast.view.live import LiveView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.chat.opening import Start
    from holdfast.chat.screen import Candidate, Screen
    from holdfast.client import ClientSession, Connection, Updates
    from holdfast.model import Elicitation, ElicitationAnswer, Permission
    from holdfast.view.blocks import Block

PATIENCE = 3.0
"""Whoever leaves waits no longer than so many seconds for a turn to end."""
FRAME = 0.02
"""So many seconds go by at most before anything else gets a chance."""
STDERR_LINES = 15


class Talk:
    """Conversations with one agent, until the user leaves. It is the screen's `Outlook`."""

    def __init__(self, start: Start, prompt: str | None = None) -> None:
        self.start = start
        self._first = prompt
        self.view = LiveView()
        self.screen: Screen
        self.connection: Connection
        self.session: ClientSession | None = None
        self.last_turn: list[Block] = []
        """What the last turn has shown."""
        self._doing = ""
        self._since = 0.0
        self._work: asyncio.Task[None] | None = None
        self._in_turn = False
        self._conversing = False
        self._stopping: asyncio.Task[None] | None = None
        self._turn_over = asyncio.Event()
        self._seen = asyncio.Event()  # set whenever something was seen
        self._worth_coming_back = False
        self._updates: Updates

    # What a screen asks

    def live(self) -> Iterable[Block]:
        """Give what may still change."""
        return self.view.live()

    def busy(self) -> str:
        """Say what is being done, and for how long."""
        if not self._doing and self._is_running():
            return "working for another client"
        seconds = int(time.monotonic() - self._since)
        return f"{self._doing} {seconds} s" if self._doing and seconds else self._doing

    def status(self) -> str:
        """Say what is worth knowing."""
        return status_line(self.session, self.start.cwd)

    def complete(self, line: str) -> Iterable[Candidate]:
        """Give what a line could become."""
        return complete(line, self.session)

    def interrupt(self) -> bool:
        """Stop the turn, or whatever else is being done."""
        if self._work is not None and not self._in_turn:
            self._work.cancel()
            return True
        if not self._is_running():
            return False
        self.screen.take_back()
        if self._stopping is None or self._stopping.done():
            if self._in_turn:
                self._do("stopping")
            self._stopping = asyncio.create_task(self._stop(), name="stopping the turn")
        return True

    def _is_running(self) -> bool:
        return self.session is not None and not self.session.closed and self.session.running

    # From the first connection to the last

    async def run(self, screen: Screen) -> int:
        """Talk until the user leaves; give the status to exit with."""
        self.screen = screen
        start = self.start
        while True:
            try:
                await self._run_once(start)
            except ConnectionLost as e:
                self._do("")
                if screen.left.is_set():
                    return 0
                screen.show(*self.view.finish(), _obituary(e))
                if self.session is None or not await self._wanted_again():
                    return 1
                start = replace(start, newest=False, resume=self.session.id)
            else:
                return 0
            finally:
                self._do("")

    async def _run_once(self, start: Start) -> None:
        """Start the agent and talk to it; the user can leave whatever the agent does, or does not."""
        talking = asyncio.create_task(self._connect_and_talk(start), name="talking")
        leaving = asyncio.create_task(self.screen.left.wait(), name="leaving")
        try:
            await asyncio.wait((talking, leaving), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([talking], timeout=2 * PATIENCE if self._conversing else 0)
            if talking.done():
                talking.result()
        finally:
            await _ended(talking)
            await _ended(leaving)

    async def _connect_and_talk(self, start: Start) -> None:
        self._do(f"starting {' '.join(start.named)}")
        async with connect(
            *start.command,
            cwd=start.cwd,
            protocol=start.protocol,
            permissions=start.permissions if start.permissions in ("allow", "deny") else self._permission,
            questions=self._question if self.screen.interactive else None,
        ) as self.connection:
            if (session := await self._open(start)) is not None:
                await self._converse(session)

    def coming_back(self) -> str:
        """Say how to go on with the session later; nothing where nothing was said."""
        if self.session is None or not self._worth_coming_back or not restorable(self.connection):
            return ""
        return self.start.coming_back(self.session.id)

    async def _open(self, start: Start) -> ClientSession | None:
        """Open the session, logging in first where the agent wants that; None if the user leaves instead."""
        again = self.session is not None
        while True:
            opening = asyncio.create_task(open_session(self.connection, start), name="opening")
            await self._unless_left(opening)
            if opening.cancelled():
                return None
            try:
                session = opening.result()
                break
            except RemoteError as e:
                if e.code != AUTH_REQUIRED or not self.connection.auth_methods or not await self._logged_in(e):
                    raise
        if again:
            self.screen.show(Note("The agent runs again, in the same session.", tone="good"))
        else:
            about = self.connection.agent
            name = f"{about.title or about.name} {about.version}".rstrip()
            self.screen.show(Note(f"{name}. /help lists keys and commands."))
        self.enter(session, restored=start.restores, shown=again)
        return session

    async def _logged_in(self, refused: RemoteError) -> bool:
        methods = self.connection.auth_methods[:9]
        choices = tuple(
            Choice(str(n), str(it.get("name") or it["id"]), str(it["id"])) for n, it in enumerate(methods, 1)
        )
        method = await self.screen.choose(Ask(f"The agent wants you to log in: {refused.message}", choices))
        if method is None:
            return False
        self._do("logging in")
        await self.connection.authenticate(method)
        return True

    def enter(self, session: ClientSession, *, restored: bool = False, shown: bool = False) -> None:
        """Make a session the one that is shown, with what was said in it so far unless that was shown already."""
        self._do("")
        self.session = session
        self._updates = session.updates()  # from here on: nothing is missed, and nothing shown twice
        self.view = LiveView()
        self.last_turn.clear()
        if shown:
            return
        past = list(self.view.replay(session.history))
        self._worth_coming_back = bool(past)
        if restored and session.title:
            self.screen.show(Note(session.title, tone="end"))
        if restored and not past:  # P11
            self.screen.show(Note("Nothing was said in this session yet, or the agent does not tell.", tone="warning"))
        self.screen.show(*past)

    async def _wanted_again(self) -> bool:
        if not self.screen.interactive:
            return False
        choices = (Choice("r", "Start it again with this session", "again", "good"), Choice("q", "Leave", "leave"))
        return await self.screen.choose(Ask("The agent is gone.", choices, "leave")) == "again"

    # Listening and speaking

    async def _converse(self, session: ClientSession) -> None:
        """Go through sessions, one at a time, until the user leaves."""
        self._conversing = True
        while True:
            watching = asyncio.create_task(self._watch(self._updates), name="watching the session")
            try:
                await self._say_and_hear(session, watching)
            finally:
                await _ended(self._stopping)
                await _ended(watching)
            if self.session is None or self.session is session:
                return
            session = self.session

    async def _watch(self, updates: Updates) -> None:
        since = time.monotonic()
        async for event in updates:
            if blocks := list(self.view.feed(event)):
                self.last_turn += blocks
                self.screen.show(*blocks)
            self.screen.changed()
            self._seen.set()
            if event.kind == "state_update" and event.update().get("state") == "idle":
                self._turn_over.set()
            if time.monotonic() - since > FRAME:
                await asyncio.sleep(0)
                since = time.monotonic()

    async def _say_and_hear(self, session: ClientSession, watching: asyncio.Task[None]) -> None:
        """Take what the user says until the user leaves, the session is another one, or the agent is gone."""
        if self._first is not None:
            text, self._first = self._first, None
            await self._act(session, text)
        while self.session is session:
            reading = asyncio.create_task(self.screen.read(), name="reading")
            try:
                await asyncio.wait((reading, watching), return_when=asyncio.FIRST_COMPLETED)
                if watching.done():
                    watching.result()
                    raise ConnectionLost(f"{self.connection.agent.name} has gone away")
            finally:
                await _ended(reading)
            text = reading.result()
            if text is None:
                return
            await self._act(session, text)

    async def _act(self, session: ClientSession, text: str) -> None:
        """Do what a line says: one of our commands, or something to say to the agent."""
        found = parse(text, session.commands)
        self._in_turn = found is None
        doing = self._take_turn(session, text) if found is None else act(self, *found)
        self._work = asyncio.create_task(doing, name="turn" if found is None else f"/{found[0].name}")
        try:
            await self._unless_left(self._work)
            if not self._work.cancelled():
                self._work.result()
        except ConnectionLost:
            raise
        except RemoteError as e:
            self.screen.show(Note(f"The agent refuses: {e.message}", tone="error"))
        except (HoldfastError, OSError) as e:
            self.screen.show(Note(str(e), tone="error"))
        finally:
            self._work, self._in_turn = None, False
            self._do("")

    async def _take_turn(self, session: ClientSession, text: str) -> None:
        self._worth_coming_back = True
        self._turn_over.clear()
        self.last_turn.clear()
        self.screen.show(self.view.prompted(text))
        self._do("working")
        try:
            with suppress(RemoteError):  # how it failed is shown, like everything else that happens in a turn
                await session.prompt(text)
            with suppress(TimeoutError):  # its end was heard of; now it is shown too
                await asyncio.wait_for(self._turn_over.wait(), PATIENCE)
        finally:
            await _ended(self._stopping)

    async def _unless_left(self, work: asyncio.Task[Any]) -> None:
        """Wait for something to be done; if the user leaves before it is, end it."""
        leaving = asyncio.create_task(self.screen.left.wait(), name="leaving")
        try:
            await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and self._in_turn and self.session is not None:
                with suppress(HoldfastError, TimeoutError):
                    await asyncio.wait_for(self.session.cancel(), PATIENCE)
        finally:
            await _ended(work)
            await _ended(leaving)

    async def _stop(self) -> None:
        if self.session is None:
            return
        try:
            await self.session.cancel()
        except UsageError:
            self.screen.show(Note("The agent was asked to stop and goes on.", tone="warning"))
        except HoldfastError:
            pass  # there is nothing left to stop

    # What the agent asks

    async def _permission(self, session: ClientSession, permission: Permission) -> str | None:
        if not self.screen.interactive:
            return None
        key = str(permission.call.get("toolCallId", ""))
        known = session.history.get("tool_call_update", key)
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while known is not None and not self.view.knows(key):  # what happened before is shown before
                    self._seen.clear()
                    await self._seen.wait()
        return await ask_permission(self.screen, permission, self.view.asked(permission.call, known))

    async def _question(self, _session: ClientSession | None, question: Elicitation) -> ElicitationAnswer:
        return await ask_question(self.screen, question)

    def _do(self, what: str) -> None:
        if what != self._doing:
            self._doing = what
            self._since = time.monotonic()
            self.screen.changed()


def _obituary(lost: ConnectionLost) -> Note:
    """Say how the agent ended, and what it wrote last."""
    if not isinstance(lost, ProcessExited):
        return Note("The connection to the agent is lost", str(lost), "error")
    status = "" if lost.returncode is None else f" with status {lost.returncode}"
    said = "\n".join(lost.stderr.splitlines()[-STDERR_LINES:])
    return Note(f"The agent exited{status}", said or "It wrote nothing to stderr.", "error")


async def _ended(task: asyncio.Task[Any] | None) -> None:
    """End a task if it has not ended. Its result is taken, whatever it is: nobody else will."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
