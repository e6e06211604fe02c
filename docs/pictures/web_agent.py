"""The agent in the pictures of the web page: it answers a few prompts as a coding agent would, without a model."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast import Agent

if TYPE_CHECKING:
    from holdfast import Turn

agent = Agent("coder", title="Coder", version="1", accepts={"image"})
agent.modes({"ask": "Ask first", "auto": "Edit freely"}, default="ask")
agent.models({"small": "Small", "large": "Large"}, default="large")

BEFORE = '''\
import time

from http_client import Timeout, send


def fetch(request, attempts=3):
    """Send a request; try again where the server does not answer."""
    for attempt in range(1, attempts):
        try:
            return send(request, timeout=2)
        except Timeout:
            time.sleep(1)
    raise GaveUp(request)
'''

AFTER = '''\
import time

from http_client import Timeout, send


def fetch(request, attempts=3):
    """Send a request; try again where the server does not answer."""
    for attempt in range(1, attempts + 1):
        try:
            return send(request, timeout=2)
        except Timeout:
            time.sleep(min(2**attempt, 30))
    raise GaveUp(request, attempts)
'''

ANSWER = """\
## What was wrong

`range(1, attempts)` ends one short of `attempts`, so the last try never happened. Two things changed:

1. The loop now makes **all** of its attempts.
2. Between them it waits twice as long each time, at most 30 seconds.

```python
for attempt in range(1, attempts + 1):
    try:
        return send(request, timeout=2)
    except Timeout:
        time.sleep(min(2**attempt, 30))
```

| attempts | tried before | tried now |
|---------:|-------------:|----------:|
|        1 |            0 |         1 |
|        3 |            2 |         3 |

All 4 tests pass.
"""


@agent.prompt
async def answer(turn: Turn) -> None:
    """Do what the prompt asks for, as far as it is in the play."""
    if "retry" in turn.text:
        await fix_retry(turn)
    elif "release" in turn.text:
        await release(turn)
    else:
        await turn.say("Done. The details are in the summary above.")
        await turn.usage(21_000, 200_000, cost=0.08)


async def fix_retry(turn: Turn) -> None:
    """Change a file, run the tests, explain."""
    await turn.think("The loop looks off by one. I should read it before I change anything, and there may be a test.")
    await turn.plan([("Read the client", "completed", "high"), ("Fix the loop", "in_progress", "high"),
                     ("Run the tests", "pending", "medium")])  # fmt: skip
    async with turn.tool("Read client.py", kind="read", locations=[("client.py", 6)]) as call:
        await call.text(f"```python\n{BEFORE}```")
    async with turn.tool("Edit client.py", kind="edit", locations=["client.py"]) as call:
        await call.diff("client.py", BEFORE, AFTER)
    async with turn.tool("Run the tests", kind="execute", input={"command": "pytest -q --color=yes"}) as call:
        await call.terminal("pytest", "-q", "--color=yes", "--no-header")
    await turn.plan([(step, "completed", "high") for step in ("Read the client", "Fix the loop", "Run the tests")])
    await turn.usage(53_000, 200_000, cost=0.42)
    await turn.say(ANSWER)
    await turn.session.rename("Fix the retry loop in the client")


async def release(turn: Turn) -> None:
    """Ask before something that cannot be undone."""
    await turn.session.rename("Release 2.4 to production")
    await turn.say("The changelog is written and the tests are green. One step is left, and it cannot be undone.")
    command = "git tag -s v2.4.0 -m 'Release 2.4.0' && git push origin v2.4.0 && make publish"
    async with turn.tool("Tag, push and publish 2.4.0", kind="execute", input={"command": command}) as call:
        if not await turn.allow("May I publish version 2.4.0?", call):
            await call.fail("not allowed")
        await asyncio.sleep(0)
