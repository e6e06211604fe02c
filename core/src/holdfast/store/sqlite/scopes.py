"""Whose sessions: each pair of a principal and an agent has a number, and every session has the number of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.model import UNBOUND, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.sqlite.database import Database


def scope_number(db: Database, principal: str, agent: str) -> int:
    """Return the number of a principal's sessions with an agent, a new one where there are none yet."""
    db.run("add_scope", principal=principal, agent=agent)
    return db.value("get_scope", principal=principal, agent=agent)


def scope_numbers(db: Database, scope: Scope) -> dict[int, str]:
    """Return the numbers that a scope covers, with the names of their agents."""
    numbers: dict[int, str] = dict(db.rows("scopes_of_principal", principal=scope.principal))
    wanted = (scope.agent, UNBOUND)
    return {number: agent for number, agent in numbers.items() if scope.agent is None or agent in wanted}


def set_alias(db: Database, scope: Scope, name: str, session: str | None) -> None:
    """Let a session be found by another name too; None says that the session of this name was deleted."""
    db.run("set_alias", scope=scope_number(db, scope.principal, scope.agent or UNBOUND), name=name, session=session)


def find_aliases(db: Database, scope: Scope, names: Sequence[str]) -> dict[str, str | None]:
    """Return those of the names that are known, with the ids of their sessions, None where it was deleted."""
    found: dict[str, str | None] = {}
    for number in scope_numbers(db, scope):
        for name in names:
            for (session,) in db.rows("find_alias", scope=number, name=name):
                found[name] = session
    return found


def covers_all(db: Database, scope: Scope) -> bool:
    """Return whether a scope covers every session of the store."""
    return len(scope_numbers(db, scope)) == db.value("count_scopes")


def used_scopes(db: Database) -> list[Scope]:
    """Return every principal with every agent that it has sessions of."""
    return [Scope(principal, agent) for principal, agent in db.rows("used_scopes")]


def agents_of(db: Database, principal: str) -> list[str]:
    """Return the agents that a principal has sessions of, in alphabetical order."""
    return [agent for (agent,) in db.rows("agents_of_principal", principal=principal)]
