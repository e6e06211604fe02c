"""A program that has the user's terminal for a while, and what it said last.

It reads and writes the terminal itself. Only what it writes to stderr goes through our hands, by a terminal of its own,
so that a program that looks finds one there.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import NamedTuple

from holdfast.view.safe_text import terminal_text

KEPT_BYTES = 4 << 10
"""So much of what it writes to stderr is kept, the last."""


class ProgramEnd(NamedTuple):
    """How a program ended: its status, and the last line that it wrote to stderr."""

    status: int
    last_line: str


async def run_in_terminal(command: tuple[str, ...], cwd: str, env: dict[str, str]) -> ProgramEnd:
    """Run a program until it ends. What it writes to stderr is on the screen at once, and its end is remembered."""
    if sys.platform == "win32":  # there are no such terminals: nothing is remembered
        process = await asyncio.create_subprocess_exec(*command, cwd=cwd, env=env)
        return ProgramEnd(await process.wait(), "")
    import termios  # noqa: PLC0415  (not everywhere)

    ours, theirs = os.openpty()
    written = bytearray()
    loop = asyncio.get_running_loop()
    try:
        with suppress(OSError, termios.error):
            termios.tcsetwinsize(theirs, termios.tcgetwinsize(sys.stdout.fileno()))
        with suppress(OSError, termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)  # what was typed before is no answer to the program
        os.set_blocking(ours, False)
        try:
            process = await asyncio.create_subprocess_exec(*command, cwd=cwd, env=env, stderr=theirs)
        finally:
            os.close(theirs)
        loop.add_reader(ours, _pass_on, loop, ours, written)
        status = await process.wait()
        while _pass_on(loop, ours, written):
            pass
    finally:
        loop.remove_reader(ours)
        os.close(ours)
    return ProgramEnd(status, _last_line(bytes(written)))


def _pass_on(loop: asyncio.AbstractEventLoop, source: int, written: bytearray) -> bool:
    """Write what there is to the terminal, and keep the end of it; return whether there was anything."""
    try:
        piece = os.read(source, 1 << 16)
    except BlockingIOError:
        return False
    except OSError:  # nobody has the other end any more
        piece = b""
    if not piece:
        loop.remove_reader(source)
        return False
    with suppress(OSError):
        os.write(sys.stderr.fileno(), piece)
    written += piece
    del written[:-KEPT_BYTES]
    return True


def _last_line(written: bytes) -> str:
    lines = [line.strip() for line in terminal_text(written).split("\n")]
    return next((line for line in reversed(lines) if line), "")
