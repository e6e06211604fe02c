"""Clients that connect to a random node for each connection, while nodes and the database have a bad time.

    python -m app.tests.torture.any_node --seconds 600

Three real servers on one PostgreSQL. Each client connects to any of them, opens any session, prompts once, watches
until the turn is over, and leaves; most sessions are owned by another node than the one it is at. Meanwhile nodes are
killed, told to end, and stopped past their lease; connections to the database are cut and it is restarted. What clients
saw is compared with what is stored; see `core.tests.support.history_checker`.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from app.tests.support.nodes import Node
from core.tests.support import postgres
from core.tests.support.acp import Client, Refused
from core.tests.support.history_checker import Accepted, Loaded, Shown, Stored, Witness, check
from core.tests.torture.progress import Progress
from holdfast.errors import ConnectionLost, RequestCancelled, StoreError
from holdfast.store import open_store
from holdfast.store.entries import read_entries
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from core.tests.support.acp import Update

AGENT = """
import asyncio
from holdfast import Agent

agent = Agent("shared")


@agent.prompt
async def answer(turn):
    _, name, count = turn.text.split()
    for number in range(int(count)):
        await turn.say(f"{name}.{number} ")
        await asyncio.sleep(0.002)
"""

NODES = ("a", "b", "c")
SESSIONS = 4
CLIENTS = 6
LEASE = 2.0
PATIENCE = 60.0


class Trial:
    """Three nodes, and clients that come to any of them."""

    def __init__(self, cluster: postgres.Cluster, place: Path, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.unanswered: list[str] = []
        """What clients waited for though their connection stood."""
        self._chance = random.Random(seed)
        self._cluster = cluster
        self._place = place
        self._address = f"{cluster.address}&lease={LEASE}"
        self._nodes = [Node(place, name, self._address, source=AGENT) for name in NODES]
        self._witness = Witness()
        self._sessions: list[str] = []
        self._is_over = False

    async def run(self, seconds: float, progress: Progress | None = None) -> None:
        """Let clients work and disturb the nodes; then compare what was seen with what is stored."""
        try:
            await asyncio.gather(*(asyncio.to_thread(node.start) for node in self._nodes))
            client = await self._connect(self._nodes[0])
            self._sessions = [await client.new(str(self._place)) for _ in range(SESSIONS)]
            await client.transport.close(0)
            clients = [asyncio.create_task(self._be_a_client(f"c{number}")) for number in range(CLIENTS)]
            until = time.monotonic() + seconds
            while (now := time.monotonic()) < until:
                await asyncio.sleep(self._chance.uniform(0.5, 2.0))
                await self._disturb()
                if progress is not None:
                    progress.tell(int(seconds - max(until - now, 0.0)), str(dict(self.counts)))
            self._is_over = True
            async with asyncio.timeout(3 * PATIENCE):
                await asyncio.gather(*clients)
        finally:
            for node in self._nodes:
                node.__exit__()
        self.wrong = [*self.unanswered, *check(self._witness, await self._stored())]

    # Clients

    async def _connect(self, node: Node) -> Client:
        client = Client(await connect_websocket(node.url), 2)
        about: dict[str, Any] = {"info": {"name": "test", "version": "0"}, "capabilities": {"session": {"notices": {}}}}
        about["_meta"] = {"holdfast/positions": True}
        await client.ask("initialize", {"protocolVersion": 2, **about})
        return client

    async def _be_a_client(self, name: str) -> None:
        number = 0
        while not self._is_over:
            number += 1
            try:
                client = await self._connect(self._chance.choice(self._nodes))
            except (ConnectionLost, TimeoutError):
                self.counts["not let in"] += 1
                await asyncio.sleep(0.1)
                continue
            except Refused as e:  # the node was told to end before it had answered
                if e.code != RequestCancelled.code:
                    raise
                self.counts["not let in"] += 1
                continue
            try:
                await self._visit(client, f"{name}-{number}")
            except Refused as e:
                self.counts["refused"] += 1
                if "load the session again" not in e.message:
                    await asyncio.sleep(self._chance.uniform(0.05, 0.3))
            except ConnectionLost:
                self.counts["cut off before an answer"] += 1
            except TimeoutError:  # every request is answered (P6)
                self.unanswered.append(f"{name}-{number} waited in vain: it heard last {client.heard[-1:]}")
            finally:
                await client.transport.close(0)
                self._note_shown(client)

    async def _visit(self, client: Client, name: str) -> None:
        """Load a session, prompt once, and watch until the turn is over or the connection is."""
        session = self._chance.choice(self._sessions)
        loading = client.begin(
            "session/resume",
            {"sessionId": session, "cwd": str(self._place), "mcpServers": [], "replayFrom": {"type": "start"}},
        )
        await self._answered(client, loading)
        at = next(n for n, message in enumerate(client.heard) if message.get("id") == 2)
        self._witness.loaded.append(Loaded(session, _messages(client.heard[:at])))
        self.counts["loaded"] += 1
        text = f"say {name} {self._chance.randint(1, 60)}"
        accepted = await self._answered(client, client.begin_prompt(session, text))
        self._witness.accepted.append(Accepted(session, text))
        self.counts["accepted"] += 1
        await client.until(lambda: client.ended or client.ends_after(session, accepted["messageId"]))
        self.counts["cut off" if client.ended else "ended"] += 1

    async def _answered(self, client: Client, answer: asyncio.Future[Any]) -> Any:
        await client.until(lambda: client.ended or answer.done())
        if not answer.done():
            raise ConnectionLost("the node has ended")
        return answer.result()

    def _note_shown(self, client: Client) -> None:
        shown: list[Shown] = []
        for message in client.heard:
            if message.get("method") == "session/update":
                params, update = message["params"], message["params"]["update"]
                meta: dict[str, Any] = params.get("_meta") or update.get("_meta") or {}
                at: str | None = meta.get("holdfast/at")
                if at is not None and update["sessionUpdate"] == "agent_message_chunk":
                    epoch, turn, event = map(int, at.split("."))
                    text = update["content"]["text"]
                    shown.append(Shown(params["sessionId"], (epoch, turn, event), update["messageId"], text))
        self.counts["shown"] += len(shown)
        self._witness.shown.append(shown)

    # What is done to them

    async def _disturb(self) -> None:
        what = self._chance.choice(("kill", "end", "pause", "pause", "cut", "restart"))
        node = self._chance.choice(self._nodes)
        self.counts[what] += 1
        match what:
            case "kill":
                await asyncio.to_thread(node.kill)
                await self._start(node)
            case "end":
                await asyncio.to_thread(node.stop)
                await self._start(node)
            case "pause":
                node.signal(signal.SIGSTOP)
                await asyncio.sleep(LEASE + self._chance.uniform(-1.0, 2.0))
                node.signal(signal.SIGCONT)
            case "cut":
                with suppress(Exception):
                    await postgres.run_sql(
                        self._address,
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'",
                    )
            case _:
                await asyncio.to_thread(self._cluster.restart, self._chance.choice(("fast", "immediate")))

    async def _start(self, node: Node) -> None:
        await asyncio.to_thread(node.start)

    async def _stored(self) -> dict[str, list[Stored]]:
        """Read every session from the database, with what a turn that broke has said."""
        found: dict[str, list[Stored]] = {}
        while True:
            try:
                store = await open_store(self._address)
                break
            except StoreError:
                await asyncio.sleep(0.1)
        try:
            for session in self._sessions:
                entries = [entry async for _, entry in read_entries(store, await store.snapshot(session))]
                spoken = [entry for entry in entries if entry.entity in ("user_message", "agent_message")]
                found[session] = [Stored(str(entry.key), entry.text()) for entry in spoken]
        finally:
            await store.close()
        return found


def _messages(heard: list[Update]) -> list[tuple[str, str]]:
    """Return the messages that a replay told, in order."""
    found: dict[str, str] = {}
    for message in heard:
        if message.get("method") == "session/update":
            update = message["params"]["update"]
            if update["sessionUpdate"] in ("user_message", "agent_message"):
                found[update["messageId"]] = "".join(block["text"] for block in update["content"])
            elif update["sessionUpdate"] in ("user_message_chunk", "agent_message_chunk"):
                found[update["messageId"]] = found.get(update["messageId"], "") + update["content"]["text"]
    return list(found.items())


async def trial(seconds: float, seed: int, progress: Progress | None = None) -> Trial:
    """Start a database, and run a trial on it."""
    cluster = postgres.Cluster(postgres.new_directory())
    try:
        await asyncio.to_thread(cluster.create)
        await asyncio.to_thread(cluster.start)
        with TemporaryDirectory() as path:
            ran = Trial(cluster, Path(path), seed)
            await ran.run(seconds, progress)
            return ran
    finally:
        await asyncio.to_thread(cluster.remove)


def main() -> int:
    """Run a trial, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    progress = Progress(int(options.seconds), "seconds")
    ran = asyncio.run(trial(options.seconds, options.seed, progress))
    for wrong in ran.wrong[:20]:
        print(wrong, file=sys.stderr)
    progress.close(f"3 nodes, any client at any, seed {options.seed}: {dict(ran.counts)}; {len(ran.wrong)} wrong")
    return 1 if ran.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
