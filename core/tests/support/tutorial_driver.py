"""Goes through docs/tutorial.md as its reader does, with the Holdfast that this Python has: `interop/test_wheel.py`.

    python tutorial_driver.py docs/tutorial.md DIRECTORY

Every agent of the page is put into `todo.py` and started by the installed `holdfast run`; every transcript is compared.
Then the test of the page is run by pytest, and the agent is put into an editor's settings and started from there.
"""

# ruff: noqa: T201  (its own program)

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import holdfast
from holdfast.model import Permission  # noqa: TC001

BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
ASKED = re.compile(r"\? .* → (.*)")
COMMAND = str(Path(sys.executable).parent / "holdfast")


async def talk(command: tuple[str, ...], transcript: str) -> None:
    """Start an agent as an editor does, and have the conversation of the page with it."""
    answers = [match[1] for match in map(ASKED.fullmatch, transcript.splitlines()) if match]

    async def answer(_: holdfast.ClientSession, question: Permission) -> str | None:
        wanted = answers.pop(0)
        return next((option.id for option in question.options if wanted in (option.id, option.kind)), None)

    prompts = [line[2:] for line in transcript.splitlines() if line.startswith("> ")]
    async with holdfast.connect(*command, permissions=answer) as agent:
        session = await agent.new_session(cwd=Path.cwd())
        said = [await session.ask_text(prompt) for prompt in prompts]
    wanted = [part.strip() for part in re.split(r"^> .*$", transcript, flags=re.MULTILINE)[1:]]
    for text, shown in zip(said, wanted, strict=True):
        assert text in shown, f"{text!r} is not what the page says: {shown!r}"
        assert text, "nothing was said"
    assert not answers, f"nobody was asked for {answers}"


def main() -> None:
    """Go from the first line of the page to the last."""
    page, directory = Path(sys.argv[1]).read_text(), Path(sys.argv[2])
    os.chdir(directory)
    blocks = [(match[1], match[2]) for match in BLOCK.finditer(page)]
    agents = 0
    for (language, text), (behind, transcript) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language != "python":
            continue
        if "from todo import agent" in text:
            Path("test_todo.py").write_text(text)
            subprocess.run([sys.executable, "-m", "pytest", "-q", "test_todo.py"], check=True)
            continue
        assert behind == "text", "an agent without a conversation"
        Path("todo.txt").unlink(missing_ok=True)
        Path("todo.py").write_text(text)
        asyncio.run(talk((COMMAND, "run", "todo.py"), transcript))
        agents += 1
    subprocess.run([COMMAND, "setup", "zed", "todo.py", "--yes"], check=True)
    settings = json.loads((Path.home() / ".config" / "zed" / "settings.json").read_text())
    entry = settings["agent_servers"]["todo"]
    asyncio.run(talk((entry["command"], *entry["args"]), "> hello\nWho are you? Try /me\n"))
    listed = subprocess.run([COMMAND, "sessions"], check=True, capture_output=True, text=True)
    assert "hello" in listed.stdout, listed.stdout
    print(f"{agents} agents, a test and an editor's settings: {holdfast.__file__}")


if __name__ == "__main__":
    main()
