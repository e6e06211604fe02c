"""How a connection tells its client where in the stream of a session's events it stands, to go on there later (H4).

Over HTTP a position is in the id of each event of a stream (`holdfast.server.remote.acp_streams`). Over other
transports it is told in `_meta` of each update, to clients that ask for it in `_meta` of `initialize`; they name it
when they resume a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from holdfast.errors import InvalidParams
from holdfast.model import Position

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.peer import Peer

ASKED = "holdfast/positions"
"""In `_meta` of `initialize`: true where a client wants to be told positions."""

AT = "holdfast/at"
"""In `_meta` of an update, and of the answer that opens a session: its position."""

FROM = "holdfast/from"
"""In `_meta` of `session/resume`: show again what happened from this position on, with the event that has it."""

PROCESS = "holdfast/process"
"""In `_meta` of the answer to `initialize`: another one after the server was started anew."""

REPLAY_FROM = "_holdfast/from"
"""The type of `replayFrom` that means the same in version 2; its `position` is the position."""

_END = b"}}\n"


class SeenUpTo(msgspec.Struct, frozen=True):
    """The last that a client has seen: an event, and how many lines of those that say it."""

    position: Position
    lines: int


class PositionTelling(Protocol):
    """Tells a client positions."""

    def show(self, session_id: str, position: Position, block: bytes, known_lines: int) -> None:
        """Send the lines that say the event at a position; so many lines of it came before."""
        ...

    def show_run(self, session_id: str, before: Position, block: bytes) -> None:
        """Send the lines of events that follow a position, one line for each."""
        ...

    def stand(self, session_id: str, position: Position | None) -> None:
        """Note where the client stands now; None while it is replayed a history, which has no positions."""
        ...

    def rewind(self, session_id: str, seen: SeenUpTo) -> None:
        """Prepare for showing again what a client has not seen."""
        ...

    def rewound(self, session_id: str) -> None:
        """Note that all of it was shown."""
        ...


class InMeta:
    """Tells positions in `_meta` of updates."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def show(self, session_id: str, position: Position, block: bytes, known_lines: int) -> None:  # noqa: ARG002
        """Send updates with their position."""
        self._peer.send_block(self.with_position(block, position))

    def show_run(self, session_id: str, before: Position, block: bytes) -> None:  # noqa: ARG002
        """Send updates with their positions."""
        lines = block.splitlines(keepends=True)
        self._peer.send_block(*(self.with_position(line, before.after(n)) for n, line in enumerate(lines, 1)))

    @staticmethod
    def with_position(block: bytes, position: Position) -> bytes:
        """Return lines of updates with their position in each."""
        # Every line ends like this: a newline inside JSON would be written otherwise.
        return block.replace(_END, b',"_meta":{"holdfast/at":"%s"}}}\n' % str(position).encode())

    def stand(self, session_id: str, position: Position | None) -> None:
        """Do nothing: the client knows from the updates."""

    def rewind(self, session_id: str, seen: SeenUpTo) -> None:
        """Do nothing: what was sent on an earlier connection is of no concern for this one."""

    def rewound(self, session_id: str) -> None:
        """Do nothing."""


def position_named(meta: Mapping[str, Any] | None) -> Position | None:
    """Return the position that `_meta` of a request names, if it names one; raise `InvalidParams` for another thing."""
    named = (meta or {}).get(FROM)
    return None if named is None else parse_position(named)


def parse_position(named: object) -> Position:
    """Return a position that a client names; raise `InvalidParams` for what is none."""
    position = Position.parse(named) if isinstance(named, str) else None
    if position is None:
        raise InvalidParams("This is no position of an event; take one from _meta of an update")
    return position
