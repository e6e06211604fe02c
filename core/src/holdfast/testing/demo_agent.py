"""The demo agent: deterministic, offline, and able to show a client everything it may ever meet.

Plain text comes back in small chunks; slash commands do the rest. It is meant as a test double for authors of clients:
what it does for a command does not change between releases without being said in the changelog.
"""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64encode
from typing import TYPE_CHECKING, Any, cast

from holdfast.agent import Agent
from holdfast.errors import FileRefused, McpError

if TYPE_CHECKING:
    from holdfast.agent import Turn

agent: Agent = Agent("holdfast-demo", title="Holdfast demo", version="1", accepts={"image", "audio", "resource"})
_MODES = {"ask": ("Ask", "Asks before it does anything"), "auto": ("Auto", "Does what it likes")}
agent.modes(_MODES, default="ask")
agent.models({"small": "Small", "large": "Large"}, default="small")
agent.option("verbose", name="Verbose", default=False, description="Say more than needed")
agent.option(
    "tone",
    name="Tone",
    default="plain",
    values={"Serious": {"plain": "Plain", "formal": "Formal"}, "Fun": {"pirate": "Pirate"}},
)

_MOST = 1e7
"""Numbers behind commands are smaller than this."""

_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060"
    "000000040001f61738550000000049454e44ae426082"
)


@agent.prompt
async def echo(turn: Turn) -> None:
    """Say the prompt again, in small pieces."""
    others = [block["type"] for block in turn.prompt if block["type"] != "text"]
    for at in range(0, len(turn.text), 4):
        await turn.say(turn.text[at : at + 4])
    if others:
        await turn.say(f" (and {', '.join(others)})")


@agent.command("help", "List what this agent can do")
async def show_help(turn: Turn) -> None:
    for command in agent.commands.values():
        hint = f" {command.hint}" if command.hint else ""
        await turn.say(f"- `/{command.name}{hint}` {command.description}\n")


@agent.command("stream", "Say N words, one update each", hint="N")
async def stream(turn: Turn) -> None:
    words = await _number(turn, "/stream 10", default=10)
    if words is None:
        return
    for n in range(int(words)):
        await turn.say(f"{n} ")
        await asyncio.sleep(0)


@agent.command("count", "Count to N, twenty numbers a second", hint="N")
async def count(turn: Turn) -> None:
    numbers = await _number(turn, "/count 100", default=100)
    if numbers is None:
        return
    for n in range(int(numbers)):
        await turn.say(f"{n + 1} ")
        await asyncio.sleep(0.05)


@agent.command("think", "Think, then answer")
async def think(turn: Turn) -> None:
    for piece in ("Let me ", "think ", "about that."):
        await turn.think(piece)
    await turn.say("I have thought about it.")


@agent.command("tool", "Use a tool, and one that fails")
async def tool(turn: Turn) -> None:
    async with turn.tool(
        "Read thermometer", kind="read", input={"place": "roof"}, locations=[("sensor.txt", 1)]
    ) as call:
        await call.text("21 °C")
        await call.output({"celsius": 21})
    async with turn.tool("Read barometer", kind="read") as call:
        await call.fail("there is no barometer")
    await turn.say("It is 21 °C; the barometer does not answer.")


@agent.command("diff", "Show a changed file and a new one")
async def diff(turn: Turn) -> None:
    async with turn.tool("Edit hello.py", kind="edit", locations=["hello.py"]) as call:
        await call.diff("hello.py", 'print("hello")\n', 'print("hello, world")\n')
        await call.diff("new.py", None, "x = 1\n")
    await turn.say("Two files changed.")


@agent.command("terminal", "Run a command in a terminal")
async def terminal(turn: Turn) -> None:
    async with turn.tool("Count to three", kind="execute") as call:
        counted = "import time\nfor n in (1, 2, 3):\n    print(n, flush=True)\n    time.sleep(0.05)"
        done = await call.terminal(sys.executable, "-c", counted)
        await call.output({"status": done.status})
    await turn.say(f"It exited with status {done.status}.")


