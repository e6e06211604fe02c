"""`Conversation`: the agent's process, the session, the turns, and what the user types in between.

It shows what happens on a `Screen` and knows no terminal. One task follows the session as long as it is open; a turn
runs until it ends, the user stops it, or the agent dies. An agent that died can be started again with the same session.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from holdfast.client import connect
from holdfast.client.connecting import START_SECONDS
from holdfast.errors import ConnectionLost, HoldfastError, MessageLost, RemoteError, UsageError
from holdfast.model import ElicitationAnswer
from holdfast.view.blocks import Note, Prompt
from holdfast.view.live import LiveView
from holdfast_app.chat.agent_death import again_question, death_note, has_said_why
from holdfast_app.chat.agent_output import AgentOutput
from holdfast_app.chat.background_jobs import ending_with_agent
from holdfast_app.chat.command_actions import run_command, switch_to
from holdfast_app.chat.commands import KEYS, PREFIX, complete_line, is_help_of_agent, parse_command
from holdfast_app.chat.composing import Composer
from holdfast_app.chat.file_watch import POLL_SECONDS, take_snapshot, wait_for_change
from holdfast_app.chat.inspect_wire import observe_wire
from holdfast_app.chat.login import error_text, log_in, login_note
from holdfast_app.chat.questions import allowed_reading, ask_elicitation, ask_permission, declined_alone, refused_alone
from holdfast_app.chat.revising import Revision, revised_note
from holdfast_app.chat.screen import Choice, KeyQuestion
from holdfast_app.chat.session_opening import AUTH_REQUIRED, can_restore, open_session
from holdfast_app.chat.settings import CLIENT_NAME
from holdfast_app.chat.shell_command import run_shell, shell_block
from holdfast_app.chat.status import status_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from holdfast.client import ClientSession, Connection, UpdateStream
    from holdfast.model import Elicitation, Permission
    from holdfast.view.blocks import Block
    from holdfast_app.chat.file_watch import Snapshot
    from holdfast_app.chat.screen import Candidate, Screen
    from holdfast_app.chat.settings import ChatSettings

LEAVE_SECONDS = 3.0
"""A user who leaves waits no longer than so many seconds for a turn to end."""
FRAME = 0.02
"""After so many seconds of updates without a pause, other tasks get their turn."""
SHOWN_ENTRIES = 1_000
"""So many entries of a session that is gone on with are shown, the last: of 100,000 nobody reads the first."""


class Conversation:
    """Conversations with one agent, until the user leaves. It is the screen's `ScreenDelegate`."""

    def __init__(self, settings: ChatSettings, prompt: str | None = None) -> None:
        self.settings = settings
        self._first_prompt = prompt
        self.view: LiveView = LiveView()
        self.screen: Screen
        self.connection: Connection
        self.session: ClientSession | None = None
        self.last_turn: list[Block] = []
        """What the last turn has shown."""
        self._activity = ""
        self._since = 0.0
        self._work: asyncio.Task[None] | None = None
        self._in_turn = False
        self._in_session = False
        self._stopping: asyncio.Task[None] | None = None
        self._turn_over = asyncio.Event()
        self._update_seen = asyncio.Event()
        self._worth_resuming = False
        self._worth_restarting = True  # unless nothing was said to the agent since it was started again
        self._updates: UpdateStream
        self._changed = False  # whether the agent's file was, and the agent is to be started again
        self._output = AgentOutput(self._show_output)
        self._watching: asyncio.Task[None] | None = None
        self._next_watching: asyncio.Task[None] | None = None  # of a session that was entered in a turn
        self.composer: Composer = Composer(self)
        self.revision: Revision = Revision(self)

    # What a screen asks

    def live(self) -> Iterable[Block]:
        """Return what may still change."""
        return self.view.live()

    def busy(self) -> str:
        """Return what is being done, and for how long."""
        if not self._activity and self._is_running():
            return "working for another client"
        seconds = int(time.monotonic() - self._since)
        return f"{self._activity} {seconds} s" if self._activity and seconds else self._activity

    def status(self) -> str:
        """Return one line about the session."""
        if self.revision.said is not None:
            return "You are editing what you said; Escape leaves it as it was"
        return status_line(self.session, self.settings.cwd)

    def complete(self, line: str) -> Iterable[Candidate]:
        """Return what a line could be completed to."""
        return (*self.composer.complete(line), *complete_line(line, self.session, self.useless_commands()))

    def useless_commands(self) -> tuple[str, ...]:
        """Return the commands of the chat that this agent has no use for."""
        return () if self.session is None or self.connection.can("logout") else ("logout",)

    def is_busy(self) -> bool:
        """Return whether there is anything that `interrupt` would stop."""
        return self._work is not None or self._is_running()

    def paste(self, text: str) -> str:
        """Return what is to be typed for a text that was pasted."""
        return self.composer.paste(text)

    async def paste_image(self) -> str:
        """Return what stands for the image in the clipboard."""
        return await self.composer.paste_image()

    def edited_again(self) -> None:
        """Let the user choose something that was said before."""
        self.screen.send("/chat:edit")

    def edit_given_up(self) -> None:
        """Leave what was taken up again as it was."""
        if self.revision.give_up():
            self.screen.edit("")

    def interrupt(self) -> bool:
        """Stop the turn, or whatever else is being done; return whether anything was."""
        if self._work is not None and not self._in_turn:
            self._work.cancel()
            return True
        if not self._is_running():
            return False
        self.screen.take_back()
        if self._stopping is None or self._stopping.done():
            if self._in_turn:
                self.show_activity("stopping")
            self._stopping = asyncio.create_task(self._stop(), name="stopping the turn")
        return True

    def _is_running(self) -> bool:
        return self.session is not None and not self.session.closed and self.session.running

    # From the first connection to the last

    async def run(self, screen: Screen) -> int:
        """Run until the user leaves; return the status to exit with."""
        self.screen = screen
        settings = self.settings
        while True:
            try:
                await self._run_once(settings)
            except ConnectionLost as e:
                self.show_activity("")
                if screen.left.is_set():
                    return 0
                screen.show(*self.view.finish())
                if not (settings.shows_output and has_said_why(e)):
                    screen.show(death_note(e, quoted=not settings.shows_output))
                if not await self._wanted_again(settings):
                    return 0 if settings.watched and screen.left.is_set() else 1
            else:
                if not self._changed:
                    return 0
            finally:
                self.show_activity("")
            if self.session is not None:
                settings = replace(settings, newest=False, resume=self.session.id)

    async def _run_once(self, settings: ChatSettings) -> None:
        """Start the agent and talk to it; the user can leave whatever the agent does, or does not."""
        self._changed = False
        before = take_snapshot(settings.watched) if settings.watched else {}
        talking = asyncio.create_task(self._connect(settings), name="talking")
        leaving = asyncio.create_task(self.screen.left.wait(), name="leaving")
        changing = asyncio.create_task(self._wait_for_change(settings.watched, before), name="watching files")
        try:
            await asyncio.wait((talking, leaving, changing), return_when=asyncio.FIRST_COMPLETED)
            if not changing.done():
                await asyncio.wait([talking], timeout=2 * LEAVE_SECONDS if self._in_session else 0)
            if talking.done():
                talking.result()
        finally:
            for task in (talking, leaving, changing):
                await _ended(task)

    async def _wait_for_change(self, file: Path | None, before: Snapshot) -> None:
        """Wait until the agent's file was changed and no turn runs, so that it can be started again.

        Without a file, wait for ever.
        """
        if file is None:
            await asyncio.get_running_loop().create_future()
            return
        await wait_for_change(file, before)
        while self._work is not None or self._is_running():  # noqa: ASYNC110  (the agent may be busy for others)
            await asyncio.sleep(POLL_SECONDS)
        self._changed = True
        self.screen.show(Note(f"{file.name} has changed."))

    async def _connect(self, settings: ChatSettings) -> None:
        self.show_activity(f"starting {' '.join(settings.named)}")
        async with connect(
            *settings.command,
            cwd=settings.process_cwd,
            protocol=settings.protocol,
            permissions=settings.permissions if settings.permissions in ("allow", "deny") else self._permission,
            terminal_logins=True,  # where there is no terminal we can say at least how to log in by one
            questions=self._elicitation,
            on_complete=self._address_done,
            name=CLIENT_NAME,
            # Who sits there sees that it takes long, and leaves when it is too long: npx may be downloading.
            timeout=None if self.screen.interactive else START_SECONDS,
            stderr=self._output.take if settings.shows_output else None,
            on_frame=observe_wire(settings, lambda line: self.screen.show(Note(line, tone="output"))),
        ) as self.connection:
            if (session := await self._open(settings)) is not None:
                await self._follow_sessions(session)
                if (ending := ending_with_agent(self.session or session, settings)) is not None:
                    self.screen.show(Note(ending, tone="warning"))

    def _show_output(self, block: Block) -> None:
        self.screen.show(block)

    def resume_command(self) -> str:
        """Return the command that goes on with the session later; empty where there is nothing to go on with."""
        if self.session is None or not self._worth_resuming or not can_restore(self.connection):
            return ""
        return self.settings.resume_command(self.session.id)

    async def _open(self, settings: ChatSettings) -> ClientSession | None:
        """Open the session, logging in first where the agent demands it; return None if the user leaves instead."""
        again = self.session is not None
        while True:
            opening = asyncio.create_task(open_session(self.connection, settings), name="opening")
            await self._unless_left(opening)
            if opening.cancelled():
                return None
            try:
                session = opening.result()
                break
            except RemoteError as e:
                if e.code != AUTH_REQUIRED or not self.connection.auth_methods:
                    raise
                self.show_activity("")  # what waits now is the question
                if not await log_in(self, f"The agent wants you to log in: {error_text(e)}"):
                    raise
                self.show_activity("opening the session")
        if again:
            self.screen.show(Note("The agent runs again, in the same session.", tone="good"))
        else:
            about = self.connection.agent
            name = f"{about.title or about.name} {about.version}".rstrip()
            self.screen.show(Note(f"{name}. /help lists keys and commands."))
        self.enter(session, restored=settings.restores, shown=again)
        return session

    def enter(self, session: ClientSession, *, restored: bool = False, shown: bool = False) -> None:
        """Make a session the one that is shown, with its history so far unless that was `shown` already."""
        self.show_activity("")
        self.session = session
        self._updates = session.updates()  # from here on: nothing is missed, and nothing shown twice
        self.view = LiveView()
        self.last_turn.clear()
        before = max(len(session.history) - SHOWN_ENTRIES, 0)
        entries = islice(session.history, before, None)
        past = list(self.view.replay(entries, running=session.running, background=session.background))
        if shown:
            return
        self._worth_resuming = bool(past)
        if restored and session.title:
            self.screen.show(Note(session.title, tone="end"))
        if restored and not past:  # P11
            self.screen.show(Note("Nothing was said in this session yet, or the agent does not tell.", tone="warning"))
        if before:  # P11
            text = f"{before:,} earlier entries are not shown here; `holdfast sessions show {session.id}` has them."
            self.screen.show(Note(text, tone="warning"))
        self.screen.show(*past)

    async def _wanted_again(self, settings: ChatSettings) -> bool:
        """Return whether the agent, which is gone, is to be started again: the user says so, or changes its file."""
        if settings.watched is not None:
            self.screen.show(Note(f"Waiting for a change of {settings.watched.name}."))
            waiting = asyncio.create_task(wait_for_change(settings.watched, take_snapshot(settings.watched)))
            await self._unless_left(waiting)
            return not waiting.cancelled()
        if self.session is None or not self.screen.interactive:
            return False
        question = again_question(in_vain=not self._worth_restarting)
        self._worth_restarting = False
        return await self.screen.ask_key(question) == "again"

    # Updates and prompts

    async def _follow_sessions(self, session: ClientSession) -> None:
        """Go through sessions, one at a time, until the user leaves."""
        self._in_session = True
        while True:
            watching = self._next_watching or self._start_watching()
            self._watching, self._next_watching = watching, None
            try:
                await self._read_prompts(session, watching)
            finally:
                await _ended(self._stopping)
                await _ended(watching)
                self._watching = None
            if self.session is None or self.session is session:
                return
            session = self.session

    def _start_watching(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._watch(self._updates), name="watching the session")

    async def _watch(self, updates: UpdateStream) -> None:
        since = time.monotonic()
        async for update in updates:
            if blocks := list(self.view.feed(update)):
                self.last_turn += blocks
                self.screen.show(*blocks)
            self.screen.changed()
            self._update_seen.set()
            if update.kind == "state_update" and update.update().get("state") == "idle":
                self._turn_over.set()
            if time.monotonic() - since > FRAME:
                await asyncio.sleep(0)
                since = time.monotonic()

    async def _read_prompts(self, session: ClientSession, watching: asyncio.Task[None]) -> None:
        """Read what the user types until the user leaves, the session is another one, or the agent is gone."""
        if self._first_prompt is not None:
            text, self._first_prompt = self._first_prompt, None
            await self._obey(session, text)
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
            await self._obey(session, text)

    async def _obey(self, session: ClientSession, text: str) -> None:
        """Do what a line says: run one of our commands or one of the user's, or prompt the agent."""
        found = parse_command(text, session.commands)
        if is_help_of_agent(text, session.commands):
            self.screen.show(Note("Keys", f"{KEYS}\n/{PREFIX}help lists the commands of the chat."))
        is_shell = text.startswith("!") and self.screen.interactive
        self._in_turn = found is None and not is_shell
        self._output.hold_failures()
        work = run_command(self, *found) if found else self._run_shell(text[1:]) if is_shell else self._say(text)
        self._work = asyncio.create_task(work, name=f"/{found[0].name}" if found else "turn")
        try:
            await self._unless_left(self._work)
            if not self._work.cancelled():
                self._work.result()
        except ConnectionLost:
            raise
        except RemoteError as e:
            self.screen.show(Note(f"The agent refuses: {error_text(e)}", tone="error"))
        except (HoldfastError, OSError) as e:
            self.screen.show(Note(str(e), tone="error"))
        finally:
            self._work, self._in_turn = None, False
            self._output.release_failures()
            self.show_activity("")

    async def _say(self, text: str) -> None:
        """Prompt the agent; where something is said otherwise, in a fork from before that."""
        session = self.session
        assert session is not None
        others: tuple[Any, ...] = ()
        if (said := self.revision.said) is not None:
            self.show_activity("going back")
            others = said.others
            await switch_to(self, await self.revision.begin(), shown=True)
            self.screen.show(revised_note(said.text))
            session = self.session or session
            self._next_watching = self._start_watching()  # what happens there is to be seen now
        await self._prompt(session, text, [*self.composer.compose(text, session), *others])

    async def _run_shell(self, command: str) -> None:
        """Run a command of the user's, show what it printed, and offer to tell the agent."""
        if not command.strip():
            raise UsageError("write the command behind the !, as in !git status")
        self.show_activity(f"running {command.strip()}")
        assert self.session is not None
        result = await run_shell(command.strip(), self.session.cwd, self.settings.process_cwd)
        self.show_activity("")
        self.screen.show(shell_block(result))
        choices = (Choice("y", "Send it with your next message", "yes", "good"), Choice("n", "No", "no"))
        if await self.screen.ask_key(KeyQuestion("Shall the agent know of this?", choices, "no")) == "yes":
            self.composer.add_output(result)
            self.screen.show(Note("It goes along with your next message.", tone="good"))

    async def _prompt(self, session: ClientSession, text: str, blocks: list[dict[str, Any]]) -> None:
        self._worth_resuming = self._worth_restarting = True
        self._turn_over.clear()
        self.last_turn.clear()
        sent = "".join(block["text"] for block in blocks if block.get("type") == "text")
        self.view.prompted(sent)
        self.screen.show(Prompt(text))
        self.show_activity("working")
        try:
            login_wanted = False
            try:
                await session.prompt(blocks)
            except (RemoteError, MessageLost) as e:  # both are shown, like everything else that happens in a turn
                login_wanted = isinstance(e, RemoteError) and e.code == AUTH_REQUIRED
            with suppress(TimeoutError):  # it has ended; now wait until its end is shown
                await asyncio.wait_for(self._turn_over.wait(), LEAVE_SECONDS)
            if login_wanted and self.connection.auth_methods:
                self.screen.show(login_note(self))
        finally:
            await _ended(self._stopping)

    async def _unless_left(self, work: asyncio.Task[Any]) -> None:
        """Wait until work is done; if the user leaves before, end it."""
        leaving = asyncio.create_task(self.screen.left.wait(), name="leaving")
        try:
            gone = [] if self._watching is None or self._in_turn else [self._watching]
            await asyncio.wait((work, leaving, *gone), return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and gone and gone[0].done() and self.session is not None and self.session.closed:
                gone[0].result()  # the agent is gone, and with it whatever was being chosen
                raise ConnectionLost(f"{self.connection.agent.name} has gone away")
            if not work.done() and self._in_turn and self.session is not None:
                with suppress(HoldfastError, TimeoutError):
                    await asyncio.wait_for(self.session.cancel(), LEAVE_SECONDS)
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
        if self.settings.permissions == "reads" and (allowed := allowed_reading(permission)) is not None:
            return allowed
        if not self.screen.interactive:
            self.screen.show(Note(refused_alone([permission.title], self.settings.permissions), tone="warning"))
            return None
        key = str(permission.call.get("toolCallId", ""))
        known = session.history.get("tool_call_update", key)
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                while known is not None and not self.view.knows(key):  # what happened before is shown before
                    self._update_seen.clear()
                    await self._update_seen.wait()
        return await ask_permission(self.screen, permission, self.view.asked(permission.shown_call(), known))

    async def _elicitation(self, _session: ClientSession | None, question: Elicitation) -> ElicitationAnswer:
        if not self.screen.interactive:
            self.screen.show(Note(declined_alone([question]), tone="warning"))
            return ElicitationAnswer("decline")
        return await ask_elicitation(self.screen, question)

    async def _address_done(self, question: Elicitation) -> None:
        self.screen.show(Note(f"Done: {question.params.get('message') or question.params.get('url')}", tone="good"))

    def show_activity(self, what: str) -> None:
        """Show what is being done; nothing where nothing is."""
        if what != self._activity:
            self._activity = what
            self._since = time.monotonic()
            self.screen.changed()


async def _ended(task: asyncio.Task[Any] | None) -> None:
    """End a task if it has not ended, and take its result, whatever it is: nobody else will."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
