"""Stories of one session in many processes: clients come and go, prompt, cancel, answer, quit and are killed.

Whatever happened, what each client saw is compared with what the store has: the same words in the same order, none
missing, none twice; what a client that was killed had seen is the beginning of it. No prompt is performed twice.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hypothesis import strategies as st

from core.tests.support.acp import Client, Refused, running

if TYPE_CHECKING:
    from collections.abc import Sequence

Step: TypeAlias = tuple[Any, ...]

PATIENCE = 90.0
"""Nothing takes longer, not even when many processes share a core."""

CLIENTS = 4

AGENT = """
import asyncio, os
from holdfast import Agent

agent = Agent("story", version=str(os.getpid()))


@agent.prompt
async def answer(turn):
    name, count, then = turn.text.split()
    with open("performed", "a") as performed:
        performed.write(name + "\\n")
    async with turn.tool("Count"):
        for number in range(int(count)):
            await turn.say(f"{name}.{number} ")
            await asyncio.sleep(0.001 if number % 3 else 0)
    if then == "ask":
        async with turn.tool("Dig", kind="execute") as call:
            await turn.say(f"{name}.{await turn.allow('May I dig?', call)} ")
    if then == "wait":
        await asyncio.sleep(3600)
"""

clients = st.integers(0, CLIENTS - 1)
steps = st.one_of(
    st.tuples(st.just("join"), clients, st.sampled_from([1, 2])),
    st.tuples(st.just("join"), clients, st.sampled_from([1, 2])),
    st.tuples(st.just("prompt"), clients, st.integers(1, 60), st.sampled_from(["end", "end", "ask", "wait"])),
    st.tuples(st.just("prompt"), clients, st.integers(1, 60), st.just("end")),
    st.tuples(st.just("answer"), clients),
    st.tuples(st.just("cancel"), clients),
    st.tuples(st.just("kill"), clients),
    st.tuples(st.just("quit"), clients),
    st.tuples(st.just("pause"), st.floats(0, 0.2)),
)
stories = st.lists(steps, min_size=6, max_size=25)


class Story:
    """One session, and whoever has it open."""

    def __init__(self, place: Path, stack: AsyncExitStack) -> None:
        self._place = place
        self._stack = stack
        self._agent = place / "story.py"
        self._agent.write_text(AGENT)
        self._session = ""
        self._here: dict[int, Client] = {}
        self._gone: list[Client] = []
        self._pids: dict[Client, int] = {}
        self._prompts = 0

    async def tell(self, steps: Sequence[Step]) -> None:
        """Let it all happen, then compare."""
        await self._join(0, 1)
        for step in steps:
            with suppress(Refused):
                await self._do(step)
        await self._settle()

    async def _do(self, step: Step) -> None:
        match step:
            case ("join", int(number), int(version)) if number not in self._here:
                await self._join(number, version)
            case ("prompt", int(number), int(count), str(then)) if number in self._here:
                self._prompts += 1
                self._here[number].begin_prompt(self._session, f"p{self._prompts} {count} {then}")
                await asyncio.sleep(0.01)
            case ("answer", int(number)) if number in self._here:
                for asked in self._here[number].asked:
                    if not asked.withdrawn:
                        asked.select("allow_once")
            case ("cancel", int(number)) if number in self._here:
                self._here[number].tell("session/cancel", {"sessionId": self._session})
            case ("kill", int(number)) if number in self._here and len(self._here) > 1:
                client = self._here.pop(number)
                os.kill(self._pids[client], signal.SIGKILL)
                self._gone.append(client)
            case ("quit", int(number)) if number in self._here and len(self._here) > 1:
                client = self._here.pop(number)
                os.kill(self._pids[client], signal.SIGTERM)
                self._gone.append(client)
            case ("pause", float(seconds)):
                await asyncio.sleep(seconds)
            case _:
                pass

    async def _join(self, number: int, version: int) -> None:
        client = await self._stack.enter_async_context(
            running(self._place / "s.db", str(self._agent), version=version, cwd=self._place, session={"notices": {}})
        )
        about = client.heard[0]["result"]["agentInfo" if version == 1 else "info"]
        self._pids[client] = int(about["version"])
        if self._session:
            await self._load(client)
        else:
            self._session = await client.new(str(self._place))
        self._here[number] = client

    async def _load(self, client: Client) -> None:
        params: dict[str, Any] = {"sessionId": self._session, "cwd": str(self._place), "mcpServers": []}
        if client.version == 2:
            params["replayFrom"] = {"type": "start"}
        method = "session/load" if client.version == 1 else "session/resume"
        async with asyncio.timeout(PATIENCE):
            await client.begin(method, params)

    async def _settle(self) -> None:
        """Stop all work; compare what everybody has seen."""
        reader = next(iter(self._here.values()))
        for _ in range(3):  # what is in line is dropped, what runs ends
            reader.tell("session/cancel", {"sessionId": self._session})
            await asyncio.sleep(0.05)
        self._prompts += 1
        last = f"p{self._prompts}"
        await self._prompt_until_taken(reader, f"{last} 1 end")
        late = await self._stack.enter_async_context(
            running(self._place / "s.db", str(self._agent), version=1, cwd=self._place)
        )
        await self._load(late)
        whole = late.said()
        assert whole.endswith(f"{last}.0 "), whole
        for client in self._here.values():
            if any("load the session again" in notice["title"] for notice in client.updates("notice")):
                client.forget()
                await self._load(client)
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await client.until(lambda client=client: client.said().endswith(f"{last}.0 "))
            assert client.said() == whole, (client.version, client.updates("notice"))
        for client in self._gone:
            assert whole.startswith(client.said())
        performed = (self._place / "performed").read_text().splitlines()
        assert len(performed) == len(set(performed)), performed

    async def _prompt_until_taken(self, client: Client, text: str) -> None:
        """Prompt, again where the prompt was refused before it began; whoever did the work may just have left."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await client.begin_prompt(self._session, text)
                except Refused:
                    performed = self._place / "performed"
                    begun = performed.exists() and text.split(maxsplit=1)[0] in performed.read_text().splitlines()
                    if begun:
                        raise
                    await asyncio.sleep(0.1)
                else:
                    return


def tell_story(steps: Sequence[Step]) -> None:
    """Let a story happen in a directory of its own."""

    async def tell() -> None:
        with tempfile.TemporaryDirectory(prefix="hf") as place:
            async with AsyncExitStack() as stack:
                await Story(Path(place), stack).tell(steps)

    asyncio.run(tell())
