"""`holdfast chat --print`: one prompt, one answer, in a pipe.

What the agent says goes to stdout as it comes, and nothing else does. Nobody is asked anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.chat.opening import open_session, restorable
from holdfast.chat.paint import Painter
from holdfast.client import connect
from holdfast.view.blocks import AgentText
from holdfast.view.live import LiveView
from holdfast.view.safe_text import safe_text

if TYPE_CHECKING:
    from typing import TextIO

    from holdfast.chat.opening import Start
    from holdfast.model import Event


async def print_answer(start: Start, prompt: str, stdout: TextIO, stderr: TextIO, *, verbose: bool) -> int:
    """Say something to the agent and print its answer; 0 where it ended as it should."""
    answer = Answer(stdout)
    notes = Notes(stderr, start.cwd) if verbose else None
    reason: str | None = None
    async with connect(
        *start.command,
        cwd=start.cwd,
        protocol=start.protocol,
        permissions="allow" if start.permissions == "allow" else "deny",
    ) as connection:
        session = await open_session(connection, start)
        turn = session.prompt(prompt)
        try:
            async for event in turn:
                answer.hear(event)
                if notes is not None:
                    notes.hear(event)
        finally:
            answer.finish()
        reason = turn.stop_reason
        if notes is not None and restorable(connection):
            stderr.write(f"{start.coming_back(session.id)}\n")
    if reason != "end_turn":
        stderr.write(f"holdfast: the turn did not end as it should: {reason}\n")
    return 0 if reason == "end_turn" else 1


class Answer:
    """What the agent says, as text without anything that steers."""

    def __init__(self, stdout: TextIO) -> None:
        self._stdout = stdout
        self._message = ""
        self._said: dict[str, list[str]] = {}
        self._held = ""  # a carriage return that may be half of a line end
        self._at_start = True

    def hear(self, event: Event) -> None:
        """Print what an event adds to the answer."""
        if event.kind == "agent_message_chunk":
            self._say(event.key, event.text if event.text is not None else _text([event.update().get("content")]))
        elif event.kind == "agent_message":  # all of it: what of it is new?
            before = "".join(self._said.get(event.key, ()))
            text = _text(event.update().get("content"))
            self._say(event.key, text.removeprefix(before))

    def finish(self) -> None:
        """End the last line."""
        if not self._at_start:
            self._stdout.write("\n")
        self._stdout.flush()

    def _say(self, message: str, text: str) -> None:
        if not text:
            return
        if self._message and message != self._message:
            self._stdout.write("\n" if self._at_start else "\n\n")
        self._message = message
        self._said.setdefault(message, []).append(text)
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        if text := safe_text(text.removesuffix("\r")):
            self._stdout.write(text)
            self._stdout.flush()
            self._at_start = text.endswith("\n")


def _text(content: Any) -> str:
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    texts: list[str] = []
    for it in blocks:
        match it:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case _:
                pass
    return "".join(texts)


class Notes:
    """Everything else that happens, for whoever wants to see it."""

    def __init__(self, stderr: TextIO, cwd: str) -> None:
        self._stderr = stderr
        self._view = LiveView()
        self._painter = Painter(100, "no", cwd=cwd)

    def hear(self, event: Event) -> None:
        """Print what has finished, but for what is said."""
        for block in self._view.feed(event):
            if not isinstance(block, AgentText) or block.thought:
                self._stderr.writelines(f"{it}\n" for it in self._painter.lines(block))
        self._stderr.flush()
