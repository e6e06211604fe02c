"""`ProxySession`: one of our sessions whose agent is another process.

What the agent says is said in the session, in a turn or between turns, so it is stored before anyone sees it (P1, G3).
Options and commands are the agent's. Which session of the agent it is, and what that knows of the conversation, is in
its `AgentRecord`; `restore` brings the agent's session back when its process is gone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from holdfast.engine.ports import NOT_STEERED
from holdfast.errors import AgentRefused, InternalError, RequestCancelled, RequestError, TurnOver
from holdfast.model import event_from, new_id
from holdfast.model.events import is_object
from holdfast.model.kinds import LOST_CONTEXT
from holdfast_app.wrap.options import options_from
from holdfast_app.wrap.process import as_object
from holdfast_app.wrap.record import AgentRecord
from holdfast_app.wrap.remote import Brought
from holdfast_app.wrap.restore import bring_back
from holdfast_app.wrap.seeding import ANEW, NAMES_FILES, Seed, budget_for, is_command, note_of_command, seed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from holdfast.engine import LiveSession, LiveTurn, Origin, SessionClient
    from holdfast.model import Event, Option, OptionValue, StopReason, Update
    from holdfast_app.wrap.launch import HostedSession
    from holdfast_app.wrap.port import ProxyPort
    from holdfast_app.wrap.remote import RemoteSession
    from holdfast_app.wrap.restore import Lost

log: logging.Logger = logging.getLogger(__name__)

CLOSE_SECONDS = 1.0
"""An agent that is told that a session is closed has so many seconds to answer."""

OPENING_SECONDS = 5.0
"""A session that is closed while the agent brings it back is waited for so long."""

STUCK_SECONDS = 10.0
"""An agent that goes on with a cancelled prompt has so many seconds more when the next one comes; then it is ended."""

STEERING_SECONDS = 2.0
"""After the end of a turn, an agent has so many seconds to answer whether it has taken what it was steered with."""

UNNOTICED_SECONDS = 1.0
"""The death of an agent is noticed within so many seconds: one that was silent until then never got the prompt."""

CANCELS = {"tool_call_update": "tool_call/cancel", "terminal_update": "terminal/cancel"}
"""By kind of update, the request that cancels what it is about."""

NORMAL_ENDS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal"})
"""How a turn ends whose answer the agent knows to its end."""

OTHERS_APPLY: Update = {
    "sessionUpdate": "notice",
    "severity": "info",
    "title": "The agent works with the directories and MCP servers of the client that opened this session first",
    "description": "Yours apply when it is opened the next time",
}
"""What a client is told whose roots and servers the agent's session does not have (F3)."""


