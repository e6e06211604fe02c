"""`holdfast chat --print`: one prompt, one answer, in a pipe.

What the agent says goes to stdout as it comes, and nothing else does. Nobody is asked anything.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from holdfast.client import connect
from holdfast.errors import ConnectionLost, ProcessExited, RemoteError, UsageError
from holdfast.model import History
from holdfast.view.blocks import AgentText, Note
from holdfast.view.live import LiveView
from holdfast.view.safe_text import safe_json, safe_text
from holdfast_app.chat.agent_death import has_said_why
from holdfast_app.chat.agent_output import AgentOutput
from holdfast_app.chat.background_jobs import ending_with_agent
from holdfast_app.chat.inspect_wire import observe_wire
from holdfast_app.chat.login import error_text, ways_to_log_in
from holdfast_app.chat.paint import Painter
from holdfast_app.chat.questions import answer_alone, declined_alone, refused_alone
from holdfast_app.chat.session_opening import AUTH_REQUIRED, can_restore, open_session
from holdfast_app.chat.settings import CLIENT_NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, TextIO

    from holdfast.client import ClientSession, Connection, SessionUpdate
    from holdfast.client.services import Questions
    from holdfast.errors import HoldfastError
    from holdfast.model import Elicitation
    from holdfast.view.blocks import Block
    from holdfast_app.chat.settings import ChatSettings, PrintFormat


TIMED_OUT = 3
"""The status where the agent took longer than it was given, as acpx has it."""


class PrintOptions(NamedTuple):
    """How an answer is printed, and how long it may take."""

    format: PrintFormat = "text"
    """``text`` as it comes; ``quiet``: the last message alone, when the turn is over; ``json``: every message of the
    protocol, in both directions, one a line."""
    verbose: bool = False
    seconds: float | None = None
    """How long the agent may take, from its start to the end of the turn."""


async def print_answer(
    settings: ChatSettings, prompt: str, stdout: TextIO, stderr: TextIO, options: PrintOptions
) -> int:
    """Send a prompt and print the answer; return 0 if the turn ended as it should, 3 if it took too long, else 1."""
    output = AgentOutput(lambda block: _print_block(stderr, block))
    output.hold_failures()
    try:
        async with asyncio.timeout(options.seconds):
            reason = await _answer(settings, prompt, stdout, stderr, options, output)
    except RemoteError as e:
        stderr.write(f"holdfast: {safe_text(error_text(e))}\n")
        return 1
    except TimeoutError:
        stderr.write(f"holdfast: the agent was not done after {options.seconds:g} s\n")
        return TIMED_OUT
    except ProcessExited as e:
        if settings.shows_output:  # what it wrote to stderr was shown when it came
            if has_said_why(e):
                return 1
            printed = f"; it wrote to stdout:\n{e.stdout}" if e.stdout else ""
            raise ConnectionLost(f"{e.command} {e.how}{printed}") from None
        raise
    finally:
        output.release_failures()  # behind what the client was told: the last line is the cause
    if reason != "end_turn":
        stderr.write(f"holdfast: the turn did not end as it should: {reason}\n")
    return 0 if reason == "end_turn" else 1


async def _answer(
    settings: ChatSettings, prompt: str, stdout: TextIO, stderr: TextIO, options: PrintOptions, output: AgentOutput
) -> str | None:
    answer = {"text": AnswerPrinter, "quiet": LastMessagePrinter, "json": NothingPrinter}[options.format](stdout)
    details = DetailsPrinter(stderr, settings.cwd) if options.verbose else None
    refused: list[str] = []
    declined: list[Elicitation] = []
    observe = observe_wire(settings, lambda line: stderr.write(f"{safe_text(line)}\n"))
    async with connect(
        *settings.command,
        cwd=settings.process_cwd,
        protocol=settings.protocol,
        permissions=answer_alone(settings.permissions, refused.append),
        questions=_decline_to(declined),
        terminal_logins=True,  # so that we can say how to log in by one
        name=CLIENT_NAME,
        stderr=output.take if settings.shows_output else None,
        on_frame=_frames_to(stdout) if options.format == "json" else observe,
    ) as connection:
        try:
            session = await open_session(connection, settings)
            turn = session.prompt(prompt)
            async for update in turn:
                answer.take(update)
                if details is not None:
                    details.take(update)
        except RemoteError as e:
            raise _with_ways_to_log_in(e, connection, settings) from None
        finally:
            answer.finish()
            if refused:
                stderr.write(f"holdfast: {safe_text(refused_alone(refused, settings.permissions))}\n")
            if declined:
                stderr.write(f"holdfast: {safe_text(declined_alone(declined))}\n")
        if (ending := ending_with_agent(session, settings)) is not None:
            stderr.write(f"holdfast: {safe_text(ending)}\n")
        if details is not None and can_restore(connection):
            stderr.write(f"{settings.resume_command(session.id)}\n")
        return turn.stop_reason


def _decline_to(declined: list[Elicitation]) -> Questions:
    """Return what declines forms, because nobody can be asked, and lists them."""

    async def answer(_session: ClientSession | None, question: Elicitation) -> None:
        declined.append(question)

    return answer


def _with_ways_to_log_in(error: RemoteError, connection: Connection, settings: ChatSettings) -> HoldfastError:
    """Return an error that tells how to log in, if it is that the agent wants it."""
    if error.code != AUTH_REQUIRED or not connection.auth_methods:
        return error
    return UsageError(f"{error_text(error)}\n{ways_to_log_in(connection.auth_methods, settings)}")


def _frames_to(stdout: TextIO) -> Callable[[Literal["in", "out"], bytes], None]:
    """Return what prints every message, harmless to a terminal and the same to a program."""

    def write(_: Literal["in", "out"], line: bytes) -> None:
        with suppress(UnicodeDecodeError):  # no JSON: nothing that a program could read
            stdout.write(f"{safe_json(line.strip())}\n")
            stdout.flush()

    return write


def _print_block(stderr: TextIO, block: Block) -> None:
    """Print what an agent wrote to stderr, as text that cannot steer a terminal."""
    if isinstance(block, Note):
        stderr.writelines(f"{safe_text(text)}\n" for text in (block.text, block.details) if text)
        stderr.flush()


class NothingPrinter:
    """Prints nothing: what there is to print is printed elsewhere."""

    def __init__(self, stdout: TextIO) -> None: ...

    def take(self, update: SessionUpdate) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Do nothing."""


