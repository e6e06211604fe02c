"""Puts a conversation on whatever there is: a terminal, a terminal that can do nothing, a pipe."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from traceback import format_exception
from typing import TYPE_CHECKING

from holdfast.chat.lines import Lines
from holdfast.chat.printing import print_answer
from holdfast.chat.talk import Talk
from holdfast.errors import UsageError
from holdfast.store.choice import default_path
from holdfast.view.blocks import AgentContent, Note
from holdfast.view.entries import Part
from holdfast.view.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType

    from prompt_toolkit.history import History

    from holdfast.chat.opening import Start
    from holdfast.chat.terminal import Terminal

HISTORY_BYTES = 1 << 20
"""So much of what was typed is remembered for the Up key."""
UNLIMITED = 1 << 20
"""The width of a pipe: its lines are not broken."""


def run_chat(start: Start, prompt: str | None, remark: str, *, prints: bool, verbose: bool) -> int:
    """Talk, or print one answer; give the status to exit with."""
    gc.freeze()
    gc.enable()  # what was loaded stays, what comes does not
    sys.excepthook = _mistake
    logging.getLogger().addHandler(logging.NullHandler())  # what is logged must not get in between
    for it in (sys.stdout, sys.stderr):
        if isinstance(it, TextIOWrapper):
            it.reconfigure(errors="replace")
    if prints:
        said = sys.stdin.read() if prompt is None else prompt
        if not said.strip():
            raise UsageError("there is nothing to say: give --prompt TEXT, or write to stdin")
        try:
            return asyncio.run(print_answer(start, said.rstrip("\n"), sys.stdout, sys.stderr, verbose=verbose))
        except BrokenPipeError:  # nobody reads the answer any more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except KeyboardInterrupt:
            return 1
    return asyncio.run(_converse(start, prompt, remark))


async def _converse(start: Start, prompt: str | None, remark: str) -> int:
    talk = Talk(start, prompt)
    screen = _screen(talk, start.cwd)
    with _signals(screen):
        async with screen.opened():
            if remark:
                screen.show(Note(remark))
            status = await talk.run(screen)
            if back := talk.coming_back():
                screen.show(Note("To go on with this session:"), AgentContent(Part("code", back)))
    return status


def _mistake(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
    """Tell of a mistake of ours as Python does, but for what could steer the terminal: it may quote an agent."""
    sys.stderr.write(safe_text("".join(format_exception(kind, value, trace))))


def _screen(talk: Talk, cwd: str) -> Terminal | Lines:
    stdin, stdout = sys.stdin, sys.stdout
    unicode = "utf" in (stdout.encoding or "").lower()
    terminal = stdin.isatty() and stdout.isatty()
    if not terminal or os.environ.get("TERM", "dumb") == "dumb" or sys.platform == "win32":
        width = os.get_terminal_size().columns if stdout.isatty() else UNLIMITED
        return Lines(talk, stdin.fileno(), stdout, terminal=terminal, width=width, unicode=unicode, cwd=cwd)
    from holdfast.chat.terminal import Terminal  # noqa: PLC0415  (a pipe needs none of it)

    colours = "mono" if os.environ.get("NO_COLOR") else "yes"
    return Terminal(talk, stdout, colours=colours, unicode=unicode, cwd=cwd, history=_history())


def _history() -> History | None:
    """Find what was typed before; nobody else may read it."""
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415

    path = Path(default_path()).parent / "chat-history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > HISTORY_BYTES:
            kept = path.read_bytes()[-HISTORY_BYTES // 2 :]
            path.write_bytes(kept[kept.find(b"\n\n") + 1 :])
        path.touch(mode=0o600)
    except OSError:
        return None
    return FileHistory(path)


@contextmanager
def _signals(screen: Terminal | Lines) -> Generator[None]:
    """Leave when told to; in a pipe, and in a terminal that tells us of no keys, Ctrl-C is a signal too."""
    loop = asyncio.get_running_loop()
    actions: dict[str, Callable[[], None]] = {"SIGTERM": screen.leave, "SIGHUP": screen.leave}
    if isinstance(screen, Lines):
        actions["SIGINT"] = screen.interrupt
    taken: list[int] = []
    for name, action in actions.items():
        if (number := getattr(signal, name, None)) is not None:
            with suppress(NotImplementedError, RuntimeError):
                loop.add_signal_handler(number, action)
                taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
