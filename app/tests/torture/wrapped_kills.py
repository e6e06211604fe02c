"""A wrapped agent, its proxy, or both are killed at random moments (G8, P1, P3): is all that was seen loaded later?

    python -m app.tests.torture.wrapped_kills --rounds 1000

Each round starts `holdfast wrap` on a store, loads the session and looks: all that any client has seen must be there,
in the same order, under the same ids, once, and every turn must have an end. Then it prompts, and kills with SIGKILL
the agent, the proxy, or both. The agent streams numbered words, so one that is missing or there twice is found. Exits
with 1 if anything was wrong.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from app.tests.support.wrapping import agent_command, conversation
from core.tests.support.acp import Client, Refused
from core.tests.torture.progress import Progress
from holdfast.errors import HoldfastError
from holdfast.transport import spawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.transport import ProcessTransport

PATIENCE = 60.0

HABITS: tuple[tuple[str, ...], ...] = (
    (),
    ("no resume",),
    ("no load", "no resume"),
    ("keeps nothing",),
    ("loses prompts",),
    ("no resume", "replays late"),
    ("v2",),
    ("v2", "keeps nothing"),
)
"""Agents that keep their sessions well, badly, or not at all."""

SESSION_ROUNDS = 25
"""A session is used for so many rounds; then comes a new one, of the next kind of agent."""

TARGETS = ("agent", "proxy", "both")


class Wrong(Exception):
    """Something that must not be."""


class Witness:
    """What clients of one session have seen."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.entries: list[dict[str, Any]] = []
        self.prompts = 0

    def look(self, loaded: Sequence[dict[str, Any]]) -> None:
        """Compare what was loaded with what was seen, and remember it."""
        texts = {_key(entry): _text(entry) for entry in loaded}
        before = [key for key in map(_key, self.entries) if key]
        if before != [key for key in texts if key in set(before)]:
            raise Wrong(f"the order has changed, or something is missing: {before} / {list(texts)}")
        for entry in self.entries:
            if not texts[_key(entry)].startswith(_text(entry)):
                raise Wrong(f"seen {_text(entry)[-80:]!r}, loaded {texts[_key(entry)][-80:]!r}")
        words = [word for text in texts.values() for word in text.split() if word.startswith("w")]
        if len(words) != len(set(words)):
            raise Wrong("something is there twice")
        self.check_ends(loaded)
        self.entries = [entry for entry in loaded if _key(entry)]

    def check_ends(self, loaded: Sequence[dict[str, Any]]) -> None:
        """Every turn that is not the last and did not run to its end says so."""
        turns: list[list[dict[str, Any]]] = []
        for entry in loaded:
            if entry["sessionUpdate"].startswith("user_message"):
                turns.append([])
            elif turns:
                turns[-1].append(entry)
        if len(turns) > self.prompts:
            raise Wrong(f"{len(turns)} turns for {self.prompts} prompts")
        for turn in turns:
            said = "".join(_text(entry) for entry in turn)
            is_marked = any(entry["sessionUpdate"] == "_holdfast/turn_end" for entry in turn)
            if not said.endswith("done.") and not is_marked:
                raise Wrong(f"a turn without an end: {said[-60:]!r}")


def _key(entry: dict[str, Any]) -> str:
    return str(entry.get("messageId") or entry.get("toolCallId") or "")


def _text(entry: dict[str, Any]) -> str:
    content: Any = entry.get("content") or []
    blocks: list[dict[str, Any]] = [content] if isinstance(content, dict) else content
    return "".join(str(block.get("text", "")) for block in blocks)


