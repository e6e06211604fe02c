"""Who may write a session (P4): claims given, checked and let go, and what becomes of turns whose node died."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from msgspec import UnsetType

from holdfast.errors import SessionBusy, SessionElsewhere, SessionMoved, SessionNotFound
from holdfast.store.port import Claim, Claimed, KeptLog, Snapshot, UnsealedTurn
from holdfast.store.postgres.flushing import TurnRows
from holdfast.store.postgres.rows import HistoryEnd, end_of, record_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.port import Changes
    from holdfast.store.postgres.database import Database
    from holdfast.store.postgres.flushing import Beginning, Flushes
    from holdfast.store.postgres.nodes import Node, Nodes


class Held:
    """What this process knows of a session it may write. Nobody else changes any of it while the claim holds."""

    __slots__ = (
        "agent", "end", "has_rows", "is_running", "kept_bytes", "log", "n", "node", "oldest_log", "principal", "turn"
    )  # fmt: skip

    def __init__(self, node: Node, n: int, turn: int, end: HistoryEnd, principal: str, agent: str) -> None:
        self.node: Node = node
        self.n: int = n
        self.turn: int = turn
        """The number of its latest turn."""
        self.end: HistoryEnd = end
        self.principal: str = principal
        self.agent: str = agent
        self.log: TurnRows | None = None
        """The log of the turn that runs here."""
        self.is_running: bool = False
        self.has_rows: bool = False
        """Whether the log of its latest turn, which another process has left, has any."""
        self.kept_bytes: float = math.inf
        """How large the logs that are kept of it are at most…"""
        self.oldest_log: int = 0
        """…and that of which turn is the oldest. A seal need not look for older ones: what was removed is in an index
        until it is vacuumed."""

    def note(self, changes: Changes) -> None:
        """Take note of changes that were stored."""
        if not isinstance(changes.agent, UnsetType):
            self.agent = changes.agent


class Claims:
    """The claims to sessions that this process has."""

    def __init__(self, database: Database, nodes: Nodes, flushes: Flushes) -> None:
        self._database = database
        self._nodes = nodes
        self._flushes = flushes
        self._held: dict[Claim, Held] = {}

    async def claim(self, session: str, *, take_over: bool = True) -> Claimed:
        """Become the one writer of a session; see `holdfast.store.port.Store.claim`."""
        while True:
            row = await self.find(session)
            if not take_over and row["has_node"] and row["is_alive"] and row["node"] != self._nodes.current_id:
                raise SessionElsewhere(called(row), row["node_url"], row["epoch"])
            await self.make_free(row)
            node = await self._nodes.get()
            taken = await self._database.first("take_session", node.id, row["n"], row["epoch"])
            if not taken["is_mine"]:
                self._nodes.fence(node)
            elif taken["epoch"] is not None:
                break
            # Somebody else was faster, or a turn began meanwhile: look again.
        claim = Claim(session, taken["epoch"])
        # What is read now is all there will ever be: whoever wrote it before is refused from here on.
        snapshot = await self._database.first("get_snapshot", session)
        if snapshot is None or snapshot["epoch"] != claim.epoch:
            raise self._moved(snapshot, session)
        self._held.pop(Claim(session, row["epoch"]), None)
        self.hold(claim, node, snapshot)
        broken = UnsealedTurn(_lines(snapshot)) if snapshot["unsealed"] else None
        return Claimed(claim, record_of(snapshot), broken)

    async def make_free(self, row: Any) -> None:
        """Make sure that an unsealed turn of a session runs nowhere; raise `SessionBusy` where it does.

        A node whose lease is over is fenced: after this none of its writes can happen any more.
        """
        if row["unsealed"] and row["node"] is not None and row["has_node"]:
            if row["node"] == self._nodes.current_id:
                held = self._held.get(Claim(row["id"], row["epoch"]))
                if held is not None and held.is_running:
                    raise SessionBusy("A turn of this session is running in this process")
            elif row["is_alive"]:
                raise SessionBusy(f"A turn of this session is running in {called(row)}")
            else:
                await self._database.fetch("fence_node", row["node"])

    async def release(self, claim: Claim) -> None:
        """Stop being the writer of a session; see `holdfast.store.port.Store.release`."""
        held = self._held.pop(claim, None)
        if held is None:
            return
        if held.log is not None:
            await self._flushes.settle(held.log)  # nothing of it may arrive after others have read it
        await self._database.fetch("release_session", claim.session, claim.epoch, held.node.id)

    def hold(self, claim: Claim, node: Node, row: Any) -> None:
        """Remember a session that was claimed."""
        held = self._held[claim] = Held(node, row["n"], row["turn"], end_of(row), row["principal"], row["agent"])
        held.has_rows = bool(row["log"])

    def hold_new(self, claim: Claim, held: Held) -> None:
        """Remember a session that was made here."""
        self._held[claim] = held

    def is_held(self, claim: Claim) -> bool:
        """Return whether a claim is one of this process."""
        return claim in self._held

    async def check(self, claim: Claim) -> Held:
        """Return what is known of a session under a claim; raise `SessionMoved` where the claim is not ours."""
        held = self._held.get(claim)
        if held is None or held.node.is_fenced:
            raise await self.moved(claim)
        return held

    def opened(self, claim: Claim, held: Held, beginning: Beginning, *, is_written: bool) -> TurnRows:
        """Return the log for the turn that was begun; `is_written` tells whether what it begins with is stored."""
        held.is_running = True
        held.log = log = TurnRows(self._flushes, held.node, claim, held.n, held.turn)
        if is_written:
            log.seq = 1 if beginning.opening else 0
        else:
            log.unwritten = beginning
        return log

    async def moved(self, claim: Claim) -> Exception:
        """Forget a claim that is lost; return the error that says who has the session now, or that it is gone."""
        self._held.pop(claim, None)
        return self._moved(await self._database.first("get_session", claim.session), claim.session)

    def _moved(self, row: Any, session: str) -> Exception:
        if row is None:
            return SessionNotFound(session)
        here = row["node"] is None or row["node"] == self._nodes.current_id
        where = "another process" if here or row["node_name"] is None else called(row)
        return SessionMoved(f"This session was taken over by {where}; load it again to go on with it here")

    async def find(self, session: str) -> Any:
        """Find a session; raise `SessionNotFound` if there is none."""
        row = await self._database.first("get_session", session) if is_storable(session) else None
        if row is None:
            raise SessionNotFound(session)
        return row

    async def snapshot(self, session: str) -> Snapshot:
        """Return a session and what its unsealed turn has said so far."""
        row = await self._database.first("get_snapshot", session) if is_storable(session) else None
        if row is None:
            raise SessionNotFound(session)
        unsealed = None
        if row["unsealed"]:
            unsealed = UnsealedTurn(_lines(row), called(row) if row["is_alive"] else None)
        return Snapshot(record_of(row), unsealed)


def called(row: Any) -> str:
    """Return what people call a node: by its address where it has one, else by where its process runs."""
    return row["node_name"] if row["node_url"] is None else f"node {row['node_url']}"


def is_storable(text: str) -> bool:
    """Return whether a text can be in the database at all."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def kept_logs(rows: Sequence[Any]) -> list[KeptLog]:
    """Return the logs that rows are from: what was appended to each. One that lacks a row is none."""
    logs: dict[int, list[bytes]] = {}
    for turn, seq, lines in rows:
        if seq == 0:
            logs[turn] = []
        elif turn in logs and len(logs[turn]) == seq - 1:
            logs[turn].append(lines)
        else:
            logs.pop(turn, None)
    return [KeptLog(turn, b"".join(parts).split(b"\n")[:-1]) for turn, parts in logs.items()]


def _lines(row: Any) -> list[bytes]:
    return [line for part in row["log"] for line in part.split(b"\n")[:-1]]
