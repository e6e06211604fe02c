"""An agent that gives a session a long past, for `holdfast run`: the prompt says how many entries."""

from __future__ import annotations

from holdfast import Agent, Turn

WORDS = "The quick brown fox jumps over the lazy dog and the dog does not mind at all. "

agent = Agent("long past")


@agent.prompt
async def answer(turn: Turn) -> None:
    for n in range(0, int(turn.text), 2):
        await turn.say(f"{n}: {WORDS * (n % 3 + 1)}")
        async with turn.tool(f"Read file {n}", kind="read") as call:
            await call.text(f"{n}: {WORDS * (n % 3 + 1)}")
