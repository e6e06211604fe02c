"""`run_chat`: a conversation on whatever there is, a terminal, a terminal that can do nothing, or a pipe."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from traceback import format_exception
from typing import TYPE_CHECKING

from holdfast.errors import UsageError
from holdfast.store.address import default_address, directory_beside
from holdfast.view.blocks import AgentContent, Note
from holdfast.view.entries import Part
from holdfast.view.safe_text import safe_text
from holdfast_app.chat.conversation import Conversation
from holdfast_app.chat.line_screen import LineScreen
from holdfast_app.chat.print_answer import print_answer
from holdfast_app.chat.theme import choose_theme

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType

    from prompt_toolkit.history import History

    from holdfast_app.chat.print_answer import PrintOptions
    from holdfast_app.chat.settings import ChatSettings
    from holdfast_app.chat.terminal_screen import TerminalScreen

HISTORY_BYTES = 1 << 20
"""So many bytes of what was typed are remembered for the Up key."""
INTERRUPTED = 130
"""The status after Ctrl-C, as in a shell."""
UNLIMITED = 1 << 20
"""The width of a pipe: its lines are not broken."""


def run_chat(settings: ChatSettings, prompt: str | None, remark: str, prints: PrintOptions | None) -> int:
    """Run a chat, or print one answer; return the status to exit with."""
    gc.freeze()
    gc.enable()  # what was loaded stays, what comes does not
    sys.excepthook = _print_safely
    logging.getLogger().addHandler(logging.NullHandler())  # what is logged must not get in between
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    if prints is not None:
        text = sys.stdin.read() if prompt is None else prompt
        if not text.strip():
            raise UsageError("there is nothing to say: give --prompt TEXT, or write to stdin")
        try:
            return asyncio.run(print_answer(settings, text.rstrip("\n"), sys.stdout, sys.stderr, prints))
        except BrokenPipeError:  # nobody reads the answer any more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except KeyboardInterrupt:
            return INTERRUPTED
    return asyncio.run(_run_conversation(settings, prompt, remark))


async def _run_conversation(settings: ChatSettings, prompt: str | None, remark: str) -> int:
    conversation = Conversation(settings, prompt)
    screen = _choose_screen(conversation, settings.cwd)
    with _signals(screen):
        async with screen.opened():
            if remark:
                screen.show(Note(remark))
            status = await conversation.run(screen)
            if command := conversation.resume_command():
                screen.show(Note("To go on with this session:"), AgentContent(Part("code", command)))
    return status


def _print_safely(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback without what could steer the terminal: it may quote an agent."""
    sys.stderr.write(safe_text("".join(format_exception(kind, value, trace))))


def _choose_screen(conversation: Conversation, cwd: str) -> TerminalScreen | LineScreen:
    stdin, stdout = sys.stdin, sys.stdout
    unicode = "utf" in (stdout.encoding or "").lower()
    terminal = stdin.isatty() and stdout.isatty()
    if not terminal or os.environ.get("TERM", "dumb") == "dumb" or sys.platform == "win32":
        width = os.get_terminal_size().columns if stdout.isatty() else UNLIMITED
        fd = stdin.fileno()
        return LineScreen(conversation, fd, stdout, terminal=terminal, width=width, unicode=unicode, cwd=cwd)
    from holdfast_app.chat.terminal_screen import TerminalScreen  # noqa: PLC0415  (a pipe needs no terminal)

    colours = "mono" if os.environ.get("NO_COLOR") else "yes"
    theme = choose_theme(conversation.settings.theme, stdin.fileno(), stdout.fileno()) if colours == "yes" else "dark"
    return TerminalScreen(
        conversation, stdout, colours=colours, unicode=unicode, cwd=cwd, history=_typed_before(), theme=theme
    )


def _typed_before() -> History | None:
    """Open the file of what was typed before, which nobody else may read; return None if there can be none."""
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415

    path = directory_beside(default_address()) / "chat-history"
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
def _signals(screen: TerminalScreen | LineScreen) -> Generator[None]:
    """Leave at SIGTERM and SIGHUP; in a pipe, and in a terminal that sends us no keys, Ctrl-C is a signal too."""
    loop = asyncio.get_running_loop()
    actions: dict[str, Callable[[], None]] = {"SIGTERM": screen.leave, "SIGHUP": screen.leave}
    if isinstance(screen, LineScreen):
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
