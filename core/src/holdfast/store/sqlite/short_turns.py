"""Turns that only add a few lines to a history: by far the most. One is sealed by two calls of the database.

Everything is made ready before the thread that writes has it: what a thread does that was just woken costs twice as
much, because nothing it needs is in its processor's cache (docs/decisions/014).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.format.segments import SEGMENT_BYTES, checksum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.format import Line
    from holdfast.store.port import Claim
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.turn_logs import TurnLogs


class ShortTurn(msgspec.Struct, frozen=True):
    """A turn that is ready to be sealed."""

    bindings: dict[str, Any]
    """What the queries are given."""
    texts: list[tuple[int, str]]
    """What a search should find in its lines, with the number of each."""

    def seal(self, db: Database) -> bool:
        """Put it behind the history, inside a transaction of the caller's; return False where that cannot be."""
        if not db.change("count_short_turn", **self.bindings):
            return False
        segment = db.insert("add_short_turn", **self.bindings)
        db.new_texts[segment, self.bindings["checksum"]] = self.texts
        return True


def short_turn(
    logs: TurnLogs,
    claim: Claim,
    lines: Sequence[Line],
    state: bytes | None,
    messages: int,
    last: bytes | None,
    *,
    activity: bool,
    now: int,
) -> ShortTurn | None:
    """Make the turn under a claim ready to be sealed; its log then has its `last` line.

    Return None where it did not begin in its log alone, or is too long: nothing was done then.
    """
    log = logs.running(claim)
    beginning = None if log is None else log.beginning  # the writing thread may note it at any moment
    if log is None or beginning is None or not lines:
        return None
    body = b"\n".join([line.body for line in lines])
    if len(body) >= SEGMENT_BYTES or not logs.end_with(log, last):
        return None
    bindings = {
        "id": claim.session, "epoch": claim.epoch, "turn": log.turn, "began_at": beginning.at, "now": now,
        "state": state, "messages": messages, "activity": activity, "lines": len(lines), "body": body,
        "bytes": len(body), "checksum": checksum(body), "tail_most": SEGMENT_BYTES,
    }  # fmt: skip
    return ShortTurn(bindings, [(at, line.text) for at, line in enumerate(lines) if line.text])
