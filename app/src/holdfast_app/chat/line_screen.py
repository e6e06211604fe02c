"""A conversation without a terminal's abilities: lines in, lines out, no colours, nothing drawn twice.

This is what a pipe gets, and a terminal that can do nothing (`TERM=dumb`). Questions are put to a terminal only: what
comes out of a pipe was written before anybody could know what it would answer.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from holdfast.transport.descriptors import open_input
from holdfast.view.safe_text import safe_line, safe_text
from holdfast_app.chat.paint import Painter, needs_blank_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from typing import TextIO

    from holdfast.view.blocks import Block
    from holdfast_app.chat.program_in_terminal import ProgramEnd
    from holdfast_app.chat.screen import KeyQuestion, LineQuestion, ListQuestion, ScreenDelegate


class LineScreen:
    """A `Screen` that reads lines and prints lines."""

    def __init__(
        self,
        delegate: ScreenDelegate,
        stdin: int,
        stdout: TextIO,
        *,
        terminal: bool,
        width: int,
        unicode: bool,
        cwd: str,
    ) -> None:
        self.interactive = terminal
        self.left: asyncio.Event = asyncio.Event()
        self._delegate = delegate
        self._stdin = stdin
        self._stdout = stdout
        self._painter = Painter(width, "no", unicode, cwd)
        self._before: Block | None = None
        self._partial = b""
        self._lines: deque[str] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._interrupts = 0
        self._asking = asyncio.Lock()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Read lines while the block runs."""
        reader = open_input(os.dup(self._stdin), self._received)
        reader.resume()
        try:
            yield
        finally:
            reader.close()

    def show(self, *blocks: Block) -> None:
        """Print blocks."""
        for block in blocks:
            if self._before is not None and needs_blank_line(self._before, block):
                self._stdout.write("\n")
            self._before = block
            self._stdout.writelines(f"{line}\n" for line in self._painter.lines(block))
        self._stdout.flush()

    def changed(self) -> None:
        """Do nothing: what may change is not shown."""

    async def read(self) -> str | None:
        """Wait for a line that says something."""
        self._prompt()
        while True:
            while self._lines:
                line = self._lines.popleft()
                if line.strip():
                    self._interrupts = 0
                    return line
                self._prompt()
            if self._ended or self.left.is_set():
                return None
            self._news.clear()
            await self._news.wait()

    def take_back(self) -> None:
        """Forget lines that were not read yet."""
        if self.interactive:
            self._lines.clear()

    async def ask_key(self, question: KeyQuestion) -> str | None:
        """Ask for one of the keys, and a line end."""
        if not self.interactive:
            return question.default
        async with self._asking:
            listed = [f"  [{choice.key}] {safe_line(choice.label)}" for choice in question.choices]
            values = {choice.key: choice.value for choice in question.choices}
            while True:
                line = await self._answer("\n".join((safe_line(question.text), *listed)))
                if line is None or line.strip() in ("", "\x1b"):
                    return question.default
                if line.strip() in values or question.default is not None:
                    return values.get(line.strip(), question.default)

    async def ask_line(self, question: LineQuestion) -> str | None:
        """Ask for a line, again while something is wrong with it."""
        if not self.interactive:
            return None
        async with self._asking:
            wrong = ""
            while True:
                line = await self._answer(f"{safe_line(question.label)} ({safe_line(wrong or question.hint)})")
                if line is None or line.strip() == "\x1b":
                    return None
                wrong = question.check(line)
                if not wrong:
                    return line

    async def ask_item(self, question: ListQuestion) -> str | None:
        """Ask for the number of an item."""
        if not self.interactive:
            return None
        async with self._asking:
            listed = [f"  {number}. {safe_line(label)}" for number, (label, _) in enumerate(question.items, 1)]
            line = await self._answer("\n".join((safe_line(question.text), *listed)))
            number = int(line) if line is not None and line.strip().isdecimal() else 0
            return question.items[number - 1][1] if 0 < number <= len(question.items) else None

    def send(self, text: str) -> None:
        """Take a text as if it had been typed."""
        self._lines.append(text)
        self._news.set()

    def edit(self, text: str) -> None:
        """Print a text: a line cannot be filled in here."""
        self._stdout.write(f"{safe_text(text)}\n")
        self._stdout.flush()

    async def run_elsewhere(self, command: tuple[str, ...], cwd: str, env: dict[str, str]) -> ProgramEnd | None:
        """Do nothing: who reads lines has no terminal to give."""
        del command, cwd, env
        return None

    def leave(self) -> None:
        """Read nothing more."""
        self.left.set()
        self._news.set()

    def interrupt(self) -> None:
        """Stop what is being done; the second time in a row, leave."""
        if self._interrupts or not self._delegate.interrupt():
            self.leave()
        self._interrupts += 1

    async def _answer(self, question: str) -> str | None:
        """Print a question; return the first line that is typed after it. Earlier lines stay prompts."""
        before = self._lines
        self._lines = deque()
        self._stdout.write(f"{question}\n? ")
        self._stdout.flush()
        try:
            while not self._lines:
                if self._ended or self.left.is_set():
                    return None
                self._news.clear()
                await self._news.wait()
            return self._lines.popleft()
        finally:
            self._lines.extendleft(reversed(before))

    def _prompt(self) -> None:
        if self.interactive:
            self._stdout.write("\n> ")
            self._stdout.flush()

    def _received(self, chunk: bytes) -> None:
        self._ended |= not chunk
        *lines, self._partial = (self._partial + chunk).split(b"\n")
        if self._ended and self._partial:
            lines.append(self._partial)
        self._lines += (line.decode(errors="replace").rstrip("\r") for line in lines)
        self._news.set()
