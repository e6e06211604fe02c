"""A stored history as version 2 sends it: stored lines are its updates, but for their marks and an envelope."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.format.lines import updates_in

if TYPE_CHECKING:
    from collections.abc import Iterable


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
