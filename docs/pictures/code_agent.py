# ruff: noqa: T201
"""Draws `code-agent.svg`: a real run of `holdfast run code`, as a client of the protocol saw it.

    python docs/pictures/code_agent.py

The agent is started as an editor starts it and does what it does; only its model is a script (a provider of ours on
loopback), so that the picture is the same each time.
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.acp import conversation, running  # noqa: E402
from tests.support.model_server import ModelServer, Say, calls  # noqa: E402

if TYPE_CHECKING:
    from tests.support.acp import Client

PROMPT = "The test fails. Why? Please fix it."
MEAN = "def mean(values):\n    return sum(values) / (len(values) - 1)\n"
TEST = "from stats import mean\n\nassert mean([1, 2, 3]) == 2, mean([1, 2, 3])\nprint('all is well')\n"
SCRIPT = [
    calls(("read", {"path": "stats.py"}), ("read", {"path": "test_stats.py"}), text="Let me look at both files."),
    calls(
        ("edit", {"path": "stats.py", "old": "(len(values) - 1)", "new": "len(values)"}),
        ("run", {"command": "python3 test_stats.py"}),
        text="The mean is divided by one too few.",
    ),
    Say("`mean` divided by `len(values) - 1`, which is for a sample's variance. I fixed it, and the test passes now."),
]


async def play(client: Client, directory: Path) -> list[dict[str, Any]]:
    """Let the agent work, allow what it asks for, and give all that was shown."""
    asked: set[str] = set()

    def allow(params: dict[str, Any]) -> dict[str, Any]:
        asked.add(params["subject"]["toolCall"]["toolCallId"])
        return {"outcome": {"outcome": "selected", "optionId": "allow_once"}}

    client.answers["session/request_permission"] = allow
    await client.prompt(await client.new(str(directory)), PROMPT)
    return [{**it, "asked": it.get("toolCallId") in asked} for it in conversation(client.updates())]


def draw(console: Console, entries: list[dict[str, Any]], directory: Path) -> None:
    """Print a conversation for people."""
    terminals = {it["terminalId"]: it for it in entries if it["sessionUpdate"] == "terminal_update"}
    for it in entries:
        match it["sessionUpdate"]:
            case "user_message":
                console.print(Text(f"> {it['content'][0]['text']}\n", style="bold cyan"))
            case "agent_message":
                console.print(Text(f"\n{it['content'][0]['text']}\n"))
            case "tool_call_update":
                question = Text("  asked: allowed once", style="yellow") if it["asked"] else Text("")
                sign = Text("✔ ", style="green") if it["status"] == "completed" else Text("✘ ", style="red")
                console.print(sign + Text(it["title"], style="bold") + question)
                for part in it.get("content", ()):
                    draw_content(console, part, terminals, directory)
            case _:
                pass


def draw_content(console: Console, part: dict[str, Any], terminals: dict[str, dict[str, Any]], directory: Path) -> None:
    """Print what a tool call shows: a diff, or what a terminal printed."""
    if part["type"] == "diff":
        patch = part["patch"]["text"].replace(str(directory).lstrip("/") + "/", "")
        lines = patch.splitlines()[1:]
        console.print(Syntax("\n".join(lines), "diff", theme="ansi_dark", background_color="default", padding=(0, 4)))
    elif part["type"] == "terminal":
        output = b64decode(terminals[part["terminalId"]]["output"]["data"]).decode()
        console.print(Text("".join(f"    {line}\n" for line in output.splitlines()).rstrip("\n"), style="dim"))


async def main() -> None:
    """Run the agent and draw what it did."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place, "project")
        await asyncio.to_thread(directory.mkdir)
        for name, text in {"stats.py": MEAN, "test_stats.py": TEST}.items():
            await asyncio.to_thread((directory / name).write_text, text)
        async with ModelServer(SCRIPT) as server:
            arguments = ("code", "--model", "scripted", "--base-url", server.url)
            async with running(Path(place, "s.db"), *arguments, version=2) as client:
                entries = await play(client, directory)
        console = Console(record=True, width=84, file=io.StringIO(), force_terminal=True)
        draw(console, entries, directory)
    picture = Path(__file__).with_name("code-agent.svg")
    drawn = console.export_svg(title="holdfast run code", unique_id="holdfast")
    drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)  # who looks at it need not fetch a font
    await asyncio.to_thread(picture.write_text, drawn)
    print(f"drawn: {picture.name}")


if __name__ == "__main__":
    asyncio.run(main())
