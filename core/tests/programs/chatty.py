"""An agent that does to a chat what chats suffer: long answers, hostile text, slow tools, death."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys

from holdfast import Agent, Turn

EVIL = (
    "\x1b]52;c;ZXZpbA==\x07"  # the clipboard
    "\x1b]0;owned\x07"  # the title
    "\x1b[2J\x1b[H\x1b[10A"  # the cursor
    "\x1b[?1049h"  # another screen
    "\x1bP$q\"p\x1b\\\x1b_x\x1b\\"  # strings for devices
    "\x1b[6n\x1b[c"  # questions to the terminal, whose answers would be typed
    "\x9b31m\x9d0;owned\x9c"  # the same without ESC
    "\u202eesrever\u2066"  # the direction of text
    "safe\rHIDDEN\x08\x08"
)  # fmt: skip

agent = Agent(f"chatty{EVIL}", title=f"Chatty{EVIL}", version="1", accepts=("image", "resource"))
agent.modes({"one": f"First{EVIL}", "two": "Second"}, default="one")


@agent.prompt
async def answer(turn: Turn) -> None:
    await turn.say(f"You said: {turn.text}")


@agent.command("blocks", "Say what the prompt was made of")
async def blocks(turn: Turn) -> None:
    found: list[str] = []
    for block in turn.prompt[1:]:
        match block:
            case {"type": "text", "text": str(text)}:
                found.append(f"text {json.dumps(text)}")
            case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
                found.append(f"resource {uri.rpartition('/')[2]} {json.dumps(text)}")
            case {"type": "resource_link", "name": str(name)}:
                found.append(f"resource_link {name}")
            case {"type": "image", "mimeType": str(kind), "data": str(data)}:
                found.append(f"image {kind} {len(base64.b64decode(data))}")
            case _:
                found.append(str(block))
    text = turn.text.partition("\nI ran ")[0]
    async with turn.tool(f"said {json.dumps(text)}") as call:
        await call.text("\n".join([json.dumps(text), ", ".join(found)]))


@agent.command("die-later", "Exit after N seconds", hint="N")
async def die_later(turn: Turn) -> None:
    asyncio.get_running_loop().call_later(float(turn.text), os._exit, 7)
    await turn.say("soon")


@agent.command("lines", "Say N lines", hint="N")
async def lines(turn: Turn) -> None:
    for n in range(int(turn.text)):
        await turn.say(f"line {n}\n")
    await turn.say("\nall said")


@agent.command("slowly", "Say N numbered words, with time to change something in between", hint="N")
async def slowly(turn: Turn) -> None:
    for n in range(int(turn.text)):
        await turn.say(f"w{n} " if n % 10 else f"w{n}\n\n")
        await asyncio.sleep(0.01)
    await turn.say("all said")


@agent.command("evil", f"Be hostile{EVIL}")
async def evil(turn: Turn) -> None:
    await turn.session.rename(f"title{EVIL}")
    await turn.think(f"thought{EVIL}")
    await turn.say(f"text{EVIL} &#27;[31m &#x202e;x [link](http://a{EVIL})\n\n```sh{EVIL}\ncode{EVIL}\n```\n")
    async with turn.tool(f"tool{EVIL}", locations=[f"place{EVIL}"]) as call:
        await call.text(f"content{EVIL}")
        await call.diff(f"file{EVIL}", "a\n", f"diff{EVIL}\n")
        await turn.allow(f"question{EVIL}", call)
    async with turn.tool("in a terminal") as call:
        await call.terminal(sys.executable, "-c", f"print({EVIL + 'printed'!r})")
    await turn.plan([f"step{EVIL}"])
    await turn.notice(f"notice{EVIL}", f"about{EVIL}", severity="warning")
    await turn.ask(f"form{EVIL}", {f"field{EVIL}": {"type": "string", "title": f"label{EVIL}"}})
    await turn.say("still here")


@agent.command("wide", "Say what is not one column wide")
async def wide(turn: Turn) -> None:
    await turn.say("日本語の文字は二桁の幅があります。" * 4)
    await turn.say(
        "\n\n👩‍👩‍👧 family, e\u0301 composed, مرحبا, ไทย\n\n| 名前 | n |\n|---|---|\n| 東京 | 1 |\n| x | 22 |\n"
    )


@agent.command("nap", "Use a tool that takes for ever")
async def nap(turn: Turn) -> None:
    async with turn.tool("Nap", kind="execute"):
        await turn.say("Good night. ")
        await asyncio.sleep(3600)


@agent.command("until", "Work until there is a file", hint="FILE")
async def until(turn: Turn) -> None:
    while not os.path.exists(turn.text):  # noqa: ASYNC110, ASYNC240, PTH110  (whoever talks to it makes it)
        await asyncio.sleep(0.01)


@agent.command("exit", "Run a command that prints a long line and exits with a status", hint="STATUS")
async def exit_with(turn: Turn) -> None:
    async with turn.tool("Run a command", kind="execute") as call:
        script = f"print('a' * 150 + 'END'); raise SystemExit({int(turn.text)})"
        await call.terminal(sys.executable, "-c", script)
    await turn.say("ran")


@agent.command("risk", "Ask a question whose end matters")
async def risk(turn: Turn) -> None:
    harmless = "echo " + "harmless " * 60
    async with turn.tool(f"Run {harmless}; touch HIDDEN1", kind="execute") as call:
        allowed = await turn.allow(f"May I run {harmless}; touch HIDDEN2 ?", call)
    await turn.say(f"allowed: {allowed}")


@agent.command("disguise", "Ask about a command that hides in what stands around it")
async def disguise(turn: Turn) -> None:
    words = " ".join(f"w{n}" for n in range(1_000))
    command = f"echo {words}\r\n\n\n# \u202etxt.\u2066 \x1b[8m\x1b[2K\x1b[1A ls \u200b\n{' ' * 500}touch HIDDEN"
    async with turn.tool(f"Run {command}", kind="execute", input={"command": command}) as call:
        await call.text(command)
        allowed = await turn.allow("May I run that?", call)
    await turn.say(f"allowed: {allowed}")


@agent.command("die", "Die")
async def die(turn: Turn) -> None:
    await turn.say("These are my ")
    await asyncio.sleep(0)
    sys.stderr.write(f"last words{EVIL}\n")
    sys.stderr.flush()
    await asyncio.sleep(0.05)
    os._exit(3)


agent.command("bad\x1b[2J\u202e", "A name that is no word")(answer)


@agent.command("visit", "Ask for permission to run a command, then to visit an address")
async def visit(turn: Turn) -> None:
    await turn.allow("Run this first?", command="make clean; touch HIDDEN3", description="The build is stale.")
    await turn.ask_url("Log in there", "https://example.org/login", id="login")
    await turn.complete_url("login")
    await turn.say("you have been there")
