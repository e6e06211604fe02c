"""A session that somebody has in a browser: one client of it for all of a principal's tabs.

`WatchedSession` follows the session wherever it is open, folds what happens, and lets feeds send what has changed. It
opens the session itself only when the user talks: reading must start no agent and take no session from anybody.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import AuthRequired, HoldfastError, MethodNotFound, SessionNotFound
from holdfast.model import Permission, checked_prompt, new_id
from holdfast.model.kinds import OPAQUE, RULES, Fold
from holdfast.server.repeats import REQUEST
from holdfast.view.entries import terminals_in
from holdfast_app.web.agents import PAGE_CLIENT
from holdfast_app.web.history_pages import (
    PAGE_LINES,
    PlacedEntry,
    Placing,
    ended_snapshot,
    entry_key,
    live_events,
    read_lines,
)
from holdfast_app.web.logins import wants_login
from holdfast_app.web.prompts_in_line import PromptsInLine
from holdfast_app.web.session_opening import SessionOpening

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

    from holdfast.cluster import NodeSecret
    from holdfast.engine import OpenAttachment, OpenSession
    from holdfast.model import Answer, ClientInfo, Entry, Event, History, Question, SessionInfo, Update
    from holdfast.store import SessionStore
    from holdfast_app.web.activity import Activity
    from holdfast_app.web.agents import PageAgent
    from holdfast_app.web.listening import Listener
    from holdfast_app.web.prompts_in_line import Waiting

log: logging.Logger = logging.getLogger(__name__)

QUIET_SECONDS = 1.0
"""When nothing has happened for so long, what was said between turns is looked up in the store: it has lines by now."""

LINGER_SECONDS = 20.0
"""So long after its last tab is gone a session is still followed: a page that is loaded anew finds all as it was."""

RETRY_SECONDS = 15.0
"""After so long a session that no program has open is looked up again, and one that does not answer is asked again."""

MOST_ENTRIES = 5_000
"""With more entries in memory than this, those that are stored for good are forgotten."""


class Asked(NamedTuple):
    """A question that waits for an answer."""

    question: Question
    answer: asyncio.Future[Answer]
    known: Entry | None
    """The tool call it is about, as far as it is known."""


class WatchedSession:
    """A session in the browser: an engine's `SessionClient`, and what its tabs show."""

    info: ClientInfo = PAGE_CLIENT
    meta: dict[str, Any] | None = None
    mcp_servers: tuple[Any, ...] = ()
    system_prompt = None
    services: frozenset[str] = frozenset()
    is_remote = False
    backlog = 0  # feeds send the newest state only, so that nothing piles up

    def __init__(
        self,
        info: SessionInfo,
        library: SessionStore,
        activity: Activity,
        agent: Callable[[], PageAgent | None],
        secret: NodeSecret | None,
    ) -> None:
        """Prepare to watch. `agent` returns the agent that may be talked to in it, None where it is only read."""
        self.session_id: str = info.id
        self.about: SessionInfo = info
        """What the store says of it."""
        self.principal: str = info.principal
        self.roots: tuple[str, ...] = (info.cwd, *info.additional)
        self.elicitation: frozenset[str] = frozenset({"form", "url"})
        self.lines: int = 0
        """So many lines of its history are stored for good."""
        self.state: str = "closed"
        """``idle``, ``running``, ``requires_action``; where no program has it open ``closed``, or ``interrupted``."""
        self.program: str = ""
        """What people call the program that has it open, where that is another one."""
        self.gone: str = ""
        """Why there is nothing more to see, once that is so."""
        self.questions: dict[str, Asked] = {}
        self.latest: dict[str, Update] = {}
        self.options: list[Update] = []
        self.commands: list[Update] = []
        self.title: str | None = info.title
        self.session: OpenSession | None = None
        self._agent = agent
        self._library = library
        self._activity = activity
        self._opening = SessionOpening(info, activity, agent, secret, start=self.start, on_lost=self._turn)
        self._placing = Placing(0)
        self._listeners: set[Listener] = set()
        self._attachment: OpenAttachment | None = None
        self._wants_to_talk = False
        self.ready: asyncio.Event = asyncio.Event()
        """Whether it is known how the session is."""
        self._turned = asyncio.Event()  # something has changed about where the session is
        self._stirred = asyncio.Event()  # that, or a turn has ended
        self._opened = asyncio.Event()  # it is open for talking
        self._refusal: HoldfastError | None = None
        self.line: PromptsInLine = PromptsInLine(self._touch)
        self._happened = 0  # counts what was shown
        self._tasks: set[asyncio.Task[Any]] = set()
        self._running: asyncio.Task[None] | None = None
        self._leaving: asyncio.TimerHandle | None = None

    # Tabs

    def listen(self, listener: Listener) -> None:
        """Let a tab follow from now on; it is told of all that is not stored for good."""
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        self._listeners.add(listener)
        listener.dirty.update(dict.fromkeys(self._live_keys()))
        listener.touch()
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._follow(), name="follow a session")

    def unlisten(self, listener: Listener, on_end: Callable[[], None]) -> None:
        """Let a tab go; a while after the last one the session is left, and `on_end` called."""
        self._listeners.discard(listener)
        if not self._listeners and self._leaving is None:
            self._leaving = asyncio.get_running_loop().call_later(LINGER_SECONDS, on_end)

    def entry(self, key: str) -> PlacedEntry | None:
        """Return an entry by its key."""
        entity, _, name = key.partition("/")
        found = self._placing.history.get(entity, name)
        return None if found is None else PlacedEntry(self._placing.line_of(found), found)

    @property
    def history(self) -> History:
        """What is known of the conversation: its end, and what is not stored for good."""
        return self._placing.history

    def calls_of_terminals(self) -> dict[str, str]:
        """Return the keys of the calls that show terminals, by the ids of those."""
        calls = (entry for entry in self.history if entry.entity == "tool_call_update")
        return {key: entry_key(it.entity, it.key) for it in calls for key in terminals_in(it.content())}

    @property
    def can_talk(self) -> bool:
        """Whether the user may do more than read."""
        return self._agent() is not None

    @property
    def agent(self) -> PageAgent | None:
        """The agent that may be talked to in it."""
        return self._agent()

    async def close(self) -> None:
        """Follow it no more. What runs in it goes on."""
        if self._leaving is not None:
            self._leaving.cancel()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
        self._detach()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._opening.close()

    # Talking

    async def open_to_talk(self) -> OpenSession:
        """Open the session with its agent, which may start it; return it. Raise what the engine refuses with."""
        self._wants_to_talk = True
        self._refusal = None
        if self.session is None or self._opening.is_guest or not self.session.is_live:
            self._opened.clear()
            self._turn()
        await self._opened.wait()
        if self._refusal is not None:
            raise self._refusal
        assert self.session is not None
        return self.session

    async def prompt(self, content: Sequence[Update], name: str | None) -> str:
        """Put a prompt in line and return the id of its message. A prompt of the same `name` is the same prompt."""
        session = await self.open_to_talk()
        agent = self._agent()
        assert agent is not None
        if await agent.needs_login(self.principal):
            raise AuthRequired("Log in first")
        description = await agent.describe(self.principal)
        checked_prompt(content, description.accepts)
        repeats = agent.host.repeats
        key = None if name is None else repeats.key(self.principal, session.id, {REQUEST: name})
        turn = None if key is None else repeats.get(key)
        if turn is None:
            turn = session.prompt(content, self, None)
            if key is not None:
                repeats.put(key, turn)
            self.start(self._see_to(self.line.add(turn, content)))
        return turn.message_id

    async def _see_to(self, waiting: Waiting) -> None:
        """Tell the tabs where a prompt was refused."""
        refusal = await self.line.wait_for(waiting)
        if refusal is not None:
            severity = "login" if wants_login(refusal) else "error"
            self.notify_listeners(severity, f"The agent did not take the prompt: {refusal.message}")

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start something that ends with the watching."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def notify_listeners(self, severity: str, text: str) -> None:
        """Show all tabs something for a moment."""
        for listener in self._listeners:
            listener.notify(severity, text)

    # Following

    async def _follow(self) -> None:
        """Follow the session from program to program, until nobody looks."""
        self._activity.watch()
        try:
            while not self.gone:
                self._turned.clear()
                try:
                    is_open = await self._attach()
                except SessionNotFound:
                    self.gone = "This session was deleted."
                    self._refuse(SessionNotFound(self.session_id))
                    break
                except (HoldfastError, OSError) as e:
                    log.info("Session %s cannot be followed: %s", self.session_id, e)
                    self._refuse(e if isinstance(e, HoldfastError) else HoldfastError(str(e)))
                    await self._show_stored()
                    is_open = False
                await (self._stay() if is_open else self._wait())
        finally:
            self.ready.set()
            self._touch()
            self._activity.unwatch()

    def look_again(self) -> None:
        """Look anew where the session is, and whether it still is."""
        self._turn()

    def _turn(self) -> None:
        self._turned.set()
        self._stirred.set()

    def _refuse(self, error: HoldfastError) -> None:
        self._wants_to_talk = False
        self._refusal = error
        self._opened.set()

    async def _attach(self) -> bool:
        """Attach to the session where it is open, or where it is to be opened; return whether it is."""
        self._detach()
        record = await self._library.get(self.session_id)
        session = await self._opening.open(self, to_talk=self._wants_to_talk)
        if session is None:
            await self._show_stored()
            return False
        self.program = self._opening.program
        await self._seed(record.lines, session)
        return True

    async def _seed(self, lines: int, session: OpenSession) -> None:
        """Begin with the end of what is stored and with what is not yet; then follow."""
        attachment = await session.attach(self)
        try:
            await self._place_stored(lines)
            async for blocks in attachment.past(self._library, lines):
                for block in blocks:
                    self._take(live_events(block.split(b"\n")))
        except BaseException:
            session.detach(attachment)
            raise
        self.session, self._attachment = session, attachment
        self.title, self.latest = session.title, dict(session.latest)
        self.options = session.options_update().get("configOptions", [])
        self.commands = session.commands_update().get("availableCommands", [])
        self.state = session.activity
        self._say_anew()
        attachment.follow()
        if not self._opening.is_guest:
            self._opened.set()

    async def _show_stored(self) -> None:
        """Show what is stored of a session that no program has open."""
        snapshot = await ended_snapshot(self._library, self.session_id)
        self.about = snapshot.record.info
        await self._place_stored(snapshot.record.lines)
        if snapshot.unsealed is not None:
            self._take(live_events(snapshot.unsealed.lines))
        is_broken = snapshot.unsealed is not None and snapshot.unsealed.running_in is None
        self.state, self.session, self.program = "interrupted" if is_broken else "closed", None, ""
        self.title, self.latest = snapshot.record.info.title, dict(snapshot.record.state.latest)
        self._say_anew()

    async def _place_stored(self, lines: int) -> None:
        first = max(0, lines - PAGE_LINES)
        placing = Placing(first)
        async for line in read_lines(self._library, self.session_id, first, lines):
            placing.apply_line(line)
        self._placing, self.lines = placing, lines
        placing.live = True

    def _say_anew(self) -> None:
        self.ready.set()
        for listener in self._listeners:
            listener.dirty.update(dict.fromkeys(self._live_keys()))
            listener.touch()

    async def _stay(self) -> None:
        """Wait until the session is somewhere else; look up now and then what is stored for good."""
        while not self._turned.is_set():
            before = self._happened
            self._stirred.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(QUIET_SECONDS):
                    await self._stirred.wait()
            has_ended = self._stirred.is_set() and not self._turned.is_set()
            is_quiet = has_ended or before == self._happened
            if is_quiet and self.state == "idle" and any(True for _ in self._live_keys()):
                await self._settle()

    async def _settle(self) -> None:
        """Take from the store what has lines by now; nothing where something happens meanwhile."""
        before = self._happened
        snapshot = await self._library.snapshot(self.session_id)
        if snapshot.unsealed is not None or before != self._happened or self.state != "idle":
            return
        lines = snapshot.record.lines
        placing = Placing(first := max(0, lines - PAGE_LINES))
        async for line in read_lines(self._library, self.session_id, first, lines):
            placing.apply_line(line)
        if before == self._happened:
            self._placing, self.lines = placing, lines
            placing.live = True
            self._touch()

    async def _wait(self) -> None:
        """Wait until a program opens the session, or the user wants to talk."""
        doing = self._activity.doing.get(self.session_id)
        while not self._turned.is_set() and self._activity.doing.get(self.session_id) == doing:
            waits = {self.start(self._activity.changed()), self.start(_wait_for(self._turned))}
            try:
                done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=RETRY_SECONDS)
            finally:
                for wait in waits:
                    wait.cancel()
            if not done:
                return  # whoever has it open may answer now, or it was deleted meanwhile

    def _detach(self) -> None:
        attachment, self._attachment, self.session = self._attachment, None, None
        if attachment is not None:
            attachment.session.detach(attachment)

    # What is shown (`SessionClient`)

    def show(self, events: Sequence[Event]) -> None:
        """Fold what happened, and tell the tabs that it did."""
        self._happened += 1
        self._take(events)
        if len(self._placing.history) > MOST_ENTRIES:
            self._turn()  # begin anew with the end of the history
        self._touch()

    def _take(self, events: Sequence[Event]) -> None:
        for event in events:
            fold = RULES.get(event.kind, OPAQUE).fold
            if fold is Fold.STATE or fold is Fold.TRANSIENT:
                self._note(event.update())
                continue
            key = self._placing.apply(event)
            for listener in self._listeners:
                if fold is Fold.REMOVE:
                    listener.removed[key] = None
                else:
                    listener.dirty[key] = None

    def _note(self, update: Update) -> None:
        """Take what is said of the session itself."""
        match update:
            case {"sessionUpdate": "state_update", "state": str(state)}:
                self.state = state
                if state == "idle":
                    self._stirred.set()  # all of the turn was shown, and is stored for good (P5)
            case {"sessionUpdate": "session_info_update"}:
                self.title = update.get("title", self.title)
            case {"sessionUpdate": "config_option_update", "configOptions": list()}:
                self.options = update["configOptions"]
            case {"sessionUpdate": "available_commands_update", "availableCommands": list()}:
                self.commands = update["availableCommands"]
            case {"sessionUpdate": "notice"}:
                said = (update.get("title"), update.get("description"))
                text = ". ".join(part for part in said if isinstance(part, str) and part)
                self.notify_listeners(str(update.get("severity", "info")), text)
            case _:
                self.latest[update["sessionUpdate"]] = update

    def _live_keys(self) -> Iterator[str]:
        """Yield the keys of entries that are not stored for good."""
        return self._placing.live_keys()

    def _touch(self) -> None:
        for listener in self._listeners:
            listener.touch()

    async def drain(self) -> None:
        """Wait for nobody: tabs that do not read miss what is in between."""

    def embed_terminal(self, terminal_id: str, own_id: str) -> None:
        """Do nothing: the page has no terminals of its own."""

    def dropped(self, reason: str) -> None:
        """Look where the session is now, and say why it was left."""
        self._attachment = None
        self._wants_to_talk = False
        self.notify_listeners("warning", reason)
        self._turn()

    def moved(self, attachment: OpenAttachment) -> None:
        """Watch through another attachment from now on, unless it was left or attached anew meanwhile."""
        before = self._attachment
        if before is None or before in before.session.attachments:
            attachment.session.detach(attachment)
        else:
            self._attachment, self.session = attachment, attachment.session

    # What is asked

    def can_answer(self, question: Question) -> bool:  # noqa: ARG002
        """Whether the user may answer here: not where the page only reads."""
        return self.can_talk

    async def ask(self, question: Question) -> Answer:
        """Put a question to whoever sits at a tab; the first answer counts."""
        name = new_id("ask")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.questions[name] = Asked(question, answer, self._call_of(question))
        self._touch()
        try:
            return await answer
        finally:
            del self.questions[name]
            self._touch()

    def _call_of(self, question: Question) -> Entry | None:
        if not isinstance(question, Permission):
            return None
        return self._placing.history.get("tool_call_update", str(question.call.get("toolCallId", "")))

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:  # noqa: ARG002
        """Refuse what agents ask of clients besides questions."""
        raise MethodNotFound(f"{method} is not offered by the page")

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Take no notice of what the page does not know."""


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()
