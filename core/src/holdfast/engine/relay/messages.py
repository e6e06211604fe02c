"""What goes over a link between a follower and the owner of a session.

A link serves one client of one session, or somebody who only asks. The follower sends, as requests unless said:

========== ============================================= ==================================================
method     params                                        answer
========== ============================================= ==================================================
open       `Open`: the session, and what the client has  `Opened`; `yielded` where the session is given up
attach     `Attach`: since which position                `Attached`, after notifications ``unsealed``
follow     notification: show what comes from now on
detach     notification: show no more
prompt     `Prompt`; ``accepted`` is notified            `Ended`, when the turn has
end_of     `OfTurn`: a turn whose link was cut           `Ended`, or null where it is not known
steer      `Prompt`: words for the running turn          what became of them
cancel     notification: `OfTurn` stops that turn, null
           the running one and this client's prompts
option     `SetOption`                                   the update that tells all options
part       `OfPart`: a tool call or terminal to cancel   whether there was one
do         `Operation`: rename, archive, fork…           null
status     null                                          a list of `Status`
========== ============================================= ==================================================

and the owner:

========== ============================================= ==================================================
events     notification, `Events`
unsealed   notification: lines of the running turn
accepted   notification, `OfTurn`
dropped    notification, `Dropped`
left       notification: the name of the owner's client, which quits
ask        a question as `Asked`                         an answer as `Answered`
client     `ToClient`: what an agent asks of the client  its answer
tell       notification, `ToClient`
terminal   notification: two ids, see `embed_terminal`
========== ============================================= ==================================================

Errors are those of JSON-RPC, with the codes of `holdfast.errors`. A link that was cut is opened anew, with the position
of the last event that arrived and the same `Setup.id`: the owner then goes on with the same client.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw

from holdfast.errors import (
    AuthRequired,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    NeighbourLost,
    PositionLost,
    RequestCancelled,
    RequestError,
    SessionNotFound,
)
from holdfast.model import (
    ClientInfo,
    Elicitation,
    ElicitationAnswer,
    Event,
    Permission,
    Position,
    StopReason,
    SystemPrompt,
    Update,
)

NOT_HERE = -32077
"""The code of the error of a process that is not, or no longer, the owner of a session."""

NOT_KEPT = -32078
"""The code of the error of an owner that cannot go on at a position; the position is its data."""

Activity: TypeAlias = Literal["idle", "running", "requires_action"]

OperationName: TypeAlias = Literal["rename", "archive", "unarchive", "delete", "leave", "fork"]


class Setup(msgspec.Struct, frozen=True):
    """A client, as its agent may use it (F3). Over a link alone: none of it is stored (P10)."""

    id: str
    """A name that the follower has made up; the same after a link was cut."""
    info: ClientInfo
    roots: tuple[str, ...]
    servers: Any
    system_prompt: SystemPrompt | None
    services: frozenset[str]
    elicitation: frozenset[str]
    permission: bool
    """Whether it can be asked for permission."""
    principal: str
    session_id: str
    """What it calls the session."""
    meta: Update | None = None


class Open(msgspec.Struct, frozen=True, omit_defaults=True):
    """Opens a session for a client."""

    session: str
    principal: str
    agent: str | None
    client: Setup
    epoch: int | None = None
    """That of the owner's claim, as the store has it: an owner with another one is none."""
    is_guest: bool = False
    """Whether it only watches: it brings no roots and no servers, and the session is not given up to it."""


class Opened(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session as its owner has it."""

    owner: str = ""
    """The name of the owner's client."""
    cwd: str = ""
    title: str | None = None
    options: Update = {}
    commands: Update = {}
    latest: dict[str, Update] = {}
    state: Update = {}
    yielded: bool = False
    """Whether it was given up instead: whoever asked may claim it now."""


class Attach(msgspec.Struct, frozen=True):
    """Attaches the client; see `LiveSession.attach`."""

    since: Position | None = None


class Attached(msgspec.Struct, frozen=True):
    """The moment at which the client was attached."""

    position: Position
    lines: int
    """How many lines of the history were sealed; the follower reads them in the store."""
    state: Update
    notices: list[Update]


class Prompt(msgspec.Struct, frozen=True):
    """A prompt; its message has an id already."""

    content: list[Update]
    message_id: str
    meta: Update | None = None


class OfTurn(msgspec.Struct, frozen=True):
    """Names a turn by the id of its prompt's message."""

    message_id: str


class OfPart(msgspec.Struct, frozen=True):
    """Names a tool call or a terminal."""

    id: str


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a turn has ended; `refusal` is the error that says more, where there is one."""

    reason: StopReason
    error: str | None = None
    refusal: tuple[int, str, Any] | None = None
    more: dict[str, Any] = {}


class SetOption(msgspec.Struct, frozen=True):
    """Sets an option for the user."""

    option: str
    value: Any


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Does something with a session that need not be watched."""

    name: OperationName
    session: str
    principal: str
    agent: str | None
    title: str | None = None
    fork_id: str = ""
    roots: tuple[str, ...] = ()
    up_to: str | None = None


class Status(msgspec.Struct, frozen=True):
    """What a session does in its owner's process, and who watches it."""

    session: str
    activity: Activity
    clients: list[str]


class Events(msgspec.Struct, frozen=True, array_like=True):
    """What happened: the position before it, and of each event its kind, key, plain text and body."""

    before: Position | None
    events: list[tuple[str, str, str | None, Raw]]

    @classmethod
    def of(cls, events: list[Event] | tuple[Event, ...], before: Position | None) -> Events:
        """Pack events."""
        return cls(before, [(event.kind, event.key, event.plain_text, Raw(event.body)) for event in events])

    def unpack(self) -> list[Event]:
        """Return the events."""
        return [Event(kind, key, bytes(body), text) for kind, key, text, body in self.events]


class Dropped(msgspec.Struct, frozen=True):
    """Says why a client is not shown any more; one that `moved` is shown the rest by another process."""

    reason: str
    moved: bool


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question: one of the two."""

    permission: Permission | None = None
    elicitation: Elicitation | None = None


class Answered(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer: one of the two, or none."""

    option: str | None = None
    elicitation: ElicitationAnswer | None = None


class ToClient(msgspec.Struct, frozen=True):
    """A request or notification from an agent to its client, as the protocol has it."""

    method: str
    params: dict[str, Any]


class NotHere(RequestError):
    """Says that this process is not the owner of the session."""

    code = NOT_HERE


class NotKept(RequestError):
    """Says that what happened after a position is gone: `PositionLost` on the other side."""

    code = NOT_KEPT


_ERRORS: dict[int, type[RequestError]] = {
    kind.code: kind
    for kind in (AuthRequired, InternalError, InvalidParams, InvalidRequest, MethodNotFound, RequestCancelled)
}


def error_from(error: tuple[int, str, Any], session_id: str) -> RequestError | NeighbourLost:
    """Return the exception that an error of the owner was made of: its code, message and data."""
    code, message, data = error
    if code == NOT_HERE:
        return NeighbourLost(message)
    if code == NOT_KEPT:
        return PositionLost(data)
    if code == SessionNotFound.code:
        return SessionNotFound(session_id)
    return _ERRORS.get(code, InternalError)(message, data)
