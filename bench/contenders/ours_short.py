"""An agent that answers with five chunks, for `holdfast run`."""

from __future__ import annotations

from holdfast import Agent, Turn

agent = Agent("short")


@agent.prompt
async def answer(turn: Turn) -> None:
    for _ in range(5):
        await turn.say("a few words of an answer, say 32")
