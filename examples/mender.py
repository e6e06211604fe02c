"""An agent without a model that mends one kind of mistake: `holdfast chat examples/mender.py`, then ask it to.

It shows what a turn can show: thoughts, a plan, tool calls with their state, a diff, a question, a command's output.
"""

import sys

from holdfast import Agent, Turn

agent = Agent("mender", title="Mender", version="1.0")
agent.modes({"ask": "Asks first", "auto": "Goes ahead"}, default="ask")

MISTAKE, RIGHT = "(len(values) - 1)", "len(values)"
STEPS = ("Read stats.py", "Mend it", "Run the test")


@agent.prompt
async def mend(turn: Turn) -> None:
    """Read, mend, test."""
    await turn.think("A mean that is too large: what is it divided by?")
    await progress(turn, 0)
    async with turn.tool("Read stats.py", kind="read", locations=[("stats.py", 2)]) as call:
        before = await turn.files.read_text("stats.py")
        await call.text(before)
    after = before.replace(MISTAKE, RIGHT)
    if after == before:
        await turn.say("There is nothing to mend.")
        return
    await progress(turn, 1)
    async with turn.tool("Edit stats.py", kind="edit", locations=["stats.py"]) as call:
        await call.diff("stats.py", before, after)
        if turn.session.mode == "ask" and not await turn.allow("May I change stats.py?", call):
            await call.fail("not allowed")
            return
        await turn.files.write_text("stats.py", after)
    await progress(turn, 2)
    async with turn.tool("Run test_stats.py", kind="execute") as call:
        done = await call.terminal(sys.executable, "test_stats.py")
    await progress(turn, 3)
    await turn.usage(2_300, 200_000, cost=0.004)
    verdict = "**passes**" if done.status == 0 else "still **fails**"
    await turn.say(f"`mean` was divided by `{MISTAKE}`.\n\n- It is divided by `{RIGHT}` now\n- The test {verdict}\n")


async def progress(turn: Turn, done: int) -> None:
    """Show how far it is."""
    states = ["completed"] * done + ["in_progress"] + ["pending"] * len(STEPS)
    await turn.plan(zip(STEPS, states, strict=False))
