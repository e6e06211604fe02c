"""What is remembered of the agent's side of a session: which session of the agent it is, and what that knows.

It lies in the session's memory, so it is stored with the end of each turn, copied to forks of the same agent, and left
behind where the session is handed over to another one (F2).
"""

from __future__ import annotations

from typing import Any

import msgspec

KEY = "holdfast/wrap"
"""Under this name it lies in the session's memory."""


class AgentRecord(msgspec.Struct, omit_defaults=True):
    """The agent's session, and how much of our history it knows. Turns are named by the id of their user message."""

    session: str | None = None
    """The agent's own id of the session; None where there is none yet."""
    knows: str | None = None
    """The last turn that it knows to its end, and with it all before."""
    since: str | None = None
    """The first turn that was sent to it; None where that is the first of the history."""
    seeded: str | None = None
    """The last turn whose prompt told it what it had forgotten: never twice (G5)."""
    without_users: bool = False
    """Whether it was seen to replay no messages of the user although it remembers them (G5)."""
    forked_from: str | None = None
    """The agent's session that this one was forked from, until it has one of its own."""
    options: list[dict[str, Any]] = []
    """The options it offered last, as an update has them: for clients that come before the agent is back."""

    @classmethod
    def read(cls, memory: dict[str, Any]) -> AgentRecord:
        """Read it from a session's memory; what cannot be read counts as nothing."""
        try:
            return msgspec.convert(memory.get(KEY, {}), cls)
        except msgspec.ValidationError:
            return cls()

    def write(self, memory: dict[str, Any]) -> None:
        """Put it into a session's memory."""
        memory[KEY] = msgspec.to_builtins(self)
