"""`!command`: a command of the user's, run here and not by the agent; its output can go along with the next prompt."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import NamedTuple

from holdfast.subprocesses import start
from holdfast.view.blocks import Call
from holdfast.view.entries import Part, shown_status
from holdfast.view.safe_text import terminal_text

MOST_OUTPUT = 1 << 20
"""Of longer output the beginning is left out."""
MOST_SENT = 20_000
"""So many characters of the output are sent to the agent, the last ones."""


class ShellResult(NamedTuple):
    """How a command went."""

    command: str
    output: str
    """What it printed, as a terminal would show it in the end."""
    status: int

    def as_prompt(self) -> str:
        """Return it as it is told to an agent."""
        output = self.output[-MOST_SENT:].strip("\n")
        cut = "…\n" if len(self.output) > MOST_SENT else ""
        fence = "`" * max(3, _longest_run(output) + 1)
        return f"I ran `{self.command}`. It exited with status {self.status}:\n{fence}\n{cut}{output}\n{fence}"


async def run_shell(command: str, cwd: str, otherwise: str) -> ShellResult:
    """Run a command in the user's shell until it ends; one that is cancelled is killed, and all it has started.

    It runs in `cwd`, or `otherwise` where that is a directory of another machine.
    """
    shell = os.environ.get("SHELL") or "/bin/sh"
    there = cwd if Path(cwd).is_dir() else otherwise  # noqa: ASYNC240  (one look)
    child = start((shell, "-c", command), cwd=there, stdin=False, stderr=False)
    loop = asyncio.get_running_loop()
    pieces: list[bytes] = []

    def read() -> int:
        size = 0
        while piece := os.read(child.stdout, 1 << 16):
            pieces.append(piece)
            size += len(piece)
            while size > 2 * MOST_OUTPUT and len(pieces) > 1:
                size -= len(pieces.pop(0))
        return size

    reading = loop.run_in_executor(None, read)
    try:
        await asyncio.shield(reading)
    finally:
        child.kill()
        await child.wait()
        await asyncio.wait([reading])
        os.close(child.stdout)
    return ShellResult(command, terminal_text(b"".join(pieces)[-MOST_OUTPUT:]), child.returncode or 0)


def shell_block(result: ShellResult) -> Call:
    """Return a command and what it printed, to be shown."""
    ended = "" if result.status == 0 else f"exit status {result.status}"
    parts = (Part("code", result.output),) if result.output.strip("\n") else ()
    return Call(f"! {result.command}", "execute", shown_status("completed", ended), parts=parts, exit_status=ended)


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
