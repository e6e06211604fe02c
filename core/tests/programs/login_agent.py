"""An agent for tests of the web page that wants a login: one way works, the other is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import Agent
from holdfast.errors import AuthRequired

if TYPE_CHECKING:
    from holdfast import Turn

agent = Agent("login-agent", title="Careful agent", version="1")


@agent.auth("key", name="With the key <b>in the file</b>", description="Uses the key that is there already.")
async def with_key() -> None:
    """Be content."""


@agent.auth("expired", name="With an old key")
async def with_old_key() -> None:
    raise AuthRequired("the key has expired")


@agent.prompt
async def answer(turn: Turn) -> None:
    await turn.say(f"You said: {turn.text}")
