"""Stores with very many sessions or messages in them: too many to be made one turn at a time.

The rows are those the store would have written; they are put in by its own queries, many in one transaction.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import msgspec

from holdfast.format import Line
from holdfast.model import SessionInfo
from holdfast.store.sqlite import sessions
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.histories import EMPTY, extend_history

if TYPE_CHECKING:
    from pathlib import Path

DIRECTORIES = 10
SECOND = 1_000_000
RARE, COMMON = "chrysanthemum", "the"
"""Words to be found: one in a hundred messages, whatever their number, the other in all of them."""
RARE_HITS = 100
MESSAGES_A_SESSION = 1_000
BATCH = 50_000


def build_sessions(path: Path, count: int) -> None:
    """Make a store with sessions that follow each other every minute and are used for a day or so."""
    chance = random.Random(count)
    db = Database(str(path))
    for start in range(0, count, BATCH):
        with db.transaction():
            for n in range(start, min(count, start + BATCH)):
                created = n * 60 * SECOND
                used = created + int(chance.expovariate(1 / 86_400) * SECOND)
                _add_session(db, n, created, used)
    db.run("add_setting", name="cursor key", value=b"k" * 32)
    db.close()


def build_messages(path: Path, count: int) -> None:
    """Make a store with messages of some thirty words."""
    chance = random.Random(count)
    common = [f"word{n}" for n in range(20_000)]
    rare = set(chance.sample(range(count), RARE_HITS))
    db = Database(str(path))
    for n, start in enumerate(range(0, count, MESSAGES_A_SESSION)):
        with db.transaction():
            number = _add_session(db, n, n, n)
            lines: list[Line] = []
            for at in range(start, start + MESSAGES_A_SESSION):
                words = [common[int(chance.paretovariate(0.7)) % len(common)] for _ in range(30)]
                text = " ".join([COMMON, *words, *([RARE] if at in rare else [])])
                update = {
                    "sessionUpdate": "agent_message",
                    "messageId": f"msg_{at:016}",
                    "content": [{"type": "text", "text": text}],
                }
                lines.append(Line(msgspec.json.encode(update), text))
            sessions.set_end(db, number, extend_history(db, number, EMPTY, lines))
    db.run("add_setting", name="cursor key", value=b"k" * 32)
    db.close()


def _add_session(db: Database, n: int, created: int, used: int) -> int:
    info = SessionInfo(
        id=f"sess_{n:016}",
        cwd=f"/home/somebody/project-{n % DIRECTORIES}",
        additional=(),
        title=None,
        created_at=created,
        updated_at=used,
        archived=False,
        messages=2,
    )
    number, _ = sessions.add_session(db, info, b"{}", None)
    db.run("set_title", n=number, title=f"What session {n} is about", doc=None)
    return number
