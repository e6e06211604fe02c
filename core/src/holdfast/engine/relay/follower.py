"""The follower's side of a link: a session that another process owns, as a client of this process sees it.

`FollowedSession` has the face that connections use of `LiveSession` (`OpenSession` in `holdfast.engine.ports`). Its
turns and attachments are in `followed`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.cluster import while_alive
from holdfast.engine.ports import LOST
from holdfast.engine.relay.followed import FollowedAttachment, FollowedTurn
from holdfast.engine.relay.messages import (
    Answered,
    Asked,
    Attach,
    Attached,
    Dropped,
    Ended,
    Events,
    OfPart,
    OfTurn,
    Open,
    Opened,
    Operation,
    Prompt,
    SetOption,
    Setup,
    ToClient,
    error_from,
)
from holdfast.errors import (
    ConnectionLost,
    InternalError,
    InvalidParams,
    MethodNotFound,
    NeighbourLost,
    RemoteError,
    RequestCancelled,
    RequestError,
    SessionMoved,
)
from holdfast.model import Elicitation, ElicitationAnswer, Permission, TurnEnd, event_from, latest, new_id

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from holdfast.engine.cluster import Link, Neighbours, SentRequest
    from holdfast.engine.ports import OpenAttachment, SessionClient
    from holdfast.model import Event, Position, Scope, Update

log: logging.Logger = logging.getLogger(__name__)

CONGESTED_BYTES = 1 << 20
"""While its client has more than this unread, nothing more is taken from the owner."""

_ANY_PERMISSION = Permission("", {})


class FollowedSession:
    """A session that another process owns, for one client of this one."""

    def __init__(
        self,
        session_id: str,
        scope: Scope,
        client: SessionClient,
        *,
        neighbours: Neighbours,
        on_lost: Callable[[FollowedSession, str], None],
        start: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]],
        on_left: Callable[[FollowedSession], None] | None = None,
        is_guest: bool = False,
    ) -> None:
        """Prepare to follow. `on_lost` is called, and told whose, when the owner has left or cannot be reached.

        `on_left` is called when its client watches no more.
        """
        self.id = session_id
        self.scope = scope
        self.client = client
        self.cwd: str = ""
        self.title: str | None = None
        self.latest: dict[str, Update] = {}
        self._state: Update = {"sessionUpdate": "state_update", "state": "idle"}
        self.owner: str = ""
        """The name of the owner's client."""
        self.attachments: tuple[FollowedAttachment, ...] = ()
        self.turns: dict[str, FollowedTurn] = {}
        """The turns that its client has prompted and that have not ended, by the ids of their messages."""
        self.address: str = ""
        """Where the one listens to whom the last link was opened."""
        self._client_id = new_id("client")
        self._is_guest = is_guest
        self._neighbours = neighbours
        self._on_lost = on_lost
        self._on_left = on_left
        self._start = start
        self._link: Link | None = None
        self._options: Update = {}
        self._commands: Update = {}
        self._notices: list[Update] = []
        self._unsealed: list[bytes] = []
        self._is_over = False
        self._log = 0, 0  # epoch and number of the log that the client was shown last
        self._cancelled_in: tuple[int, int] | None = None  # that in which its client cancelled what runs

    # Opening

    async def open(self, address: str, epoch: int | None = None) -> bool:
        """Open the session at its owner, whose claim has an `epoch`; return False where it was given up instead.

        Raise `NeighbourLost` where the owner cannot be reached, or is none.
        """
        is_new = self._link is None
        if is_new:
            self._link = await self._neighbours.reach(address, lambda link: _FollowerLink(self, link))
            self.address = address
        wanted = Open(self.id, self.scope.principal, self.scope.agent, self._setup(), epoch, is_guest=self._is_guest)
        try:
            opened = msgspec.json.decode(await self._ask_soon("open", wanted), type=Opened)
        except BaseException:
            if is_new:
                self.hang_up()
            raise
        if opened.yielded:
            self.hang_up()
            return False
        self._is_over = False
        self.owner = opened.owner or self.owner
        self.cwd, self.title, self.latest = opened.cwd, opened.title, dict(opened.latest)
        self._options, self._commands, self._state = opened.options, opened.commands, opened.state
        return True

    def _setup(self) -> Setup:
        client = self.client
        return Setup(
            self._client_id, client.info, tuple(client.roots), self._neighbours.pack_servers(client.mcp_servers),
            client.system_prompt, client.services, client.elicitation, client.can_answer(_ANY_PERMISSION),
            client.principal, client.session_id, client.meta,
        )  # fmt: skip

    async def ask(self, method: str, params: object) -> msgspec.Raw:
        """Ask the owner; raise what it raised, or `NeighbourLost`."""
        if self._link is None:
            raise NeighbourLost(f"{self.owner_name} cannot be reached")
        return await self._answer_to(self._link.send_request(method, params))

    async def _answer_to(self, sent: SentRequest) -> msgspec.Raw:
        try:
            return await sent.answer()
        except RemoteError as e:
            if e.code == RequestCancelled.code:  # so is answered what is at work when the owner hangs up
                raise NeighbourLost(f"{self.owner_name} has hung up") from None
            raise error_from((e.code, e.message, e.data), self.id) from None
        except NeighbourLost:
            raise
        except ConnectionLost as e:
            raise NeighbourLost(str(e)) from e

    async def _ask_soon(self, method: str, params: object) -> msgspec.Raw:
        """Ask what takes no turn to answer; `ask`. An owner that gives no sign of life meanwhile is lost."""
        link = self._link
        if link is None:
            return await self.ask(method, params)
        try:
            return await while_alive(link, self.ask(method, params))
        except NeighbourLost as e:
            if e.hangs:
                self.lost(self.owner_name, link)
            raise

    async def _ask_for_client(self, method: str, params: object) -> msgspec.Raw:
        """Ask something for the client, who is told to try again where the owner is lost: by then it is found again."""
        try:
            return await self._ask_soon(method, params)
        except NeighbourLost as e:
            raise SessionMoved(f"{self.owner_name} cannot be reached just now; try again") from e

    def is_linked_by(self, link: Link) -> bool:
        """Return whether that is the link to the owner, and was not hung up."""
        return self._link is link

    def tell(self, method: str, params: object = None) -> None:
        """Notify the owner."""
        if self._link is not None:
            self._link.notify(method, params)

    @property
    def owner_name(self) -> str:
        """What people call the owner."""
        return self.owner or "the process that has it"

    @property
    def activity(self) -> str:
        """What it does now."""
        return self._state["state"]

    def current_state(self) -> Update:
        """Return what it does now, as clients are told it."""
        return self._state

    @property
    def is_live(self) -> bool:
        """Whether the owner can be reached."""
        return self._link is not None and not self._is_over

    @property
    def is_shared(self) -> bool:
        """Whether others have it too: they do."""
        return True

    @property
    def is_lost(self) -> bool:
        """Whether it is not ours any more: it never was."""
        return False

    # Watching

    async def attach(self, client: SessionClient, since: Position | None = None) -> FollowedAttachment:
        """Let the client watch; see `LiveSession.attach`."""
        self._unsealed = []
        attached = msgspec.json.decode(await self._ask_for_client("attach", Attach(since)), type=Attached)
        unsealed, self._unsealed = self._unsealed, []
        attachment = FollowedAttachment(self, client, attached.position if since is None else since, attached.lines)
        attachment.unsealed = unsealed
        self._log = attached.position.epoch, attached.position.turn
        if self._log == self._cancelled_in:
            self.tell("cancel")  # again: the link may have been cut before the owner was told, and the same turn runs
        self._notices, self._state = attached.notices, attached.state
        self.attachments = (*self.attachments, attachment)
        return attachment

    def detach(self, attachment: OpenAttachment) -> None:
        """Let a client watch no more; without any, the link is closed."""
        if attachment not in self.attachments:
            return
        self.attachments = tuple(other for other in self.attachments if other is not attachment)
        if not self.attachments:
            self.hang_up()
            if self._on_left is not None:
                self._on_left(self)

    def hang_up(self) -> None:
        """Close the link; nothing more is expected of it."""
        self._is_over = True
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def notices(self, client: SessionClient) -> list[Update]:  # noqa: ARG002
        """Return what the agent has to tell a client that has just attached."""
        return self._notices

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start something that is finished before the process ends in order."""
        self._start(work)

    # Options, commands, title

    def options_update(self) -> Update:
        """Return all options and their values."""
        return self._options

    def commands_update(self) -> Update:
        """Return the slash commands."""
        return self._commands

    async def set_option(self, option_id: str, value: object) -> None:
        """Set an option for the user (D2)."""
        self._options = msgspec.json.decode(await self._ask_for_client("option", SetOption(option_id, value)))

    async def do(self, operation: Operation) -> None:
        """Have something done with the session."""
        await self._ask_soon("do", operation)

    # Turns

    def prompt(
        self,
        content: Sequence[Update],
        client: SessionClient | None = None,
        meta: Update | None = None,
        *,
        acknowledged: bool = True,  # noqa: ARG002  (the owner tells us in any case)
    ) -> FollowedTurn:
        """Put a prompt in line at the owner."""
        if not content:
            raise InvalidParams("A prompt must not be empty")
        if not self.is_live or self._link is None:
            raise SessionMoved(LOST)
        assert client is self.client
        turn = FollowedTurn(self)
        self.turns[turn.message_id] = turn
        # Sent now and not by the task: a cancellation that comes next must not overtake it.
        sent = self._link.send_request("prompt", Prompt(list(content), turn.message_id, meta))
        self._start(self._follow_turn(turn, lambda: self._answer_to(sent)))
        self._start(self._check_life())
        return turn

    async def steer(self, content: Sequence[Update], meta: Update | None, message_id: str) -> Update:
        """Give words of the user to the turn that runs at the owner."""
        steered = await self._ask_for_client("steer", Prompt(list(content), message_id, meta))
        return msgspec.json.decode(steered, type=dict[str, Any])

    async def _check_life(self) -> None:
        """Find the session again where its owner gives no sign of life: one that was stopped cuts no link."""
        link = self._link
        if link is not None and not await link.is_alive():
            self.lost(self.owner_name, link)

    async def _follow_turn(self, turn: FollowedTurn, ask: Callable[[], Awaitable[msgspec.Raw]]) -> bool:
        """Ask the owner for a turn until it ends; return whether there was an answer, be it that nothing is known."""
        try:
            end = msgspec.json.decode(await ask(), type=Ended | None)
        except NeighbourLost:
            return False  # whoever finds the session again sees to it
        except RequestError as e:
            self._end(turn, TurnEnd("error", e.message), e)
            return True
        if end is not None:
            refusal = None if end.refusal is None else error_from(end.refusal, self.id)
            self._end(
                turn, TurnEnd(end.reason, end.error, end.more), refusal if isinstance(refusal, RequestError) else None
            )
        return True

    def ask_for_turns(self, reason: str) -> None:
        """Find out what became of the turns whose link was cut; one that the owner does not know was interrupted."""
        link = self._link
        if link is not None:  # else it is being found again, and asked for then
            for turn in list(self.turns.values()):
                self._start(self._ask_for_turn(turn, link, reason))

    async def _ask_for_turn(self, turn: FollowedTurn, link: Link, reason: str) -> None:
        if turn.cancelled:
            self.cancel_turn(turn)  # whether the owner was told before the link was cut is not known
        answered = await self._follow_turn(turn, lambda: self.ask("end_of", OfTurn(turn.message_id)))
        if not answered or self._link is not link or turn.message_id not in self.turns:
            return
        if turn.cancelled:  # and its owner does not know it: it has never begun
            self._end(turn, TurnEnd("cancelled"), RequestCancelled("The prompt was cancelled before its turn came"))
        else:
            self.interrupt(turn, reason)

    def interrupt_turns(self, reason: str) -> None:
        """End the turns whose owner is gone. Nothing is run again by itself (P3)."""
        self._state = {"sessionUpdate": "state_update", "state": "idle"}
        for turn in list(self.turns.values()):
            self.interrupt(turn, reason)

    def interrupt(self, turn: FollowedTurn, reason: str) -> None:
        """End a turn that will not be heard of any more."""
        self._end(turn, TurnEnd("interrupted", reason), InternalError(reason))

    def _end(self, turn: FollowedTurn, end: TurnEnd, refusal: RequestError | None) -> None:
        self.turns.pop(turn.message_id, None)
        turn.has_ended(end, refusal)

    def cancel(self, client: SessionClient | None = None) -> None:  # noqa: ARG002  (the owner knows whose link it is)
        """Stop the running turn, and drop the prompts of the client that wait."""
        for turn in self.turns.values():
            turn.cancelled = True
        self._cancelled_in = self._log
        self.tell("cancel")

    def cancel_turn(self, turn: FollowedTurn) -> bool:
        """Stop one turn; whether it had begun is known when it has ended."""
        turn.cancelled = True
        self.tell("cancel", OfTurn(turn.message_id))
        return False

    async def cancel_part(self, part: str) -> bool:
        """Cancel one tool call or terminal; return whether there was one."""
        return msgspec.json.decode(await self._ask_for_client("part", OfPart(part)), type=bool)

    # What comes from the owner

    def take(self, message: Events) -> None:
        """Show the client what happened, and note what it says about the session itself."""
        events = message.unpack()
        if message.before is not None:
            self._log = message.before.epoch, message.before.turn
        for event in events:
            if event.plain_text is None and event.kind in _NOTED:
                self._note(event.update())
            elif event.kind == "user_message" and (turn := self.turns.get(event.key)) is not None:
                turn.is_accepted()  # heard before, unless the link was cut
        for attachment in self.attachments[-1:]:
            attachment.deliver(events, message.before)

    def _note(self, update: Update) -> None:
        kind = update["sessionUpdate"]
        if kind == "state_update":
            self._state = {name: value for name, value in update.items() if name not in ("stopReason", "error")}
        elif kind == "config_option_update":
            self._options = update
        elif kind == "available_commands_update":
            self._commands = update
        elif kind == "session_info_update" and "title" in update:
            self.title = update["title"]
        if kind not in ("state_update", "config_option_update", "session_info_update"):
            self.latest[kind] = latest(self.latest.get(kind), update)

    def take_unsealed(self, lines: list[bytes]) -> None:
        """Take a part of what the running turn has said, before the answer to `attach`."""
        self._unsealed += lines

    def accepted(self, message_id: str) -> None:
        """Note that a prompt is part of the conversation."""
        if (turn := self.turns.get(message_id)) is not None:
            turn.is_accepted()

    def dropped(self, message: Dropped) -> None:
        """Tell the client that it watches no more; one that moved is found again."""
        if message.moved:
            self.lost(self.owner_name)
            return
        for attachment in self.attachments:
            attachment.drop(message.reason)
        self.hang_up()

    def lost(self, who: str, link: Link | None = None) -> None:
        """Find the session again: its owner is gone, or the link to it was cut."""
        if not self._is_over and (link is None or link is self._link):
            self.hang_up()
            self._on_lost(self, who)


_NOTED = frozenset(
    {"state_update", "config_option_update", "available_commands_update", "session_info_update", "usage_update"}
)


class _FollowerLink:
    """One link, from the side of the follower (`LinkUser`)."""

    def __init__(self, session: FollowedSession, link: Link) -> None:
        self._session = session
        self._link = link

    async def notified(self, method: str, params: msgspec.Raw) -> None:
        """Take a notification of the owner. What happened is told again by the next link, where this is hung up."""
        session = self._session
        if not session.is_linked_by(self._link):
            return
        match method:
            case "events":
                session.take(_read_events(params))
                if session.client.backlog > CONGESTED_BYTES:
                    await session.client.drain()
            case "unsealed":
                session.take_unsealed(msgspec.json.decode(params, type=list[bytes]))
            case "accepted":
                session.accepted(msgspec.json.decode(params, type=OfTurn).message_id)
            case "dropped":
                session.dropped(msgspec.json.decode(params, type=Dropped))
            case "left":
                session.owner = msgspec.json.decode(params, type=str) or session.owner
                session.lost(session.owner_name)
            case "tell":
                told = msgspec.json.decode(params, type=ToClient)
                session.client.notify(told.method, told.params)
            case "terminal":
                session.client.embed_terminal(*msgspec.json.decode(params, type=tuple[str, str]))
            case _:
                pass

    async def requested(self, method: str, params: msgspec.Raw) -> object:
        """Answer a request of the owner, which is one to the client."""
        client = self._session.client
        if not self._session.is_linked_by(self._link):
            raise RequestCancelled("The link is hung up")  # a question that is still open is asked by the next one
        if method == "ask":
            asked = msgspec.json.decode(params, type=Asked)
            question = asked.permission or asked.elicitation or Elicitation("form", {})
            answer = await client.ask(question)
            if isinstance(answer, ElicitationAnswer):
                return Answered(elicitation=answer)
            return Answered(option=answer)
        if method == "client":
            wanted = msgspec.json.decode(params, type=ToClient)
            try:
                return await client.request(wanted.method, wanted.params)
            except RemoteError as e:
                raise RelayedRefusal(e) from None
        raise MethodNotFound(f"{method[:100]} is not known here")

    def lost(self) -> None:
        """Note that the link is gone."""
        self._session.lost(self._session.owner_name, self._link)


class RelayedRefusal(RequestError):
    """An error of the client's, passed on to the agent that asked."""

    def __init__(self, error: RemoteError) -> None:
        super().__init__(error.message, error.data)
        vars(self)["code"] = error.code  # of this error alone, in the place of the class's


_read_events = msgspec.json.Decoder(Events).decode


def notice(severity: str, title: str) -> Event:
    """Return what a client is told that is never stored."""
    return event_from({"sessionUpdate": "notice", "severity": severity, "title": title})
