"""An agent for tests of the web page: it says and does what a page has to show."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from holdfast import Agent

if TYPE_CHECKING:
    from holdfast import Turn

agent = Agent("page-agent", title="Page agent", version="1", accepts={"image"})
agent.modes({"ask": "Ask", "auto": "Auto"}, default="ask")
agent.models({"small": "Small", "large": "Large"}, default="small")


@agent.prompt
async def answer(turn: Turn) -> None:
    """Say the prompt again."""
    images = sum(block["type"] == "image" for block in turn.prompt)
    await turn.say(f"You said: {turn.text}" + (f" ({images} image)" if images else ""))


@agent.command("slow", "Say N words, some a second", hint="N PER_SECOND")
async def slow(turn: Turn) -> None:
    count, pace = ([*turn.text.split(), "20"])[:2]
    for number in range(int(count)):
        await turn.say(f"word{number} ")
        await asyncio.sleep(1 / float(pace))
    await turn.say("done.")


@agent.command("long", "Say many paragraphs")
async def long(turn: Turn) -> None:
    for number in range(int(turn.text or 100)):
        await turn.say(f"Paragraph {number} of a long answer.\n\n")


@agent.command("run", "Ask whether a command may be run")
async def run(turn: Turn) -> None:
    async with turn.tool("Remove the build", kind="execute", input={"command": "rm -rf build && make all"}) as call:
        allowed = await turn.allow("May I remove the build?", call)
        await call.text("removed" if allowed else "left as it was")
    await turn.say("It was allowed." if allowed else "It was not allowed.")


@agent.command("change", "Ask whether a file deep in the project may be changed")
async def change(turn: Turn) -> None:
    path = f"{turn.session.cwd}/src/{'deeply_nested_package_with_a_long_name/' * 3}the_name_of_the_file.py"
    async with turn.tool(f"Edit {path}", kind="edit", locations=[path]) as call:
        await call.diff(path, "a = 1\n", "a = 2\n")
        await turn.allow("May I change the file?", call)


@agent.command("fail", "Run a command that fails")
async def fail(turn: Turn) -> None:
    async with turn.tool("Check the build", kind="execute") as call:
        await call.terminal(sys.executable, "-c", "print('it is broken'); raise SystemExit(1)")
    await turn.say("It failed.")


@agent.command("form", "Ask for something by a form")
async def form(turn: Turn) -> None:
    answer = await turn.ask("Who are you?", {"name": {"type": "string", "title": "Your name"}}, required=["name"])
    await turn.say(f"Hello, {answer['name']}." if answer else "You did not say.")


@agent.command("edit", "Change a file")
async def edit(turn: Turn) -> None:
    async with turn.tool("Edit hello.py", kind="edit", locations=["hello.py"]) as call:
        await call.diff("hello.py", 'print("hello")\n', 'print("hello, world")\n')
    await turn.plan([("Edit the file", "completed", "medium"), ("Run the tests", "pending", "medium")])
    await turn.usage(53_000, 200_000, cost=0.042)
    await turn.say("# Done\n\nThe file is **changed**:\n\n```python\nprint('hello, world')\n```")