@agent.command("plan", "Make a plan and carry it out")
async def plan(turn: Turn) -> None:
    steps = ["Look", "Think", "Act"]
    for done in range(len(steps) + 1):
        status = ["completed" if n < done else "in_progress" if n == done else "pending" for n in range(len(steps))]
        await turn.plan([(step, status[n], "high" if n == 2 else "medium") for n, step in enumerate(steps)])
        await asyncio.sleep(0)
    await turn.say("Done as planned.")


@agent.command("ask", "Ask for permission")
async def ask(turn: Turn) -> None:
    async with turn.tool("Launch the rocket", kind="execute") as call:
        if await turn.allow("May I launch the rocket?", call, remember="rocket"):
            await call.text("It flies.")
        else:
            await call.fail("not allowed")
    await turn.say("That was that.")


@agent.command("form", "Ask for something by a form")
async def form(turn: Turn) -> None:
    fields = {
        "name": {"type": "string", "title": "Your name"},
        "age": {"type": "integer", "minimum": 0},
        "size": {"type": "string", "enum": ["S", "M", "L"]},
    }
    answer = await turn.ask("Who are you?", fields, required=["name"])
    await turn.say(f"Hello, {answer.get('name')}." if answer else "You did not say.")


@agent.command("url", "Send the user to an address, and tell when that is done")
async def url(turn: Turn) -> None:
    if await turn.ask_url("Please look at this page", "https://agentclientprotocol.com", id="demo-page"):
        await turn.complete_url("demo-page")
        await turn.say("You have seen it.")
    else:
        await turn.say("You did not want to.")


@agent.command("outline", "Show a plan that is Markdown")
async def outline(turn: Turn) -> None:
    await turn.plan_markdown("# Plan\n\n1. Look\n2. Think\n3. Act\n")
    await turn.say("That is the plan.")


@agent.command("compact", "Tell that the conversation was summed up for the model")
async def compact(turn: Turn) -> None:
    await turn.compaction("The user tries a demo agent.")
    await turn.say("I remember the gist.")


@agent.command("subagent", "Tell of another session that works for this one")
async def subagent(turn: Turn) -> None:
    session_id = f"{turn.session.id}-scout"
    # Without its state: the official Python SDK, 1.0.0rc3, fails on every update of an unknown kind that has one.
    await turn.subagent(session_id, title="Scout", description="Looks ahead")
    await turn.subagent(session_id, description="Has looked ahead")
    await turn.say("The scout is back.")


@agent.command("search", "Use a tool for S seconds that can be cancelled by itself", hint="S")
async def search(turn: Turn) -> None:
    seconds = await _number(turn, "/search 5", default=1)
    if seconds is None:
        return
    async with turn.tool("Search everywhere", kind="search", cancellable=True) as call:
        await asyncio.sleep(seconds)
        await call.text("nothing")
    await turn.say("You cancelled the search." if call.cancelled else "I found nothing.")


@agent.command("editor", "Run a command in a terminal of the client's (version 1)")
async def editor(turn: Turn) -> None:
    if turn.client is None or "terminal" not in turn.client.offers:
        return await turn.say("Your client has no terminals for me.")
    async with turn.tool("Say hello", kind="execute") as call:
        status, output = await turn.client.run("echo", "hello", call=call)
    return await turn.say(f"It exited with status {status} and said {output.strip()!r}.")


@agent.command("sleep", "Do nothing for S seconds; cancel me", hint="S")
async def sleep(turn: Turn) -> None:
    seconds = await _number(turn, "/sleep 5", default=1)
    if seconds is None:
        return
    async with turn.tool("Sleep", kind="other"):
        await turn.say("Good night. ")
        await asyncio.sleep(seconds)
    await turn.say("Good morning.")


@agent.command("usage", "Tell how much context is used")
async def usage(turn: Turn) -> None:
    await turn.usage(53_000, 200_000, cost=0.045)
    await turn.say("A quarter of the context is used.")


