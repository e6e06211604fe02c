"""Whose sessions are whose, in the rows of sessions and in questions, and what signs the cursors of lists."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from msgspec import UnsetType

from holdfast.errors import StoreError
from holdfast.model import UNBOUND
from holdfast.store.postgres.claims import is_storable
from holdfast.store.postgres.rows import change_columns

if TYPE_CHECKING:
    from holdfast.model import Scope
    from holdfast.store.port import Changes
    from holdfast.store.postgres.claims import Held
    from holdfast.store.postgres.database import Database


class Scopes:
    """The numbers that stand for principals and agents in the rows of sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers: dict[tuple[str, str], int] = {}

    async def number(self, principal: str, agent: str) -> int:
        """Return the number of a principal's sessions with an agent, a new one where there are none yet."""
        number = self._numbers.get((principal, agent))
        if number is None:
            if not is_storable(principal + agent):
                raise StoreError("The name of a principal or an agent has a character that PostgreSQL cannot store")
            number = await self._database.value("get_scope", principal, agent)
            if number is None:
                await self._database.fetch("add_scope", principal, agent)
                number = await self._database.value("get_scope", principal, agent)
            self._numbers[principal, agent] = number
        return number

    async def change_columns(self, held: Held, changes: Changes) -> tuple[Any, ...]:
        """Return what the queries that change a session take, with the number of the agent it goes to."""
        columns = change_columns(changes, held.principal, None)  # before anything is waited for: it may change
        if isinstance(changes.agent, UnsetType):
            return columns
        return (*columns[:-1], await self.number(held.principal, changes.agent))


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
