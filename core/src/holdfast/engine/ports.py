"""The engine's open sides: the agent that performs turns, and the clients of a session.

An author's code and a wrapped process are the same thing here: an `AgentPort`. It describes itself once to each
connection, and opens an `AgentSession` for each session, with options and commands of its own that may change while
the session lives. Nothing about an agent is read from anywhere else.

An `Update` is a dict as protocol version 2 has it, with its kind as ``sessionUpdate`` and the id of what it is about:
``{"sessionUpdate": "agent_message_chunk", "messageId": "m1", "content": {"type": "text", "text": "Hello"}}``. A tool
call begins with the first ``tool_call_update`` that has its ``toolCallId``.

Wherever a port refuses, it raises a `RequestError` (`InvalidParams` and others in `holdfast.errors`): code, message and
data reach the client as they are. Of any other exception the client sees a reference, and the log the traceback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence

    from holdfast.engine.session import LiveSession
    from holdfast.engine.turn import LiveTurn
    from holdfast.errors import RequestError
    from holdfast.model import (
        AgentDescription,
        Answer,
        ClientInfo,
        Event,
        Option,
        OptionValue,
        OwnSession,
        Position,
        Question,
        StopReason,
        SystemPrompt,
        TurnEnd,
        Update,
    )
    from holdfast.store import Store

Origin: TypeAlias = Literal["new", "restored", "forked"]
"""How a session came into memory: it was created, brought back from the store, or made as a fork of another."""


LOST = "This session was taken over by another process; load the session again to go on with it"
"""What whoever prompts a session is told that was lost between opening and prompting it: it is there, elsewhere."""


def interrupted(reason: str, *, ran_there: bool = True) -> str:
    """Return what is said of a turn that ended because its process did, and what its user can do."""
    because = " because its agent ran there" if ran_there else ""
    return f"{reason}; the turn was interrupted{because}. What was said is stored: send a prompt to go on"


class AgentPort(Protocol):
    """An agent: an author's code, or another process."""

    @property
    def begins_entries(self) -> bool:
        """Whether every id that a turn speaks of is new in that turn, so that what it says is the whole entry.

        Return False where a message or tool call can come again in a later turn. With True a replay would show what
        the later turn said of it in place of what the earlier one did.
        """
        ...

    async def describe(self, client: ConnectedClient) -> AgentDescription:
        """Describe the agent to a client that connects: what it can do depends on what `client.info` says.

        Called once for each connection, and again where a client begins anew with another protocol version.
        """
        ...

    async def log_in(self, method_id: str, client: ConnectedClient) -> None:
        """Log in by one of its methods; raise a `RequestError` that says why it failed.

        `method_id` is what the client sent: refuse one that is not among the `auth_methods` of the description.
        """
        ...

    async def log_out(self, client: ConnectedClient) -> None:
        """Log out. A client may ask for it without a login."""
        ...

    async def open(self, session: LiveSession, client: SessionClient | None, origin: Origin) -> AgentSession:
        """Prepare for a session that comes into memory; a `RequestError` refuses it.

        `client` is the one that opens it, if any does. Where the session is new or forked, `attached` is not called for
        that client; where it is restored, `attached` follows. Before this has returned there are no options and
        commands that could have changed.
        """
        ...

    async def own_sessions(self, client: ConnectedClient, cwd: str | None) -> Sequence[OwnSession]:
        """Return the sessions that the agent has itself, those in our store among them; nothing where it has none.

        They are listed with ours, and adopted when a client loads one (G9).
        """
        ...

    async def adopt(self, own_id: str, client: SessionClient) -> tuple[OwnSession, Sequence[Event]] | None:
        """Read a session that the agent has itself, with all that was said in it; None where it has no such."""
        ...

    async def deleted(self, principal: str, memory: dict[str, Any]) -> None:
        """Note that a session was removed; `memory` is what was remembered with it."""
        ...

    async def request(self, method: str, params: Any, client: ConnectedClient) -> object:
        """Answer a request that the protocol does not define, as ``_x/y``; raise `MethodNotFound` for others."""
        ...

    async def notify(self, method: str, params: Any, client: ConnectedClient) -> None:
        """Take a notification that the protocol does not define; do nothing with one that is unknown."""
        ...


