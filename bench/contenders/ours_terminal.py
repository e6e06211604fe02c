"""An agent that runs a command which prints for a while, for `holdfast run`."""

from __future__ import annotations

import sys

from holdfast import Agent, Turn

agent = Agent("terminal")

PRINTS = """
import sys, time
for n in range(8000):
    print(f"line {n} of what a command prints", flush=n % 8 == 0)
    if n % 80 == 0:
        time.sleep(0.01)
"""


@agent.prompt
async def answer(turn: Turn) -> None:
    async with turn.tool("Print", kind="execute") as call:
        await call.terminal(sys.executable, "-S", "-c", PRINTS)