class Round:
    """One proxy, from its start to its end."""

    def __init__(self, directory: Path, habits: tuple[str, ...], witness: Witness, rng: random.Random) -> None:
        self.directory = directory
        self.habits = habits
        self.witness = witness
        self.rng = rng
        self.seen = 0

    async def run(self) -> str:
        """Look, prompt, kill; return what was killed."""
        home = self.directory / "home"
        home.mkdir(exist_ok=True)
        wrap = (sys.executable, "-m", "holdfast", "wrap", "--store", str(self.directory / "sessions.db"), "--")
        env = {**os.environ, "AGENT_HOME": str(home)}
        transport = await spawn(*wrap, *agent_command(*self.habits), env=env, patience=0.2)
        try:
            return await self._meet(transport, home)
        finally:
            await transport.close(0.1)

    async def _meet(self, transport: ProcessTransport, home: Path) -> str:
        client = Client(transport, 2)
        async with asyncio.timeout(PATIENCE):
            await client.initialize()
            cwd = str(self.directory)
            if self.witness.session is None:
                self.witness.session = await client.new(cwd)
            else:
                await client.resume(self.witness.session, cwd, replayFrom={"type": "start"})
                self.witness.look(conversation(2, client.updates()))
            target = self.rng.choice(TARGETS)
            await self._prompt_and_kill(client, transport, home, target)
            if target == "agent":
                await self._go_on(client)
        self.seen = len(client.updates())
        self.witness.entries = [entry for entry in conversation(2, self._updates(client)) if _key(entry)]
        return target

    def _updates(self, client: Client) -> list[dict[str, Any]]:
        return client.updates(session=self.witness.session)

    async def _prompt_and_kill(self, client: Client, transport: ProcessTransport, home: Path, target: str) -> None:
        number = self.witness.prompts = self.witness.prompts + 1
        turn = client.begin_prompt(self.witness.session or "", f"count {number}")
        words = self.rng.choice((0, 1, self.rng.randint(1, 200)))
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE / 2):
                await client.until(lambda: client.ended or client.said().count(f"w{number}.") >= words or turn.done())
        await asyncio.sleep(self.rng.random() * 0.05)
        if target != "proxy":
            with suppress(OSError, ValueError):
                os.kill(int((home / "pid").read_text()), signal.SIGKILL)
        if target != "agent":
            kill_child_of(transport.pid)
            await client.until(lambda: client.ended)

    async def _go_on(self, client: Client) -> None:
        """The proxy lives: the turn must end, and the next prompt start the agent again."""
        session = self.witness.session or ""
        await client.until(lambda: client.ends(session) >= 1)
        self.witness.prompts += 1
        try:
            reason = await client.prompt(session, f"say a{self.witness.prompts} done.")
        except Refused as e:
            raise Wrong(f"it does not go on: {e}") from e
        if reason != "end_turn":
            raise Wrong(f"it goes on with {reason}")


def kill_child_of(guard: int) -> None:
    """Kill the proxy behind its guards."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            pid, _, rest = entry.read_text().partition(" (")
            parents[int(pid)] = int(rest.rpartition(") ")[2].split()[1])
    for pid in parents:
        command = Path(f"/proc/{pid}/cmdline")
        with suppress(OSError):
            said = command.read_bytes()
            if b"\0wrap\0" in said and b"guard.py" not in said and _descends(pid, guard, parents):
                os.kill(pid, signal.SIGKILL)


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


async def torture(rounds: int, seed: int, directory: Path) -> tuple[int, dict[str, int], int]:
    """Do so many rounds; return how many failed, what was killed how often, and how much was seen."""
    rng = random.Random(seed)
    killed: dict[str, int] = dict.fromkeys(TARGETS, 0)
    failures = seen = 0
    witness, habits, place = Witness(), HABITS[0], directory
    progress = Progress(rounds, "kills")
    for number in range(rounds):
        if number % SESSION_ROUNDS == 0:
            habits = HABITS[number // SESSION_ROUNDS % len(HABITS)]
            witness = Witness()
            place = directory / str(number)
            place.mkdir()
        this = Round(place, habits, witness, rng)
        try:
            killed[await this.run()] += 1
        except (Wrong, Refused, HoldfastError, TimeoutError) as e:
            failures += 1
            print(f"round {number} ({', '.join(habits) or 'plain'}): {type(e).__name__}: {e}", file=sys.stderr)
            witness = Witness()
            witness.session = None
        seen += this.seen
        progress.tell(number + 1, f"{failures} failures")
    return failures, killed, seen


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    with TemporaryDirectory() as directory:
        failures, killed, seen = asyncio.run(torture(arguments.rounds, arguments.seed, Path(directory)))
    kills = ", ".join(f"{target} {count:,}" for target, count in killed.items())
    print(
        f"{sum(killed.values()):,} kills ({kills}); {seen:,} updates seen; {failures:,} failures; seed {arguments.seed}"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
