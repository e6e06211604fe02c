"""A live session: one that is open in this process.

It runs its turns one after the other, and nothing else changes its state. Small, because a server may hold many that
do nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Literal

from holdfast.engine.asks import Asks
from holdfast.engine.attachment import Attachment, alike_runs
from holdfast.engine.background import Background
from holdfast.engine.journal import Journal, keep_latest
from holdfast.engine.ports import LOST, NOT_STEERED, SteeredSession, interrupted
from holdfast.engine.session_settings import SessionSettings
from holdfast.engine.turn import CONGESTED_BYTES, LiveTurn
from holdfast.errors import (
    InternalError,
    InvalidParams,
    InvalidRequest,
    RequestError,
    SessionMoved,
    SessionNotFound,
    TurnOver,
)
from holdfast.model import (
    UNBOUND,
    Event,
    Fold,
    Position,
    Scope,
    check_update,
    event_from,
    new_id,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

    from holdfast.engine.limits import EngineLimits
    from holdfast.engine.ports import AgentSession, SessionClient
    from holdfast.engine.registry import Registry
    from holdfast.model import SessionInfo, SessionState, TurnEnd, Update
    from holdfast.store import Claim

log: logging.Logger = logging.getLogger(__name__)

BROKEN_OFF = {"stopReason": "error", "error": {"code": InternalError.code, "message": "The turn was interrupted"}}

RUNNING = event_from({"sessionUpdate": "state_update", "state": "running"})


class LiveSession(SessionSettings):
    """A session that is open in this process."""

    __slots__ = (
        "_asks", "_becomes_idle", "_detaching", "_readers_changed", "_registry", "_setting", "_told_options",
        "additional", "agent", "agent_name", "attachments", "background", "created_at", "cwd", "id", "idle_since",
        "is_lost", "journal", "principal", "queue", "runner", "state", "title", "turn",
    )  # fmt: skip

    agent: AgentSession

    def __init__(
        self,
        registry: Registry,
        claim: Claim,
        info: SessionInfo,
        state: SessionState,
        lines: int,
        at: Position | None = None,
    ) -> None:
        """Take a session into memory; `at` is where the stream of its events goes on, if it ever had any."""
        self.id: str = info.id
        self.principal: str = info.principal
        self.agent_name: str = info.agent
        """The agent it belongs to; one that belongs to none yet is bound by the first prompt (F6)."""
        self.cwd: str = info.cwd
        self.additional: tuple[str, ...] = info.additional
        """The additional directories that a client named last, for lists. Each client works with its own."""
        self.title: str | None = info.title
        self.created_at: int = info.created_at
        self.state: SessionState = state
        at = at or Position(claim.epoch, 0, 0)
        keeps_events = registry.limits.keep_events is not None
        self.journal: Journal = Journal(registry.store, self, claim, lines, at, keeps_events=keeps_events)
        self.attachments: tuple[Attachment, ...] = ()
        self.turn: LiveTurn | None = None
        self.queue: deque[LiveTurn] | None = None
        self.runner: asyncio.Task[None] | None = None
        self.idle_since: float = registry.loop.time()
        self.background: Background | None = None
        """What goes on beside its turns; None while nothing ever did."""
        self.is_lost: bool = False
        """Whether another process has taken it over (P4)."""
        self._registry = registry
        self._asks: Asks | None = None
        self._setting: asyncio.Lock | None = None  # held while an option is set
        self._told_options: Update | None = None  # what all clients were told last; None since one came
        self._becomes_idle: asyncio.Future[None] | None = None  # while somebody waits for that
        self._detaching: tuple[asyncio.Task[None], ...] = ()
        self._readers_changed: asyncio.Event | None = None

    @property
    def limits(self) -> EngineLimits:
        """How much may be asked of it."""
        return self._registry.limits

    @property
    def is_live(self) -> bool:
        """Whether it is in memory, and ours."""
        return self._registry.live.get(self.id) is self

    @property
    def is_shared(self) -> bool:
        """Whether a client of another process watches it."""
        return any(attachment.client.is_remote for attachment in self.attachments)

    @property
    def scope(self) -> Scope:
        """Whose it is."""
        return Scope(self.principal, self.agent_name or None)

    @property
    def activity(self) -> Literal["idle", "running", "requires_action"]:
        """What it does now."""
        if self.turn is None or not self.turn.running:
            return "idle"
        return "requires_action" if self.turn.asking else "running"

    @property
    def latest(self) -> dict[str, Update]:
        """By kind, the latest update about the session itself that the agent sent."""
        return self.state.latest

    @property
    def idle_seconds(self) -> float:
        """How long ago it was used."""
        return self._registry.loop.time() - self.idle_since

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories it was opened with last, the working directory first."""
        return (self.cwd, *self.additional)

    @property
    def asks(self) -> Asks:
        """Its open questions."""
        if self._asks is None:
            self._asks = Asks(self, self.limits.ask)
        return self._asks

    def ask_newcomer(self, attachment: Attachment) -> None:
        """Put the open questions to a client that has now seen all that was before."""
        if self._asks is not None:
            self._asks.ask_newcomer(attachment)

    def give_up_asks(self) -> None:
        """Let open questions get no answer."""
        if self._asks is not None:
            self._asks.give_up()

    @property
    def memory(self) -> dict[str, Any]:
        """What its agent remembers; nothing that another agent may have left before the session was bound (F6)."""
        return self.state.memory if self.agent_name != UNBOUND else {}

    @property
    def in_use(self) -> bool:
        """Whether a client watches it, or something is going on in it."""
        return bool(self.attachments) or self.busy

    @property
    def busy(self) -> bool:
        """Whether something is going on in it."""
        return self.runner is not None or bool(self.background) or not self.journal.is_idle

    def touch(self) -> None:
        """Note that it is used now."""
        self.idle_since = self._registry.loop.time()

    # Showing

    def emit(self, event: Event) -> None:
        """Say something in the session, in a turn or between turns. It is kept before it is shown (P1)."""
        if self.turn is not None and self.turn.running:
            self.turn.emit(event)
            return
        if not self.is_live and not self.background:  # what goes on beside its turns may still tell its end
            raise TurnOver("This session has left memory; nothing more can be said in it")
        if event.rule.fold is Fold.STATE:
            before = self.title, dict(self.state.latest)
            self.note(event.update())
            if (self.title, self.state.latest) == before:
                return  # nothing new
        if event.rule.fold is Fold.TRANSIENT:
            self.announce(event.update())
        else:
            self.journal.append(event)

    def emit_update(self, update: Update) -> None:
        """Say something that is given as an object; raise `UsageError` where it makes no sense."""
        check_update(update)
        self.emit(event_from(update))

    def announce(self, update: Update) -> None:
        """Show what is stored already, or never is, in order with all that was said before."""
        self.journal.announce(event_from(update))

    def show(self, events: Sequence[Event]) -> None:
        """Show events to the clients that watch; each takes a position."""
        if events:
            for run in alike_runs(events) if len(self.attachments) > 1 else (events,):
                before = self.journal.count(len(run))
                for attachment in self.attachments:
                    attachment.deliver(run, before)

    def note(self, update: Update) -> None:
        """Remember what was said about the session itself: a client that comes now is told that too."""
        if update["sessionUpdate"] == "session_info_update" and "title" in update:
            self.title = update["title"]
        keep_latest(self.state, update)

    async def attach(self, client: SessionClient, since: Position | None = None) -> Attachment:
        """Let a client watch. It is shown nothing until `Attachment.follow`, and nothing is lost until then.

        With `since`, the position of the last event it has seen, `follow` shows it all that is stored after that one;
        there is no `past`. Raise `PositionLost` where that is not kept (H4), `SessionMoved` where the session is gone.
        """
        await self.journal.shown()
        if not self.is_live:
            raise SessionMoved(LOST)
        attachment = Attachment(self, client)
        self.attachments = (*self.attachments, attachment)
        self._told_options = None
        self._clients_changed()
        if since is not None:
            try:
                attachment.catch_up(await self.journal.missed(since, attachment.position))
                if not self.is_live:
                    raise SessionMoved(LOST)  # noqa: TRY301
            except BaseException:
                self.detach(attachment)
                raise
        return attachment

    def detach(self, attachment: Attachment) -> None:
        """Let a client watch no more."""
        if attachment not in self.attachments:
            return
        self.attachments = tuple(other for other in self.attachments if other is not attachment)
        if self._asks is not None:
            self._asks.forget(attachment)
        self._clients_changed()
        if all(other.client is not attachment.client for other in self.attachments):
            self._detaching = (*self._detaching, self._registry.start(self._detached(attachment.client)))

    async def _detached(self, client: SessionClient) -> None:
        try:
            await self.agent.detached(client)
        except Exception:
            log.exception("The agent failed when a client left")
        finally:
            current = asyncio.current_task()
            self._detaching = tuple(task for task in self._detaching if task is not current)

    async def close_agent(self) -> None:
        """Let the agent clean up, after it was told of all clients that left."""
        if self._detaching:
            await asyncio.wait(self._detaching)
        try:
            await self.agent.close()
        except Exception:
            log.exception("Closing a session failed in the agent")

    def tell(self, client: SessionClient, update: Update) -> None:
        """Show something to one client alone that is never stored, as a notice about its own servers."""
        for attachment in self.attachments:
            if attachment.client is client:
                attachment.deliver([event_from(update)], None)

    async def leave(self, client: SessionClient) -> None:
        """End the turns a client has prompted, let it see their end, and let it watch no more (B13)."""
        turns = self.turns_of(client)
        for turn in turns:
            self.cancel_turn(turn)
        if turns:
            await asyncio.wait({turn.ended for turn in turns})
        for attachment in self.attachments:
            if attachment.client is client:
                self.detach(attachment)

    def drop_all(self, reason: str, *, besides: SessionClient | None = None) -> None:
        """Tell all clients that watch that it is over, and why."""
        for attachment in self.attachments:
            if besides is None or attachment.client is not besides:
                attachment.drop(reason)

    def _clients_changed(self) -> None:
        if self._asks is not None:
            self._asks.clients_changed()
        if self._readers_changed is not None:
            self._readers_changed.set()

    async def wait_for_readers(self, turn: LiveTurn) -> None:
        """Wait while every client is behind (P7)."""
        while (attached := self.attachments) and not turn.stopping:
            if any(attachment.client.backlog <= CONGESTED_BYTES for attachment in attached):
                return
            self._readers_changed = changed = asyncio.Event()
            loop = self._registry.loop
            waits = {loop.create_task(attachment.client.drain()): attachment for attachment in attached}
            others = loop.create_task(changed.wait())
            try:
                done, _ = await asyncio.wait({*waits, others}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in (*waits, others):
                    wait.cancel()
            for wait, attachment in waits.items():
                if wait in done and (wait.cancelled() or wait.exception() is not None):
                    attachment.drop("It does not read any more; load the session again to go on watching")

    # What it does

    def state_update(self, state: str, **more: object) -> Update:
        """Return a state as clients are told it, with what goes on beside the turns where that is reported (C13)."""
        update: Update = {"sessionUpdate": "state_update", "state": state, **more}
        return update if self.background is None else {**update, "background": self.background.items}

    def running_event(self) -> Event:
        """Return that a turn runs."""
        return RUNNING if self.background is None else event_from(self.state_update("running"))

    def current_state(self) -> Update:
        """Return what it is doing; where its last turn was broken off, a client that saw it run is told so (C3)."""
        if self.turn is None or not self.turn.running:
            return self.state_update("idle", **(BROKEN_OFF if self.state.interrupted else {}))
        return self.state_update("requires_action" if self.turn.asking else "running")

    def work_in_background(self, item: Update, stop: Callable[[], Awaitable[None]]) -> None:
        """List work that goes on beside the turns, as ``{"type": "terminal", "terminalId": …}``; see `Background`."""
        if self.background is None:
            self.background = Background(self)
        self.background.begin(item, stop)

    def background_changed(self) -> None:
        """Tell the clients what goes on beside the turns; a turn that begins or ends tells by itself."""
        if self.turn is None or self.turn.running:
            self.announce(self.current_state())

    # Reading

    def read(self, start: int = 0) -> AsyncIterator[list[bytes]]:
        """Read what is sealed of its history, from a line on: blocks of stored lines."""
        return self._registry.store.read(self.id, start, self.journal.lines)

    async def private_entries(self) -> list[bytes]:
        """Read the private entries, those of the running turn too, in order."""
        sealed = await self._registry.store.read_private(self.id)
        return [*sealed, *(self.journal.open.private if self.journal.open is not None else ())]

    # Turns

    def prompt(
        self,
        content: Sequence[Update],
        client: SessionClient | None = None,
        meta: Update | None = None,
        *,
        acknowledged: bool = True,
        message_id: str | None = None,
    ) -> LiveTurn:
        """Put a prompt in line; it is answered when those before it are (C6). Its message may have an id already.

        Where it is not `acknowledged`, nobody is told that it was accepted, and its turn need not wait for the disk.
        """
        if not content:
            raise InvalidParams("A prompt must not be empty")
        if not self.is_live:
            raise SessionMoved(LOST) if self.is_lost else SessionNotFound(self.id)
        if self._registry.draining:
            raise InvalidRequest("The server is about to end and takes no new prompts; send it again in a moment")
        queue = self.queue if self.queue is not None else deque[LiveTurn]()
        starting = self.turn is None  # then the first in line does not wait
        if len(queue) - starting >= (most := self._registry.limits.prompts):
            raise InvalidParams(f"{most} prompts are waiting in this session; wait until one is answered")
        if self.runner is None:
            self._registry.check_room()
        self.queue = queue
        turn = LiveTurn(self, content, client, meta, message_id or new_id("msg"), acknowledged=acknowledged)
        queue.append(turn)
        if self.runner is None:
            self._registry.turns += 1
            self._start_next()
        return turn

    async def steer(self, content: Sequence[Update], meta: Update | None, message_id: str) -> Update:
        """Give words of the user to the running turn; return what became of them. See `SteeredSession.steer`."""
        if not content:
            raise InvalidParams("A prompt must not be empty")
        if not self.is_live:
            raise SessionMoved(LOST) if self.is_lost else SessionNotFound(self.id)
        turn, agent = self.turn, self.agent
        if turn is None or not turn.running or turn.stopping or not isinstance(agent, SteeredSession):
            return NOT_STEERED
        return await self._registry.finish(agent.steer(turn, content, meta, message_id))

    def cancel(self, client: SessionClient | None = None) -> None:
        """Stop the running turn, and drop the prompts that wait: those of one client, or all (C5, C6)."""
        for turn in reversed(list(self.queue or ())):
            if client is None or turn.client is client:
                self.cancel_turn(turn)
        if self.turn is not None:
            self.turn.cancel()

    def cancel_turn(self, turn: LiveTurn) -> bool:
        """Stop one turn, or drop its prompt while it waits (A9); return whether it was dropped."""
        if self.queue and turn in self.queue:
            self.queue.remove(turn)
            turn.drop()
            return True
        if self.turn is turn:
            turn.cancel()
        return False

    async def cancel_part(self, part: str) -> bool:
        """Cancel one tool call or terminal of the running turn; return whether there was one."""
        if self.background is not None and self.background.cancel(part):
            return True
        cancel = None if self.turn is None or not self.turn.running else self.turn.cancels.get(part)
        if cancel is not None:
            cancel()
        return cancel is not None

    def interrupt(self, reason: str) -> None:
        """End the running turn because this process ends, and drop the prompts that wait."""
        while self.queue:
            self.queue.pop().refuse(InternalError(f"{reason}, before the prompt's turn came; send it again"))
        if self.turn is not None:
            self.turn.interrupt(interrupted(reason))

    def turns_of(self, client: SessionClient) -> list[LiveTurn]:
        """Return the turns a client has prompted that have not ended."""
        turns = [*(self.queue or ()), *([self.turn] if self.turn is not None else [])]
        return [turn for turn in turns if turn.client is client]

    def refuse_waiting(self, reason: RequestError) -> None:
        """Refuse the prompts that wait."""
        while self.queue:
            self.queue.popleft().refuse(reason)

    async def evict(self, reason: str) -> None:
        """Let go of it: it is not ours any more (P4)."""
        await self._registry.evict(self, reason)

    def settle_soon(self) -> None:
        """Seal what was said between turns."""
        self.start(self._settle())

    async def _settle(self) -> None:
        try:
            await self.journal.settle()
        except (SessionMoved, SessionNotFound) as e:
            await self.evict(e.message)
        except RequestError as e:
            log.warning("What was said between turns is not sealed yet: %s", e)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start something that is finished before the process ends in order."""
        self._registry.start(work)

    # Running them

    async def wait_until_idle(self) -> None:
        """Wait until no turn runs or waits."""
        if self.runner is not None:
            if self._becomes_idle is None:
                self._becomes_idle = self._registry.loop.create_future()
            await asyncio.shield(self._becomes_idle)

    def leave_behind(self, turn: LiveTurn, end: TurnEnd) -> None:
        """Go on without the agent of a turn, which does not let itself be cancelled."""
        if self.runner is not None:
            self._registry.leave_behind(self.runner)
        self._start(turn, turn.finish(self._registry, end))

    def _start_next(self) -> None:
        """Start the turn that is first in line, where that is none yet."""
        if self.queue:
            self._start(self.queue[0], self.queue[0].run(self._registry))
        else:
            self._registry.turns -= 1
            self.runner = self.queue = None
            self.touch()
            if self._becomes_idle is not None:
                self._becomes_idle.set_result(None)
                self._becomes_idle = None

    def _start(self, turn: LiveTurn, work: Coroutine[Any, Any, None]) -> None:
        running = self._run(turn, work)
        self.runner = self._registry.loop.create_task(running, name="turn", context=turn.context)

    async def _run(self, turn: LiveTurn, work: Coroutine[Any, Any, None]) -> None:
        """Do the work of a turn, unless it was dropped before it began; then go on with the next."""
        try:
            if self.queue and self.queue[0] is turn:
                self.turn = self.queue.popleft()
            if self.turn is turn:
                await work
        except Exception as e:  # noqa: BLE001  (a mistake of ours; whoever waits is told all the same)
            turn.refuse(e)
            # What was said is in the log, and the next to open the session finds it there.
            await self.evict("Something went wrong with this session; load it again to go on with it")
        finally:
            work.close()  # it may never have begun
            if self.runner is asyncio.current_task():  # otherwise it was left behind, and others go on
                self.turn = None
                self._start_next()