class AgentSession(Protocol):
    """One session, as its agent keeps it while it is in memory."""

    @property
    def options(self) -> tuple[Option, ...]:
        """What can be set for the session now, in the order to show. Call `session.options_changed` on a change.

        The values are the session's: `session.value` returns one, `session.adjust_option` sets one for the agent.
        """
        ...

    @property
    def commands(self) -> Sequence[Update]:
        """The slash commands of the session now. Call `session.commands_changed` on a change.

        Each is ``{"type": "command", "name": "dig", "description": "Dig a hole"}``.
        """
        ...

    async def attached(self, client: SessionClient) -> None:
        """Note that a client has opened the session, perhaps again, with the roots and servers it has now.

        The client that made a session was given to `AgentPort.open` and is named here only if it opens it again.
        """
        ...

    async def detached(self, client: SessionClient) -> None:
        """Note that a client has left the session. This may be called twice for one client, and after `close`."""
        ...

    async def option_set(self, option: str, value: OptionValue) -> None:
        """React to an option the user has set, which is stored and announced by now.

        Raise `RequestError` to refuse: the option is set back, that is announced, and the client gets the error. After
        any other exception the option stays set.
        """
        ...

    async def admit(self, turn: LiveTurn) -> None:
        """Raise a `RequestError` to refuse a prompt before it is part of the conversation: then nothing has changed.

        Where this takes long, it must end soon after ``turn.cancelled`` is set: ``turn.over`` completes then.
        """
        ...

    async def perform(self, turn: LiveTurn) -> StopReason | None:
        """Answer a prompt. None is as good as ``end_turn``.

        It is cancelled at its next await when the turn is (C5). Tool calls that it leaves open are closed: as completed
        where the turn ends with ``end_turn``, as cancelled where it was cancelled, otherwise as failed.
        """
        ...

    def notices(self, client: SessionClient) -> list[Update]:
        """Return what a client that has just attached should be told, as servers that failed: updates ``notice``."""
        ...

    async def close(self) -> None:
        """Clean up: the session leaves memory. From now on nothing may be said in it."""
        ...


@runtime_checkable
class SteeredSession(Protocol):
    """An `AgentSession` whose running turn takes further words of the user."""

    async def steer(self, turn: LiveTurn, content: Sequence[Update], meta: Update | None, message_id: str) -> Update:
        """Give words of the user to the agent while it works on a turn; return what became of them.

        If the agent takes them, emit them as the user's message `message_id` at that place, and make that durable.
        Otherwise return `NOT_STEERED`, with nothing said.
        """
        ...


NOT_STEERED: dict[str, Any] = {"outcome": "promptRequired", "reason": "noRunningTurn"}
"""What becomes of words that no running turn has taken."""


class ConnectedClient(Protocol):
    """The client at the other end of a connection, as far as an agent may use it."""

    @property
    def info(self) -> ClientInfo:
        """What it said about itself."""
        ...

    @property
    def principal(self) -> str:
        """On whose behalf it speaks."""
        ...

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send it a request and return the result; raise `RemoteError` or `ConnectionLost`."""
        ...

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send it a notification."""
        ...


class SessionClient(ConnectedClient, Protocol):
    """One client of one session: what it brings, what it is shown and what it is asked.

    The engine calls it from the event loop; it must not block. Roots and servers are its own: they hold for the turns
    it prompts and for no others (F3).
    """

    @property
    def session_id(self) -> str:
        """What it calls the session: our id, or the agent's own (G9)."""
        ...

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories it opened the session with, the working directory first."""
        ...

    @property
    def mcp_servers(self) -> Sequence[Any]:
        """The MCP servers it gives to the session. Never stored (P10).

        Where the agent hands them on (`AgentDescription.forwards`) they are objects as the client named them.
        """
        ...

    @property
    def meta(self) -> dict[str, Any] | None:
        """The `_meta` of the request by which it opened the session. Never stored."""
        ...

    @property
    def system_prompt(self) -> SystemPrompt | None:
        """The instructions it gives to the agent's model, if any."""
        ...

    @property
    def services(self) -> frozenset[str]:
        """Of ``read``, ``write`` and ``terminal``, what it does for the agent (C11)."""
        ...

    @property
    def elicitation(self) -> frozenset[str]:
        """How it can show its user a question: ``form``, ``url`` (C9)."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether it is connected to another process."""
        ...

    @property
    def backlog(self) -> int:
        """How many bytes shown to it have not been taken by the other end."""
        ...

    async def drain(self) -> None:
        """Wait until the backlog is small."""
        ...

    def show(self, events: Sequence[Event]) -> None:
        """Show what happened, in order."""
        ...

    def embed_terminal(self, terminal_id: str, own_id: str) -> None:
        """Let it show a terminal of its own, `own_id`, where a tool call shows the terminal `terminal_id`."""
        ...

    def can_answer(self, question: Question) -> bool:
        """Whether it can put this question to its user."""
        ...

    async def ask(self, question: Question) -> Answer:
        """Put a question to its user and return the answer; None where there is none."""
        ...

    def dropped(self, reason: str) -> None:
        """Tell it that it does not watch the session any more, and why."""
        ...

    def moved(self, attachment: OpenAttachment) -> None:
        """Note that it watches through another attachment from now on: the session has another owner (F4)."""
        ...


