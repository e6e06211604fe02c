"""One client of one session: an engine's `SessionClient` that speaks through the peer of a connection."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from holdfast.errors import ConnectionLost, RemoteError
from holdfast.format import event_in, stored
from holdfast.model import Permission, event_from, shortened_update
from holdfast.server.positions import InMeta

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from msgspec import Raw

    from holdfast.engine import OpenAttachment, OpenSession
    from holdfast.mcp import Server
    from holdfast.model import Answer, ClientInfo, Event, Position, Question, SystemPrompt, Update
    from holdfast.server.connection import ClientConnection
    from holdfast.server.positions import PositionTelling, SeenUpTo

log: logging.Logger = logging.getLogger(__name__)

REST_SECONDS = 0.5
"""What a surface holds back is said after so many seconds."""

ENVELOPE_BYTES = 4096
"""So much stands around an update on the wire, at most."""


class Setup(NamedTuple):
    """What a client names when it opens a session. None of it is stored (P10)."""

    cwd: str
    additional: tuple[str, ...]
    servers: tuple[Server | Update, ...]
    """Its MCP servers; objects as it named them where the agent hands them on to somebody else."""
    system_prompt: SystemPrompt | None
    meta: Update | None = None
    notices: tuple[Update, ...] = ()
    """What the client is told when it is attached, besides what the agent has to say."""


class Lowering(Protocol):
    """What a surface makes of events, for one client and one session."""

    def live(self, events: Sequence[Event]) -> bytes:
        """Return what happened as whole lines."""
        ...

    def begin_replay(self) -> None:
        """Prepare for a whole past that has messages without their beginnings."""
        ...

    def past(self, block: bytes) -> tuple[bytes, ...]:
        """Return a block of stored lines as whole lines, in pieces."""
        ...

    def shared(self, events: Sequence[Event]) -> bool:
        """Return whether `live` would say these events to every client of the session in the same bytes.

        Where it would, they count as said.
        """
        ...

    def quiet(self, message_id: str) -> None:
        """Do not repeat this message to the client that has just said it."""
        ...

    def embed_terminal(self, terminal_id: str, own_id: str) -> None:
        """Show the client's own terminal `own_id` where a tool call shows `terminal_id`."""
        ...

    @property
    def has_more(self) -> bool:
        """Whether something was held back, to be said by `rest` in a moment."""
        ...

    def rest(self) -> bytes:
        """Return what was held back as whole lines."""
        ...


class QuestionForms(Protocol):
    """What a surface makes of questions."""

    modes: frozenset[str]
    """How the client can show an elicitation: ``form``, ``url``."""

    def request(self, session_id: str, question: Question) -> tuple[str, Update] | None:
        """Return the request that asks a question; None where this client cannot be asked."""
        ...

    def answer(self, question: Question, result: Raw) -> Answer:
        """Parse an answer."""
        ...