@agent.command("title", "Give the session a title", hint="TITLE")
async def title(turn: Turn) -> None:
    await turn.session.rename(turn.text or None)
    await turn.say(f"This session is called {turn.session.title!r}.")


@agent.command("mode", "Switch the mode", hint="ask|auto")
async def mode(turn: Turn) -> None:
    wanted = _first_word(turn) or "auto"
    if wanted not in _MODES:
        await turn.say(f"There is no mode {wanted!r}. Use /mode ask or /mode auto.")
        return
    await turn.session.set("mode", wanted)
    await turn.say(f"The mode is {turn.session.mode}.")


@agent.command("notice", "Tell something that is not part of the conversation")
async def notice(turn: Turn) -> None:
    await turn.notice("The moon is full", "This has no consequences.", severity="warning")
    await turn.say("You were told.")


@agent.command("image", "Show an image")
async def image(turn: Turn) -> None:
    await turn.say("One pixel: ")
    await turn.show({"type": "image", "mimeType": "image/png", "data": b64encode(_PIXEL).decode()})


@agent.command("fail", "Fail")
async def fail(turn: Turn) -> None:
    await turn.say("This will not end well. ")
    raise RuntimeError("the secret reason")


@agent.command("files", "Write and read a file, and try to leave the session's directories")
async def files(turn: Turn) -> None:
    async with turn.tool("Write and read holdfast-demo.txt", kind="edit", locations=["holdfast-demo.txt"]) as call:
        await turn.files.write_text("holdfast-demo.txt", "21 °C\n")
        await call.text(await turn.files.read_text("holdfast-demo.txt"))
    async with turn.tool("Read /etc/passwd", kind="read") as call:
        try:
            await call.text(await turn.files.read_text("/etc/passwd"))
        except FileRefused as e:
            await call.fail(f"refused: {e}")
    await turn.say("I stayed inside.")


@agent.command("mcp", "List MCP servers and their tools, or call a tool", hint="[SERVER TOOL [JSON]]")
async def mcp(turn: Turn) -> None:
    server, tool, arguments = (*turn.text.split(maxsplit=2), "", "", "")[:3]
    if tool:
        try:
            given: Any = json.loads(arguments or "{}")
        except ValueError:
            given = None
        if not isinstance(given, dict):
            await turn.say("What follows the tool's name must be a JSON object. Example: /mcp SERVER TOOL {}")
            return
        try:
            result = await turn.call_tool(server, tool, cast("dict[str, Any]", given))
        except McpError as e:
            await turn.say(f"That did not work: {e.message}")
        else:
            await turn.say(result.text or f"{len(result.content)} blocks that are not text")
        return
    for status in await turn.session.mcp.ready():
        await turn.say(f"- {status.name}: {status.state}{f', because {status.reason}' if status.reason else ''}\n")
    for offered in await turn.session.mcp.tools():
        await turn.say(f"  - `/mcp {offered.server} {offered.name}` {offered.title}\n")
    if not turn.session.mcp.servers:
        await turn.say("This session has no MCP servers.")


@agent.command("history", "Tell what this session remembers")
async def history(turn: Turn) -> None:
    count = turn.session.state["count"] = turn.session.state.get("count", 0) + 1
    broken = " The turn before this one was interrupted." if turn.session.interrupted else ""
    await turn.say(f"You asked {count} time{'' if count == 1 else 's'}.{broken}")


def _first_word(turn: Turn) -> str:
    """Return the first word behind a command. Clients exist that put another prompt behind it (CodeCompanion)."""
    return (turn.text.split() or [""])[0]


async def _number(turn: Turn, example: str, *, default: float) -> float | None:
    """Return the number behind a command; say how to use it and return None if there is something else."""
    word = _first_word(turn)
    try:
        number = float(word) if word else default
    except ValueError:
        number = -1
    if 0 <= number < _MOST:
        return number
    await turn.say(f"{word!r} is not a number that I can use. Example: {example}")
    return None
