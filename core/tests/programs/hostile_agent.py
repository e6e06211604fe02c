"""An agent for tests of the web page: its every name and word tries to run a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.tests.support.injections import PAYLOADS
from holdfast import Agent

if TYPE_CHECKING:
    from holdfast import Turn

NAME = 'evil"><img src=x onerror=window.injected=1>'
BREAKER = PAYLOADS[4]

agent = Agent(NAME, title=PAYLOADS[1], version=PAYLOADS[0], accepts={"image"})
agent.modes({each: each for each in PAYLOADS[:4]}, default=PAYLOADS[0])
agent.models({each: each for each in PAYLOADS[4:8]}, default=PAYLOADS[4])
agent.option(BREAKER, name=BREAKER, description=BREAKER, values={BREAKER: BREAKER}, default=BREAKER)


@agent.command("evil", BREAKER, hint=BREAKER)
async def evil(turn: Turn) -> None:
    """Ask the user to go somewhere."""
    await turn.ask_url(BREAKER, 'https://example.com/"onmouseover="window.injected=1"><svg/onload=window.injected=1>')


@agent.prompt
async def answer(turn: Turn) -> None:
    """Say every payload, as a title too, and ask with it."""
    number = int(turn.text) if turn.text.isdecimal() else 0
    text = PAYLOADS[number % len(PAYLOADS)].replace("\0", "")
    await turn.session.rename(text)
    await turn.usage(5, 9, cost=0.1)
    await turn.plan([(text, "pending", "high")])
    async with turn.tool(text, kind="execute", input={"command": text, text: text}, locations=[text]) as call:
        await call.diff(text, text, f"{text}\n{text}")
        await turn.allow(text, call)
    fields = {
        "name": {"type": "string", "title": text, "description": text, "default": text},
        "kind": {"type": "string", "enum": [text, "b"], "title": text},
        "several": {"type": "array", "title": text, "items": {"type": "string", "enum": [text, "c"]}},
    }
    await turn.ask(text, fields)
    await turn.say(f"{text}\n\nAll of {number} was said.")
