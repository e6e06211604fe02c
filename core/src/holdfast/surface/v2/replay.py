"""A stored history as version 2 sends it: stored lines are its updates, but for their marks and an envelope."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.format.lines import OPEN, OTHER, updates_in
from holdfast.model.kinds import MESSAGE_CHUNKS

if TYPE_CHECKING:
    from collections.abc import Iterable

_MESSAGE = b'{"messageId":'
_encode = msgspec.json.encode


class _Head(msgspec.Struct, rename="camel"):
    """What says which message an update is about."""

    session_update: str
    message_id: str | None = None


_read_head = msgspec.json.Decoder(_Head).decode


class Beginnings:
    """Puts an empty whole message before the first chunk of each message of a replay.

    What a wrapped agent streams is stored as chunks: it may go on with a message of an earlier turn. A client that
    replays must not append them to what it has of the message already.
    """

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun: set[bytes] = set()

    def complete(self, block: bytes) -> bytes:
        """Return a block of stored lines, with the beginnings that it lacks."""
        lines: list[bytes] = []
        for line in block.split(b"\n"):
            if line.startswith(_MESSAGE):  # one block, and nothing before it
                key, _, rest = line[len(_MESSAGE) :].partition(b',"sessionUpdate":"')
                self._begun.add(rest.partition(OPEN)[0] + key)
            elif line.startswith(OTHER) and b'"messageId"' in line:
                lines += self._beginning(line)
            lines.append(line)
        return b"\n".join(lines)

    def _beginning(self, line: bytes) -> list[bytes]:
        try:
            head = _read_head(line[len(OTHER) :])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return []  # damaged, and shown as it is
        kind = head.session_update.removesuffix("_chunk")
        key = _encode(head.message_id)
        if kind.encode() + key in self._begun or head.message_id is None:
            return []
        self._begun.add(kind.encode() + key)
        if head.session_update not in MESSAGE_CHUNKS:
            return []
        return [b'%s{"sessionUpdate":"%s","messageId":%s,"content":[]}' % (OTHER, kind.encode(), key)]


class Envelope:
    """What stands around each update of one session on the wire."""

    __slots__ = ("_after", "_before", "_between")

    def __init__(self, session_id: str) -> None:
        id_ = msgspec.json.encode(session_id)
        self._before = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%s,"update":' % id_
        self._after = b"}}\n"
        self._between = self._after + self._before

    def lines(self, block: bytes) -> tuple[bytes, ...]:
        """Return a block of stored lines with the envelope around each update: whole lines, in pieces."""
        return self._before, updates_in(block).replace(b"\n", self._between), self._after

    def join(self, updates: Iterable[bytes]) -> bytes:
        """Return some updates, at least one, with the envelope around each."""
        return b"%s%s%s" % (self._before, self._between.join(updates), self._after)