# A session as a connection uses it, whichever process owns it


class OpenSession(Protocol):
    """What a connection uses of a session: of a `LiveSession`, or of one that another process owns."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def cwd(self) -> str:
        """The directory it works in."""
        ...

    @property
    def title(self) -> str | None:
        """Its title, if it has one."""
        ...

    @property
    def latest(self) -> dict[str, Update]:
        """By kind, the latest update about the session itself that the agent sent, as usage."""
        ...

    @property
    def activity(self) -> str:
        """What it does now: ``idle``, ``running`` or ``requires_action``."""
        ...

    def current_state(self) -> Update:
        """Return what it does now, as clients are told it."""
        ...

    @property
    def is_live(self) -> bool:
        """Whether it can be used: otherwise it has to be opened again."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether clients of other processes have it open, or its owner is another process."""
        ...

    @property
    def attachments(self) -> Sequence[OpenAttachment]:
        """Who watches."""
        ...

    async def attach(self, client: SessionClient, since: Position | None = None) -> OpenAttachment:
        """Let a client watch; see `LiveSession.attach`."""
        ...

    def detach(self, attachment: Any) -> None:
        """Let a client watch no more."""
        ...

    def notices(self, client: SessionClient) -> list[Update]:
        """Return what the agent has to tell a client that has just attached."""
        ...

    def options_update(self) -> Update:
        """Return all options and their values."""
        ...

    def commands_update(self) -> Update:
        """Return the slash commands."""
        ...

    async def set_option(self, option_id: str, value: object) -> None:
        """Set an option for the user (D2)."""
        ...

    def prompt(
        self,
        content: Sequence[Update],
        client: SessionClient | None = None,
        meta: Update | None = None,
        *,
        acknowledged: bool = True,
    ) -> OpenTurn:
        """Put a prompt in line (C6); `acknowledged` says whether its client is told of it before the turn ends."""
        ...

    async def steer(self, content: Sequence[Update], meta: Update | None, message_id: str) -> Update:
        """Give words of the user to the running turn; return what became of them. See `SteeredSession.steer`."""
        ...

    def cancel(self, client: SessionClient | None = None) -> None:
        """Stop the running turn, and drop the prompts of a client that wait; those of all if none is named (C5, C6)."""
        ...

    def cancel_turn(self, turn: Any) -> bool:
        """Stop one turn; return whether it is known that it had not begun (A9)."""
        ...

    async def cancel_part(self, part: str) -> bool:
        """Cancel one tool call or terminal of the running turn; return whether there was one."""
        ...

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start something that is finished before the process ends in order."""
        ...


class OpenTurn(Protocol):
    """What a connection uses of a turn it has prompted."""

    @property
    def session(self) -> OpenSession:
        """The session it belongs to."""
        ...

    @property
    def message_id(self) -> str:
        """The id of its prompt's message."""
        ...

    @property
    def accepted(self) -> asyncio.Future[str]:
        """Resolves to `message_id` once the prompt is durable."""
        ...

    @property
    def refusal(self) -> RequestError | None:
        """Why it never began, or could not be stored, where the error says more than its end does."""
        ...

    def when_ended(self, call: Callable[[TurnEnd], None]) -> None:
        """Call a function at the turn's end; at once where that is over."""
        ...

    def wait_for_end(self) -> asyncio.Future[TurnEnd]:
        """Return a future of the caller's own for the turn's end."""
        ...


class OpenAttachment(Protocol):
    """What a connection uses of an attachment."""

    @property
    def session(self) -> OpenSession:
        """What is watched."""
        ...

    @property
    def position(self) -> Position:
        """The position of the last event that was shown."""
        ...

    @property
    def showing(self) -> Position | None:
        """While events are shown: the position before the first; None where they have none."""
        ...

    def past(self, store: Store, start: int = 0) -> AsyncIterator[list[bytes]]:
        """Read what happened before, from a line on: blocks of stored lines."""
        ...

    def show_held(self) -> None:
        """Show what happened so far, and hold what happens from now on."""
        ...

    def follow(self) -> None:
        """Show what happened since, and from now on everything as it happens."""
        ...

    def deliver(self, events: Sequence[Event], before: Position | None) -> None:
        """Take events, now or later."""
        ...

    def holds(self, message_id: str) -> bool:
        """Return whether a prompt is among what waits to be shown."""
        ...
