"""`holdfast demo`: what Holdfast is for. An agent is killed in the middle of an answer, and nothing is lost.

The agent is the real one (`holdfast run demo`), the processes are real, and the kill is SIGKILL. All happens in a
directory that is removed afterwards.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from holdfast.client import ClientSession, Connection

WORDS = 400
"""So many words the first client has received when its agent is killed."""
SHOWN = 14

START = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); os.execv(sys.executable, sys.argv[2:])"
"""Writes down its process id and becomes the agent, so that the demo can kill it."""


@click.command("demo", short_help="See an agent killed in mid-answer, and nothing lost")
@click.option("--fast", is_flag=True, help="Do not wait for anybody to read.")
def demo(*, fast: bool) -> int:
    """See in ten seconds what Holdfast is for.

    An agent is killed in the middle of an answer. A second process goes on with the session, and a second client sees
    it: every word that was shown is there.
    """
    if sys.platform == "win32":
        click.echo("The demo kills a process as Linux and macOS do; there is none for Windows.")
        return 1
    # The kill may cut the agent's last line in two; the story tells of the kill, and nobody need hear of the line.
    logging.getLogger("holdfast.client").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as place:
        return asyncio.run(_Story(Path(place), 0.0 if fast else 1.0).tell())


_KILL: int = getattr(signal, "SIGKILL", signal.SIGTERM)
"""There is no signal that cannot be caught on Windows; a process is ended there by any."""


class _Story:
    """Three processes and two clients, one store."""

    def __init__(self, place: Path, pace: float) -> None:
        self._place = place
        self._pace = pace
        self._started = 0

    async def tell(self) -> int:
        """Tell it all; return 0 if nothing was lost."""
        session_id, received = await self._first_chapter()
        async with self._connect("editor A, started again") as again:
            kept = await self._second_chapter(again, session_id, received)
            async with self._connect("editor B") as other:
                seen = await self._third_chapter(other, session_id, kept)
        whole = kept.startswith(received) and seen == kept
        self._say("")
        self._say("Nothing was lost." if whole else "SOMETHING IS MISSING", "good" if whole else "bad")
        self._say("Now with your own agent: holdfast chat my.py · with any other: holdfast wrap -- COMMAND", "dim")
        return 0 if whole else 1

    async def _first_chapter(self) -> tuple[str, str]:
        self._heading("1  An editor talks to an agent.")
        received = ""
        session_id = ""
        with suppress(Exception):  # the agent dies on purpose: whatever the client makes of that
            async with self._connect("editor A") as agent:
                session = await agent.new_session(self._place)
                session_id = session.id
                self._you("How do I hold fast?")
                self._agent(await session.ask_text("How do I hold fast?"))
                self._you("Count to 100,000.")
                async for update in session.prompt("/stream 100000"):
                    if update.kind == "agent_message_chunk" and update.text:
                        received = self._stream(received, update.text)
                    if len(received.split()) == WORDS:
                        self._say("")
                        os.kill(int((self._place / "pid-1").read_text()), _KILL)
                        await self._pause()
        self._say(f"         kill -9, in mid-answer. The editor had received {len(received.split())} words.", "bad")
        await self._pause()
        return session_id, received

    async def _second_chapter(self, agent: Connection, session_id: str, received: str) -> str:
        self._heading("2  A new process loads the session.")
        session = await agent.load(session_id, self._place)
        kept = _last_answer(session)
        whole = "all that was received among them" if kept.startswith(received) else "AND SOME ARE MISSING"
        self._say(f"         The answer has {len(kept.split())} words, {whole}.", "good")
        self._say("         The broken turn has an end, and nothing was run again by itself.", "dim")
        self._you("Go on.")
        self._agent(await session.ask_text("Go on."))
        await self._pause()
        return kept

    async def _third_chapter(self, agent: Connection, session_id: str, kept: str) -> str:
        self._heading("3  Another editor opens the same session.")
        session = await agent.load(session_id, self._place)
        answers = [entry.text() for entry in session.history if entry.entity == "agent_message"]
        seen = next((answer for answer in answers if answer == kept), "")
        self._say(
            f"         It sees the same {len(answers)} answers, {len(seen.split())} words in the broken one.", "good"
        )
        return seen

    def _connect(self, _who: str) -> AbstractAsyncContextManager[Connection]:
        from holdfast.client import connect  # noqa: PLC0415  (`--help` needs none)

        self._started += 1
        agent = (sys.executable, "-m", "holdfast", "run", "demo", "--store", str(self._place / "sessions.db"))
        pid_file = str(self._place / f"pid-{self._started}")
        return connect(sys.executable, "-c", START, pid_file, *agent)

    # Showing

    def _stream(self, received: str, text: str) -> str:
        words = len(received.split())
        if not received:
            click.echo("  agent  ", nl=False)
        if words < SHOWN:
            click.echo(text, nl=False)
        elif words == SHOWN:
            click.echo("…", nl=False)
        return received + text

    def _heading(self, text: str) -> None:
        click.echo()
        click.secho(text, bold=True)

    def _you(self, text: str) -> None:
        click.echo(click.style("  you    ", fg="cyan") + text)

    def _agent(self, text: str) -> None:
        click.echo(f"  agent  {text}")

    def _say(self, text: str, tone: str = "") -> None:
        colours: dict[str, dict[str, Any]] = {"good": {"fg": "green"}, "bad": {"fg": "red"}, "dim": {"dim": True}}
        click.secho(text, **colours.get(tone, {}))

    async def _pause(self) -> None:
        await asyncio.sleep(self._pace)


def _last_answer(session: ClientSession) -> str:
    answers = [entry.text() for entry in session.history if entry.entity == "agent_message"]
    return answers[-1] if answers else ""