class LastMessagePrinter:
    """Prints the agent's last message, once the turn is over."""

    def __init__(self, stdout: TextIO) -> None:
        self._stdout = stdout
        self._history = History()

    def take(self, update: SessionUpdate) -> None:
        """Remember what an update adds."""
        self._history.apply(update)

    def finish(self) -> None:
        """Print it."""
        said = [entry.text() for entry in self._history if entry.entity == "agent_message" and entry.text()]
        if said:
            self._stdout.write(f"{safe_text(said[-1]).rstrip()}\n")
        self._stdout.flush()


class AnswerPrinter:
    """Prints the agent's messages as they come, as text that cannot steer a terminal."""

    def __init__(self, stdout: TextIO) -> None:
        self._stdout = stdout
        self._message = ""
        self._printed: dict[str, list[str]] = {}
        self._held = ""  # a carriage return that may be half of a line end
        self._at_start = True

    def take(self, update: SessionUpdate) -> None:
        """Print what an update adds to the answer."""
        if update.kind == "agent_message_chunk":
            text = update.text if update.text is not None else _text_in([update.update().get("content")])
            self._print(update.key, text)
        elif update.kind == "agent_message" and "content" in (whole := update.update()):
            before, text = "".join(self._printed.get(update.key, ())), _text_in(whole["content"])
            if not text.startswith(before):  # said again in other words: what was printed stays, the new is a paragraph
                self._break()
                self._printed[update.key] = []
                before = ""
            self._print(update.key, text.removeprefix(before))

    def finish(self) -> None:
        """End the last line."""
        if not self._at_start:
            self._stdout.write("\n")
        self._stdout.flush()

    def _break(self) -> None:
        """Begin a paragraph."""
        self._stdout.write("\n" if self._at_start else "\n\n")

    def _print(self, message: str, text: str) -> None:
        if not text:
            return
        if self._message and message != self._message:
            self._break()
        self._message = message
        self._printed.setdefault(message, []).append(text)
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        if text := safe_text(text.removesuffix("\r")):
            self._stdout.write(text)
            self._stdout.flush()
            self._at_start = text.endswith("\n")


def _text_in(content: Any) -> str:
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    texts: list[str] = []
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case _:
                pass
    return "".join(texts)


class DetailsPrinter:
    """Prints everything but the agent's messages: `--verbose`."""

    def __init__(self, stderr: TextIO, cwd: str) -> None:
        self._stderr = stderr
        self._view = LiveView()
        self._painter = Painter(100, "no", cwd=cwd)

    def take(self, update: SessionUpdate) -> None:
        """Print what is finished now."""
        for block in self._view.feed(update):
            if not isinstance(block, AgentText) or block.thought:
                self._stderr.writelines(f"{line}\n" for line in self._painter.lines(block))
        self._stderr.flush()
