"""Whose sessions a question is about, and what signs the cursors of lists."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from holdfast.model import UNBOUND

if TYPE_CHECKING:
    from holdfast.model import Scope
    from holdfast.store.postgres.database import Database


def agents_of(scope: Scope) -> list[str] | None:
    """Return the agents that a scope covers, None for all."""
    return None if scope.agent is None else [scope.agent, UNBOUND]


async def cursor_key(database: Database) -> bytes:
    """Read what cursors are signed with, or make it up."""
    key = await database.value("get_setting", "cursor key")
    if key is None:
        await database.fetch("add_setting", "cursor key", secrets.token_bytes(32))
        key = await database.value("get_setting", "cursor key")
    return key