class ProxySession:
    """One session of a wrapped agent while it is in memory."""

    def __init__(self, port: ProxyPort, live: LiveSession) -> None:
        self.port = port
        self.live = live
        self.record: AgentRecord = AgentRecord.read(live.memory)
        self.options: tuple[Option, ...] = ()
        self.values: dict[str, OptionValue] = {}
        """By id, the values that the agent has."""
        self.remote: RemoteSession | None = None
        """The agent's session, while its process lives."""
        self._lost: Lost | None = None  # what to tell the agent with the next prompt
        self._said_lost: Lost | None = None  # what the user was told of that
        self._opening: asyncio.Task[None] | None = None
        self._opening_for: SessionClient | None = None
        self._last_client: SessionClient | None = None
        self._last_message = ""  # the last that the user has said in the running turn
        self._hosted: HostedSession | None = None  # the files and commands that the server has for the agent
        if self.record.options:
            self.options, self.values = options_from({"configOptions": self.record.options})

    @property
    def commands(self) -> Sequence[Update]:
        """The slash commands that the agent has told last."""
        return self.live.state.latest.get("available_commands_update", {}).get("availableCommands", ())

    # Life

    async def open(self, client: SessionClient | None, origin: Origin) -> None:
        """Open the agent's session of a new one; one that is restored or forked waits for a client that needs it."""
        if self.live.state.is_unopened_fork:  # also one that the command line or the page has made
            record = self.record
            parent = record.session or record.forked_from
            self.record = AgentRecord(forked_from=parent, knows=record.knows, since=record.since)
            self.options, self.values = (), {}
            self.live.state.is_unopened_fork = False
            self.keep_record()
        if origin == "new":
            await self._connect(client)
        elif client is not None and origin == "forked":
            self._start_connecting(client)

    async def attached(self, client: SessionClient) -> None:
        """Begin to bring the agent's session back; a client need not wait for that to see what was said.

        A session that nobody else has open is closed in the agent and opened again if the client names other roots or
        servers (F3).
        """
        if self._is_connected and not self._should_reopen(client):
            return
        opening = self._start_connecting(client)
        if self.port.launch.lost_context == "refuse":
            await asyncio.shield(opening)

    async def detached(self, client: SessionClient) -> None:
        """Forget the services of a client that left."""
        if self._last_client is client:
            self._last_client = None

    def notices(self, client: SessionClient) -> list[Update]:
        """Return a notice if a client names other directories or servers than the agent's session has (F3)."""
        if self._opening is not None and not self._opening.done():
            opener = self._opening_for
            applies = opener is client or self._brought_by(opener) == self._brought_by(client)
        else:
            applies = self.remote is None or not self.remote.alive or self.remote.brought == self._brought_by(client)
        return [] if applies else [OTHERS_APPLY]

    def _brought_by(self, client: SessionClient | None) -> Brought:
        """Return what a client brings into the agent's session; without one, the session's directory alone."""
        if client is None:
            return Brought((self.live.cwd,), ())
        return Brought(tuple(client.roots), tuple(client.mcp_servers))

    async def close(self) -> None:
        """Close the agent's session; one that cannot be closed stays live in the agent, and is not loaded again."""
        self.port.closed(self)
        self.end_commands()
        if self._opening is not None and not self._opening.done():
            # What the agent is just bringing back must not be live in it without our knowing.
            await asyncio.wait({self._opening}, timeout=OPENING_SECONDS)
            self._opening.cancel()
        remote, self.remote = self.remote, None
        if remote is not None:
            await self._close_in_agent(remote)

    async def _close_in_agent(self, remote: RemoteSession) -> bool:
        """Close the agent's session; return whether it is gone."""
        if not remote.alive:
            return True
        remote.belong_to(None)
        if remote.busy or not remote.process.can("close"):
            return False  # one that does not stop would not answer either
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await remote.process.request("session/close", {"sessionId": remote.id})
        except (RequestError, TimeoutError) as e:
            log.info("The agent did not close a session: %s", e)
            return not remote.alive
        remote.process.forget(remote)
        return True

    # The agent's session

    @property
    def _is_connected(self) -> bool:
        return self.remote is not None and self.remote.alive

    def _start_connecting(self, client: SessionClient | None) -> asyncio.Task[None]:
        if self._opening is None or self._opening.done():
            self._opening_for = client
            self._opening = asyncio.get_running_loop().create_task(self._connect(client), name="bring a session back")
            self._opening.add_done_callback(_retrieve)
        return self._opening

    def _should_reopen(self, client: SessionClient) -> bool:
        """Return whether to close and reopen the agent's session, so that it has the roots and servers of a client."""
        remote = self.remote
        if remote is None or remote.brought == self._brought_by(client):
            return False
        can = remote.process.can
        is_alone = all(attachment.client is client for attachment in self.live.attachments)
        comes_back = can("close") and (can("load") or can("resume"))
        return is_alone and comes_back and not remote.busy and not self.live.busy

    async def _connect(self, client: SessionClient | None) -> None:
        """Open the agent's session for a client; one that is live is closed before, and stays if it cannot be."""
        remote = self.remote
        if remote is not None and remote.alive:
            self.remote = None
            if not await self._close_in_agent(remote):
                self._take_up(remote, client)
                return
        restored = await bring_back(self, client)
        self._lost = restored.lost
        self._take_up(restored.remote, client)

    def _take_up(self, remote: RemoteSession, client: SessionClient | None) -> None:
        self.remote = remote
        wanted = self._brought_by(client)
        if remote.brought is None:
            remote.brought = wanted
        elif client is not None and remote.brought != wanted:
            self.live.tell(client, OTHERS_APPLY)
        remote.belong_to(self)

    async def _connected(self, client: SessionClient | None) -> RemoteSession:
        """Return the agent's session, brought back if its process is gone, and free for a prompt."""
        remote = self.remote
        if remote is not None and remote.alive and remote.busy and not await remote.settled(STUCK_SECONDS):
            await self._end_stuck(remote)
        if not self._is_connected:
            await asyncio.shield(self._start_connecting(client))
        assert self.remote is not None
        return self.remote

    async def _end_stuck(self, remote: RemoteSession) -> None:
        """End an agent that does not stop what was cancelled; two prompts never run in it at once (G8)."""
        if any(other.busy for other in remote.process.sessions.values() if other is not remote):
            raise AgentRefused(
                InternalError.code,
                "The agent is still at work on the prompt that was cancelled; try again when it has stopped",
            )
        log.warning("The agent does not stop what was cancelled; it is started again")
        await remote.process.end()

    def keep_record(self) -> None:
        """Put what is known of the agent's session where it is stored with the session."""
        self.record.write(self.live.memory)

    # Turns

    async def admit(self, turn: LiveTurn) -> None:
        """Refuse a prompt where the agent has forgotten the conversation and is not to be told again (G6)."""
        if self.port.launch.lost_context != "refuse" or self._is_connected:
            return
        opening = self._start_connecting(turn.client)
        await asyncio.wait({opening, turn.over}, return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():
            raise RequestCancelled("The prompt was cancelled before the agent was back")
        opening.result()

    async def perform(self, turn: LiveTurn) -> StopReason | None:
        """Send the prompt to the agent and wait for the end of its turn."""
        self._last_client, self._last_message = turn.client, turn.message_id
        sent_at = asyncio.get_running_loop().time()
        try:
            end = await self._send(turn)
        except AgentRefused:
            if not self._died_before(sent_at):
                raise
            end = await self._send(turn)
        turn.answer = {name: end[name] for name in ("usage", "_meta") if end.get(name) is not None}
        reason = end.get("stopReason")
        if reason in NORMAL_ENDS and not turn.cancelled and self._lost is None:
            self.record.knows = self._last_message
            self.keep_record()
        return reason if isinstance(reason, str) else None  # pyright: ignore[reportReturnType]

    async def steer(self, turn: LiveTurn, content: Sequence[Update], meta: Update | None, message_id: str) -> Update:
        """Give words of the user to the agent while it works on the prompt of a turn; store them if it takes them."""
        remote = self.remote
        if remote is None or not remote.alive or not remote.busy:
            return NOT_STEERED
        message = event_from({"sessionUpdate": "user_message", "messageId": message_id, "content": list(content)})

        def taken() -> None:
            self.take(message)
            if self.live.turn is turn:
                self._last_message = message_id

        asking = asyncio.get_running_loop().create_task(remote.steer(content, meta, taken), name="steer")
        await asyncio.wait({asking, turn.over}, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            await asyncio.wait({asking}, timeout=STEERING_SECONDS)
        if not asking.done():
            asking.cancel()
            raise AgentRefused(
                InternalError.code, "The agent did not answer before its turn ended; send it as a prompt"
            )
        answer = await asking
        await self.live.journal.durable()
        return answer

    async def _send(self, turn: LiveTurn) -> Update:
        """Send the prompt to the agent, which is brought back first if it is gone; return how the turn ended."""
        remote = await self._connected(turn.client)
        blocks = [*turn.prompt, *await self._told_again(turn)]
        self.keep_record()
        return await remote.prompt(blocks, turn.meta)

    def _died_before(self, sent_at: float) -> bool:
        """Return whether the agent was dead already when it was prompted, and we did not know it yet (P3)."""
        remote = self.remote
        soon = asyncio.get_running_loop().time() < sent_at + UNNOTICED_SECONDS
        return remote is not None and not remote.alive and not remote.heard and soon

    async def _told_again(self, turn: LiveTurn) -> Sequence[Update]:
        """Return what goes behind the prompt: what the agent has forgotten; and tell the user so, once (G6)."""
        lost = self._lost
        if lost is None or self.remote is None:
            return ()
        agent = self.remote.process.dialect.agent
        if self.port.launch.lost_context == "new" and lost.reason == "lost":
            told = Seed((), ANEW)
        elif is_command(turn.prompt, self.commands):
            self._say_lost(turn, lost, note_of_command(lost))
            return ()
        else:
            resources = agent.can("resource") and agent.name not in NAMES_FILES
            told = seed(lost, takes_resources=resources, budget=self._budget(lost))
        self._lost = None
        self._say_lost(turn, lost, told.note)
        self.record.seeded = turn.message_id
        if lost.everything:
            self.record.since = turn.message_id
        self.keep_record()
        await self.live.save()  # before the agent knows of it: never twice (G5)
        return told.blocks

    def _say_lost(self, turn: LiveTurn, lost: Lost, note: str) -> None:
        """Tell the user what the agent has forgotten, unless that was told with an earlier prompt."""
        if self._said_lost is lost:
            return
        self._said_lost = lost
        message_id = new_id("msg")
        turn.emit_update({"sessionUpdate": LOST_CONTEXT, "messageId": message_id, "reason": lost.reason, "text": note})
        turn.emit_update({"sessionUpdate": "notice", "severity": "warning", "title": note})

    def _budget(self, lost: Lost) -> int:
        """Return how many characters the agent is told again; the context of another agent says nothing of its own."""
        usage: object = {} if lost.reason == "handed over" else self.live.state.latest.get("usage_update")
        return budget_for(usage.get("size") if is_object(usage) else None)

    # What the agent says

    def take(self, event: Event) -> None:
        """Say in the session what the agent has said."""
        if event.plain_text is None:
            if event.kind == "config_option_update":
                self.options_told(event.update())
                return
            if event.kind == "session_info_update":
                news = self._without_title(event)
                if news is None:
                    return
                event = news
            if event.kind in CANCELS and b'"capabilities"' in event.body:
                self._offer_cancel(event)
        try:
            self.live.emit(event)
        except TurnOver:
            log.info("The agent spoke in a session that has left memory; that is left out: %s", event.kind)

    def _offer_cancel(self, event: Event) -> None:
        """Let a client cancel one tool call or terminal by itself, where the agent says that this can be done."""
        turn, remote, method = self.live.turn, self.remote, CANCELS[event.kind]
        capabilities: object = event.update().get("capabilities")
        if turn is None or remote is None:
            return
        if not is_object(capabilities) or capabilities.get("cancel") is None:
            turn.cancels.pop(event.key, None)
            return
        params = {"sessionId": remote.id, event.rule.key: event.key}
        turn.cancels[event.key] = lambda: self.live.start(_quietly(remote.process.request(method, params)))

    @property
    def congested(self) -> bool:
        """Whether whoever says more should wait first."""
        opened = self.live.journal.open
        return opened is not None and opened.congested

    async def drain(self, *, readers: bool) -> None:
        """Wait until what was said is shown, with `readers` also while every client is behind (P7)."""
        turn = self.live.turn
        if readers and turn is not None and turn.running:
            await turn.drain()
        else:
            await self.live.journal.shown()

    def _without_title(self, event: Event) -> Event | None:
        """Return an update without a title that is no news, or in the place of one that stays; None if that was all.

        The user's own stays (B17), and any where the agent's session began with what it was told again: it knows of
        that, and makes its title of it (G6). A Holdfast behind this one makes the same title of a prompt as we do.
        """
        update, title = event.update(), self.live.title
        stays = self.live.state.title_by == "user" or (self.record.since is not None and bool(title))
        if "title" not in update or not (stays or (title and update["title"] == title)):
            return event
        rest = {name: value for name, value in update.items() if name != "title"}
        return event_from(rest) if rest.keys() - {"sessionUpdate", "updatedAt"} else None

    # Options

    def options_told(self, update: Update, *, by_default: bool = False) -> None:
        """Take the options that the agent has now, with their values.

        `by_default` says that these are what a session has that was just opened: they change nothing of our record.
        """
        if not isinstance(update.get("configOptions"), list):
            log.warning("The agent sent a config_option_update without options, which is skipped")
            return
        before, values_before = self.options, self.values
        self.options, self.values = options_from(update)
        self.record.options = update["configOptions"]
        self.keep_record()
        stored = {} if by_default else self.live.state.options
        for option_id, value in self.values.items():
            if stored.get(option_id, values_before.get(option_id, value)) != value:
                stored[option_id] = value
        if (before, values_before) != (self.options, self.values) and hasattr(self.live, "agent"):
            self.live.start(self._announce_options())

    async def _announce_options(self) -> None:
        try:
            await self.live.save()
        except RequestError as e:
            log.warning("The options that the agent has changed could not be stored: %s", e)
        self.live.options_changed()

    async def option_set(self, option: str, value: OptionValue) -> None:
        """Set an option in the agent; one that is not there now gets it when it is brought back (G4)."""
        if self._opening is not None and not self._opening.done():
            await asyncio.wait({self._opening})
        if self.remote is not None and self.remote.alive and self.values.get(option) != value:
            await self.set_in_agent(self.remote, option, value)

    async def set_in_agent(self, remote: RemoteSession, option: str, value: OptionValue) -> None:
        """Send an option to the agent, and take what it says the options are then."""
        method, params = remote.lifting.option_request(option, value)
        answer = await remote.process.request(method, {"sessionId": remote.id, **params})
        self.values[option] = value
        for event in remote.lifting.lift_option_answer(option, value, as_object(answer)):
            self.take(event)

    # Whose services the agent uses

    def served(self) -> HostedSession | None:
        """Return the files and commands that the server itself has for the agent, where it has (H11)."""
        principal, hosting = self.live.principal, self.port.launch.hosting
        if hosting is None or not hosting.serves(principal):
            return None
        if self._hosted is None:
            self._hosted = hosting.open(principal, self.live.id)
        turn = self.live.turn
        self._hosted.work_in(turn.roots if turn is not None and turn.running else self.live.roots)
        return self._hosted

    def end_commands(self) -> None:
        """End the commands that the server runs for the agent: the agent is gone, or the session."""
        hosted, self._hosted = self._hosted, None
        if hosted is not None:
            self.live.start(hosted.close())

    def client_at_work(self) -> SessionClient | None:
        """Return the client whose turn it is; between turns the one that prompted last, or any that watches (G7)."""
        turn = self.live.turn
        attached = [attachment.client for attachment in self.live.attachments]
        if turn is not None and turn.running:
            return turn.client if turn.client in attached else None
        if self._last_client in attached:
            return self._last_client
        return attached[0] if attached else None


async def _quietly(asking: Awaitable[object]) -> None:
    """Ask for something whose end is seen elsewhere."""
    try:
        await asking
    except RequestError as e:
        log.info("The agent did not cancel what it was asked to: %s", e)


def _retrieve(task: asyncio.Task[None]) -> None:
    """Look at why a session could not be brought back; whoever prompts is told, and it is tried again."""
    if not task.cancelled() and (failure := task.exception()) is not None:
        log.info("The agent's session could not be brought back: %s", failure)
