"""A server under mixed load for a long time: its memory and its descriptors stay as they are.

python -m app.tests.torture.served_load --minutes 60

Clients of both versions come over WebSocket and HTTP, talk, cancel, load, list and delete, and leave in order or in
the middle of it. Others stop reading, bring wrong tokens, send bytes that make no sense, or connect and say
nothing. Every prompt of a client that stays is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from app.tests.support.remote_process import ServeProcess
from core.tests.support.acp import Client, Refused
from core.tests.torture.progress import Progress
from holdfast.client.http_transport import HttpClientTransport
from holdfast.errors import ConnectionLost
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from holdfast.transport import Line, Transport

PRINCIPALS = ("ada", "bob", "eve")
ACTORS = 6
SAMPLE_SECONDS = 5.0
PATIENCE = 600.0
"""How long anything may take: a prompt waits for the turns before it, and the machine may have others to serve."""

ALLOWED_GROWTH = 1.10
ALLOWED_BYTES = 8 << 20
PROMPTS = ("hello there", "/stream 50", "/stream 400", "/tool", "/think", "/plan", "/help")


class Sample(NamedTuple):
    """How the server is at one moment."""

    memory: int
    descriptors: int


class ForgetfulClient(Client):
    """A client that does not keep the pieces of answers: to look through thousands at each new one takes its time."""

    def lines_received(self, lines: Sequence[Line]) -> None:
        super().lines_received(lines)
        self.heard = [message for message in self.heard if not _is_piece(message)]


def _is_piece(message: dict[str, Any]) -> bool:
    return message.get("method") == "session/update" and message["params"]["update"]["sessionUpdate"].endswith("_chunk")


class Load:
    """The actors, and what they have done."""

    def __init__(self, server: ServeProcess, seed: int) -> None:
        self._server = server
        self._random = random.Random(seed)
        self._tokens = {name: server.token(name) for name in PRINCIPALS}
        self._sessions: dict[int, list[str]] = {actor: [] for actor in range(ACTORS)}
        self.done = 0
        self.failures: list[str] = []

    async def act(self, actor: int, until: float) -> None:
        """Do one thing after the other."""
        things: tuple[Callable[[int], Awaitable[None]], ...] = (
            *(self._talk,) * 3, self._look_back, self._leave_in_the_middle, self._stop_reading, self._knock,
        )  # fmt: skip
        while time.monotonic() < until and not self.failures:
            thing = self._random.choice(things)
            try:
                async with asyncio.timeout(PATIENCE * 2):
                    await thing(actor)
            except (Refused, ConnectionLost, OSError, AssertionError, TimeoutError) as e:
                self.failures.append(f"{thing.__name__}: {e!r}")
            self.done += 1

    async def _transport(self, name: str) -> Transport:
        headers = {"Authorization": f"Bearer {self._tokens[name]}"}
        if self._random.random() < 0.4:
            return HttpClientTransport(self._server.url, headers=headers)
        return await connect_websocket(self._server.url, headers=headers)

    async def _client(self, actor: int) -> Client:
        transport = await self._transport(PRINCIPALS[actor % len(PRINCIPALS)])
        client = ForgetfulClient(transport, self._random.choice((1, 2)), patience=PATIENCE)
        first = dict[str, Any](elicitation={"form": {}}) if self._random.random() < 0.5 else {}
        await client.initialize(**first)
        return client

    async def _session(self, client: Client, actor: int) -> str:
        """Return a session: a new one, or one of those that there are."""
        known = self._sessions[actor]
        if len(known) < 3:
            session = await client.new(cwd="/tmp")
            known.append(session)
            return session
        session = self._random.choice(known)
        await client.load(session, cwd="/tmp") if client.version == 1 else await client.resume(session, cwd="/tmp")
        return session

    async def _talk(self, actor: int) -> None:
        client = await self._client(actor)
        try:
            session = await self._session(client, actor)
            for _ in range(self._random.randint(1, 4)):
                text = self._random.choice(PROMPTS)
                if self._random.random() < 0.2:
                    turn = client.begin_prompt(session, "/sleep 5")
                    await asyncio.sleep(self._random.random() / 5)
                    client.tell("session/cancel", {"sessionId": session})
                    await _unless_cancelled(turn)
                else:
                    assert await client.prompt(session, text)
            if self._random.random() < 0.3:
                await client.ask("session/delete", {"sessionId": session})
                with suppress(ValueError):
                    self._sessions[actor].remove(session)
            elif self._random.random() < 0.7:
                await client.ask("session/close", {"sessionId": session})
        finally:
            await client.transport.close(0.1)

    async def _look_back(self, actor: int) -> None:
        client = await self._client(actor)
        try:
            await client.ask("session/list", {})
            for foreign in self._sessions[(actor + 1) % ACTORS][:1]:
                with suppress(Refused):
                    await client.load(foreign, cwd="/tmp")
        finally:
            await client.transport.close(0.1)

    async def _leave_in_the_middle(self, actor: int) -> None:
        client = await self._client(actor)
        session = await self._session(client, actor)
        turn = client.begin_prompt(session, "/stream 2000")
        await asyncio.sleep(self._random.random() / 2)
        await client.transport.close(0.0)
        turn.cancel()

    async def _stop_reading(self, actor: int) -> None:
        """Read a little of a long answer, and then nothing, for a while."""
        client = await self._client(actor)
        session = await self._session(client, actor)
        turn = client.begin_prompt(session, "/stream 5000")
        client.transport.pause()
        await asyncio.sleep(self._random.random() * 3)
        await client.transport.close(0.0)
        turn.cancel()

    async def _knock(self, actor: int) -> None:
        """Come with what does not get in: bytes, half a request, a wrong token, nothing."""
        said = self._random.choice(
            (b"", b"GET /acp HTT", b"\x16\x03\x01" + self._random.randbytes(200),
             b"POST /acp HTTP/1.1\r\nHost: x\r\n\r\n",
             f"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:{self._server.port}\r\nAuthorization: Bearer no\r\n\r\n".encode())
        )  # fmt: skip
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        try:
            writer.write(said)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await reader.read(100)
        finally:
            writer.transport.abort()


async def _unless_cancelled(turn: asyncio.Future[Any]) -> None:
    """Wait for the answer to a prompt; one that was cancelled before its turn came is answered so (C6)."""
    try:
        await turn
    except Refused as e:
        if "-32800" not in str(e):
            raise


def _sample(pid: int) -> Sample:
    found = re.search(r"Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text())
    assert found is not None
    return Sample(int(found[1]) * 1024, sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))


async def _run(server: ServeProcess, minutes: float, seed: int) -> int:
    load = Load(server, seed)
    progress = Progress(minutes * 60, "seconds")
    until = time.monotonic() + minutes * 60
    actors = [asyncio.create_task(load.act(actor, until)) for actor in range(ACTORS)]
    samples: list[Sample] = []
    while time.monotonic() < until and not load.failures:
        await asyncio.sleep(SAMPLE_SECONDS)
        samples.append(_sample(server.pid))
        now = samples[-1]
        progress.tell(progress.seconds, f"{load.done} stories, {now.memory >> 20} MiB, {now.descriptors} descriptors")
    await asyncio.gather(*actors)
    wrong = load.failures or _grown(samples)
    third = len(samples) // 3
    early, late = (
        statistics.median(it.memory for it in part) / (1 << 20)
        for part in (samples[third : 2 * third], samples[-third:])
    )
    progress.close(
        f"{load.done} stories in {progress.seconds:.0f} s, seed {seed}: memory {early:.1f} MiB, then {late:.1f},"
        f" descriptors {samples[third].descriptors}, then {samples[-1].descriptors}: {wrong or 'flat, none failed'}"
    )
    return 1 if wrong else 0


def _grown(samples: list[Sample]) -> list[str]:
    """Return what has grown from the second third of the time to the last."""
    third = len(samples) // 3
    if third == 0:
        return ["too short to tell"]
    early, late = samples[third : 2 * third], samples[-third:]
    before, after = (statistics.median(sample.memory for sample in part) for part in (early, late))
    grown = (
        [] if after <= max(before * ALLOWED_GROWTH, before + ALLOWED_BYTES) else [f"memory: {before:.0f}, {after:.0f}"]
    )
    most = max(sample.descriptors for sample in samples[: 2 * third])
    return grown if min(it.descriptors for it in late) <= most else [*grown, "descriptors"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m app.tests.torture.served_load", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="where to begin (default: another place each time)")
    options = parser.parse_args()
    seed: int = time.time_ns() % (1 << 32) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory() as place, ServeProcess(Path(place), options=("--no-audit",)) as server:
        return asyncio.run(_run(server, options.minutes, seed))


if __name__ == "__main__":
    sys.exit(main())