class AttachedClient:
    """A client and what it brought when it opened a session: its roots and its MCP servers."""

    is_remote = False

    def __init__(
        self,
        connection: ClientConnection,
        session_id: str,
        setup: Setup,
        *,
        lowering: Lowering,
        questions: QuestionForms,
        services: frozenset[str] = frozenset(),
    ) -> None:
        self.lowering = lowering
        self.services = services
        self.setup = setup
        self._line_bytes = connection.peer.max_line - ENVELOPE_BYTES
        self._timer: asyncio.TimerHandle | None = None
        self.attachment: OpenAttachment | None = None
        self.session: OpenSession | None = None
        """The session it has open, also while it is being attached."""
        self._has_left = False
        self.muted: bool = False
        """Whether it is shown nothing for a moment: what happens meanwhile is shown again afterwards."""
        self.seen: SeenUpTo | None = None
        """What it has seen, where it is shown again what came after (H4)."""
        self.attaching: asyncio.Lock = asyncio.Lock()
        """Held while it is attached, so that it is attached once."""
        self._connection = connection
        self._peer = connection.peer
        self.session_id = session_id
        """What the client calls the session: our id of it, or the agent's own (G9)."""
        self._questions = questions

    @property
    def open_session(self) -> OpenSession | None:
        """The session it watches, while that is in memory."""
        attachment = self.attachment
        if attachment is None or not (session := attachment.session).is_live or attachment not in session.attachments:
            return None
        return session

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories it opened the session with."""
        return (self.setup.cwd, *self.setup.additional)

    @property
    def mcp_servers(self) -> tuple[Server | Update, ...]:
        """The MCP servers it gives to the session."""
        return self.setup.servers

    @property
    def system_prompt(self) -> SystemPrompt | None:
        """The instructions it gives to the agent's model, if any."""
        return self.setup.system_prompt

    @property
    def info(self) -> ClientInfo:
        """What the client said about itself."""
        return self._connection.info

    @property
    def principal(self) -> str:
        """On whose behalf it speaks."""
        return self._connection.principal

    @property
    def meta(self) -> Update | None:
        """The `_meta` of the request by which it opened the session."""
        return self.setup.meta

    @property
    def elicitation(self) -> frozenset[str]:
        """How it can show its user a question."""
        return self._questions.modes

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send it a request and return its result."""
        return await self._connection.request(method, params)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send it a notification."""
        self._connection.notify(method, params)

    # Showing

    @property
    def backlog(self) -> int:
        """How many bytes it has not read."""
        return self._peer.unsent

    async def drain(self) -> None:
        """Wait until it has read most of them."""
        await self._peer.drain()

    def show(self, events: Sequence[Event]) -> None:
        """Send what happened."""
        if self.muted:
            return
        telling, attachment = self._connection.positions, self.attachment
        before = None if attachment is None else attachment.showing
        alone = attachment is None or len(attachment.session.attachments) == 1
        if before is None or (telling is None and alone):
            if block := self.lowering.live(events):
                self._peer.send_block(block)
        elif telling is None:
            if block := self._lines(events, before):
                self._peer.send_block(block)
        elif self.seen is None and isinstance(telling, InMeta):
            if block := self._lines(events, before, telling):
                self._peer.send_block(block)
        elif self.seen is None and self._are_pieces(events):
            telling.show_run(self.session_id, before, self.lowering.live(events))
        else:
            for number, event in enumerate(events, 1):
                self._show_at(telling, before.after(number), self.lowering.live([event]))
        if self.lowering.has_more:
            self._show_rest_later()

    def _are_pieces(self, events: Sequence[Event]) -> bool:
        """Return whether events are pieces of text, each of which every version says in one line."""
        return all(event.plain_text is not None for event in events) and self.lowering.shared(events)

    def _lines(self, events: Sequence[Event], before: Position, telling: InMeta | None = None) -> bytes:
        """Return the lines of events, with their positions where they are told; made once for all who get the same."""

        def make() -> bytes:
            if telling is None:
                return self.lowering.live(events)
            numbered = enumerate(events, 1)
            return b"".join(telling.with_position(self.lowering.live([each]), before.after(n)) for n, each in numbered)

        if not self.lowering.shared(events):
            return make()
        return self._connection.host.shared_lines.get((self.session_id, telling is None), events, before, make)

    def _show_rest_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(REST_SECONDS, self._show_rest)

    def show_aside(self, update: Update) -> None:
        """Send an update that is for this client alone and has no position."""
        if block := self.lowering.live([event_from(update)]):
            self._peer.send_block(block)

    def _show_at(self, telling: PositionTelling, position: Position, block: bytes) -> None:
        """Send the lines of one event, but for those that the client has seen before its stream was cut."""
        known = 0
        if self.seen is not None:
            if position < self.seen.position:
                return
            if position == self.seen.position and self.seen.lines:
                known = self.seen.lines
                block = b"".join(block.splitlines(keepends=True)[known:])
            elif position > self.seen.position:
                self.seen = None
        if block:
            telling.show(self.session_id, position, block, known)

    def _show_rest(self) -> None:
        self._timer = None
        if self.attachment is not None:
            if block := self.lowering.rest():
                self._peer.send_block(block)
            if self.lowering.has_more:
                self._show_rest_later()

    async def replay(self, blocks: Sequence[bytes]) -> None:
        """Send what is stored, no faster than it reads."""
        for block in blocks:
            for fitting in (block,) if len(block) <= self._line_bytes else self._fitting(block):
                if pieces := self.lowering.past(fitting):
                    self._peer.send_block(*pieces)
                    await self._peer.drain()

    def _fitting(self, block: bytes) -> Iterator[bytes]:
        """Cut a block so that no line of it is too long for the wire (A4)."""
        for line in block.split(b"\n"):
            if len(line) <= self._line_bytes:
                yield line
            else:
                yield from map(stored, shortened_update(event_in(line).update(), self._line_bytes))

    def show_as_past(self, updates: Sequence[Update]) -> None:
        """Send updates as if they were stored: as a replay would."""
        self._peer.send_block(*self.lowering.past(as_past(updates)))

    def embed_terminal(self, terminal_id: str, own_id: str) -> None:
        """Let it show a terminal of its own where a tool call shows `terminal_id`."""
        self.lowering.embed_terminal(terminal_id, own_id)

    # Asking

    def can_answer(self, question: Question) -> bool:
        """Whether it can put this question to its user."""
        return self._questions.request(self.session_id, question) is not None

    async def ask(self, question: Question) -> Answer:
        """Put a question to its user."""
        request = self._questions.request(self.session_id, question)
        if request is None:
            return None
        try:
            answer = self._questions.answer(question, await self._peer.request(*request))
        except RemoteError as e:
            log.info("A question got no answer: %s", e)
            return None
        except ConnectionLost:
            # That is no answer: the question waits for another client (F5). Detaching this one cancels us.
            return await asyncio.get_running_loop().create_future()
        self._record_answer(question, answer)
        return answer

    def _record_answer(self, question: Question, answer: Answer) -> None:
        """Note what the user has answered: which kind of option, for which kind of tool."""
        if isinstance(question, Permission):
            chosen, call = question.chosen(answer), question.shown_call()
            self._connection.record(
                "permission",
                session=self.session_id,
                answer=None if chosen is None else chosen.kind,
                tool=call.get("kind"),
                call=call.get("toolCallId"),
            )
        else:
            self._connection.record("elicitation", session=self.session_id, answer=getattr(answer, "action", None))

    # Leaving

    def detach(self) -> None:
        """Stop watching, for good."""
        self._has_left = True
        if self.attachment is not None:
            self.attachment.session.detach(self.attachment)
            self.attachment = None
        self.session = None

    def moved(self, attachment: OpenAttachment) -> None:
        """Watch through another attachment from now on: the session has another owner. Who has left watches no more."""
        if self._has_left:
            attachment.session.detach(attachment)
        else:
            self.attachment, self.session = attachment, attachment.session

    def dropped(self, reason: str) -> None:
        """Tell its user that it does not watch any more."""
        self.attachment = self.session = None
        log.warning("Session %s is no longer shown: %s", self.session_id, reason)
        notice: Update = {"sessionUpdate": "notice", "severity": "warning", "title": reason}
        asyncio.get_running_loop().call_soon(self.show, [event_from(notice)])


def as_past(updates: Sequence[Update]) -> bytes:
    """Return updates as a block of stored lines."""
    return b"\n".join(map(stored, updates))
