"""The MCP servers of a session: a toolbox for each client, because each client brings its own (F3, E3).

Puts questions of servers to the user of the running turn, and tells a client which of its servers fail. What a server
is and how it is talked to is the business of `holdfast.mcp`, which is not even loaded for a session without servers.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from holdfast.errors import TurnOver
from holdfast.model import ElicitationAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.engine import LiveSession, SessionClient
    from holdfast.mcp import Server, ServerStatus, Toolbox
    from holdfast.model import Elicitation, Update

NOTICE_CHARACTERS = 1_000
"""How much of a server's failure a notice tells; the log has more."""


_NONE: Mapping[SessionClient | None, Toolbox] = MappingProxyType({})


class McpServers:
    """The toolboxes of one session, by client."""

    __slots__ = ("_common", "_session", "_toolboxes", "is_used")

    def __init__(self, session: LiveSession, common: tuple[Server, ...]) -> None:
        self._session = session
        self._common = common
        self._toolboxes: Mapping[SessionClient | None, Toolbox] = _NONE
        self.is_used: bool = bool(common)
        """Whether there are, or ever were, servers in the session."""

    def toolbox(self, client: SessionClient | None) -> Toolbox:
        """Return the toolbox of a client; it is empty where the client brought no servers."""
        box = self._toolboxes.get(client)
        if box is None:
            box = self._new_toolbox(client)
            self._toolboxes = {**self._toolboxes, client: box}
            self.is_used = True
        return box

    def has(self, client: SessionClient | None) -> bool:
        """Whether servers of a client were connected, or are being connected."""
        return client in self._toolboxes

    async def connect(self, client: SessionClient | None) -> None:
        """Connect the servers a client named and those that every session has; disconnect others."""
        named: tuple[Server, ...] = () if client is None else tuple(client.mcp_servers)
        if client not in self._toolboxes and not (named or self._common):
            return
        from holdfast.mcp.servers import unique  # noqa: PLC0415  (not every session needs it)

        await self.toolbox(client).change(unique((*named, *self._common)))

    async def disconnect(self, client: SessionClient | None) -> None:
        """End the connections to a client's servers (E5)."""
        if (box := self._toolboxes.get(client)) is not None:
            self._toolboxes = {other: its for other, its in self._toolboxes.items() if other is not client}
            await box.close()

    async def close(self) -> None:
        """End all connections."""
        for client in list(self._toolboxes):
            await self.disconnect(client)

    def failures(self, client: SessionClient | None) -> list[Update]:
        """Return notices of the client's servers that have failed."""
        box = self._toolboxes.get(client)
        return [] if box is None else [_notice(status) for status in box.servers if status.state == "failed"]

    def _new_toolbox(self, client: SessionClient | None) -> Toolbox:
        from holdfast.mcp import Toolbox  # noqa: PLC0415

        def tell(status: ServerStatus) -> None:
            if client is not None:
                self._session.tell(client, _notice(status))

        return Toolbox(
            cwd=self._session.cwd,
            roots=lambda: self._session.roots if client is None else client.roots,
            elicit=partial(self._elicit, client),
            modes=lambda: frozenset() if client is None else client.elicitation,
            on_failure=tell,
        )

    async def _elicit(self, client: SessionClient | None, question: Elicitation) -> ElicitationAnswer | None:
        """Ask the user, if a turn of the client runs in which one can be asked."""
        turn = self._session.turn
        if turn is None or turn.client is not client:
            return None
        try:
            answer = await turn.ask(question)
        except TurnOver:
            return None
        return answer if isinstance(answer, ElicitationAnswer) else None


def _notice(status: ServerStatus) -> Update:
    title = f"MCP server {status.name} is not available"
    reason = (status.reason or "")[-NOTICE_CHARACTERS:]
    return {"sessionUpdate": "notice", "severity": "warning", "title": title, "description": reason}
