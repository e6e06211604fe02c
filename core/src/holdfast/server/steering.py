"""`_session/steering`: a client says something to an agent that is at work, and the turn goes on with it.

It is an extension of version 1 that adapters have. The client learns what became of its words by `outcome`: the running
turn took them (``injected``), they began a turn of their own (``startedNewTurn``), or, if the client asked for that,
none runs and it should prompt (``promptRequired``). A turn that the words begin is one of ours, as after a prompt.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.errors import InvalidParams
from holdfast.model import checked_prompt, new_id
from holdfast.model.events import is_object

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.engine import OpenSession
    from holdfast.model import Update
    from holdfast.server.attached_client import AttachedClient
    from holdfast.server.connection import ClientConnection
    from holdfast.surface import shapes

METHOD = "_session/steering"

PROMPT_REQUIRED = "promptRequired"


class Steering:
    """The steering of one connection."""

    def __init__(
        self,
        connection: ClientConnection,
        session: Callable[[str], Awaitable[OpenSession]],
        client: Callable[[OpenSession], AttachedClient],
    ) -> None:
        """`session` opens a session by the name that the client has for it; `client` finds the client in it."""
        self._connection = connection
        self._session = session
        self._client = client

    async def steer(self, params: shapes.Prompt) -> Update:
        """Answer the request. One that is sent again, after a cut, gets the answer of the first."""
        if self._connection.login_needed:
            await self._connection.check_login()
        checked_prompt(params.prompt, self._connection.description.accepts)
        may_prompt = _may_prompt(params)
        session = await self._session(params.session_id)
        host = self._connection.host
        key = host.steered.key(self._connection.principal, session.id, params.meta) if params.meta else None
        steering = None if key is None else host.steered.get(key)
        if steering is None:
            steer = self._steer(session, self._client(session), params, may_prompt=may_prompt)
            steering = asyncio.get_running_loop().create_task(steer, name="steer")
            if key is not None:
                host.steered.put(key, steering)
        return await asyncio.shield(steering)  # what the agent has taken is stored, though the client leaves

    async def _steer(
        self, session: OpenSession, client: AttachedClient, params: shapes.Prompt, *, may_prompt: bool
    ) -> Update:
        message_id = new_id("msg")
        client.lowering.quiet(message_id)
        answer = await session.steer(params.prompt, params.meta, message_id)
        if answer.get("outcome") != PROMPT_REQUIRED or not may_prompt:
            return answer
        turn = session.prompt(params.prompt, client, params.meta)
        client.lowering.quiet(turn.message_id)
        await turn.accepted
        return {"outcome": "startedNewTurn"}


def _may_prompt(params: shapes.Prompt) -> bool:
    """Return whether words that come when no turn runs may begin one."""
    hints: object = (params.meta or {}).get("steering")
    wanted: object = hints.get("idleBehavior") if is_object(hints) else None
    if wanted not in (None, PROMPT_REQUIRED):
        raise InvalidParams(f"_meta.steering.idleBehavior must be {PROMPT_REQUIRED!r}, if it is there")
    return wanted is None
