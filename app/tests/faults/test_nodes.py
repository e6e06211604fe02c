"""One session, clients on several nodes: real servers on one real PostgreSQL, killed, stopped and restarted."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from app.tests.support.nodes import AGENT, SECRET, Node
from app.tests.torture.any_node import trial
from core.tests.support import postgres
from core.tests.support.acp import Refused, patiently
from holdfast.cluster import NodeSecret, PeerNeighbours
from holdfast.cluster.node_links import PATH
from holdfast.engine.relay.messages import NOT_HERE, Open, Setup
from holdfast.errors import ConnectionRefused, NeighbourLost, RemoteError
from holdfast.model import LOCAL, ClientInfo
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

    from core.tests.support.acp import Client

pytestmark = [pytest.mark.timeout(300), pytest.mark.requirement("F4", "P4")]


@contextmanager
def nodes(place: Path, *names: str, lease: float = postgres.LEASE, source: str = AGENT) -> Generator[list[Node]]:
    """Start nodes on one database."""
    address = postgres.empty_database(lease)
    with ExitStack() as stack:
        yield [stack.enter_context(Node(place, name, address, source=source)) for name in names]


async def join(client: Client, session: str, place: Path) -> None:
    if client.version == 1:
        await client.load(session, str(place))
    else:
        await client.resume(session, str(place), replayFrom={"type": "start"})


async def heard(client: Client, text: str) -> None:
    await client.until(lambda: text in client.said())


async def noticed(client: Client, text: str) -> None:
    await client.until(lambda: any(text in it["title"] for it in client.updates("notice")))


def numbers(count: int) -> str:
    return "".join(f"{number} " for number in range(count))


def performed(place: Path) -> list[str]:
    return (place / "performed").read_text().splitlines()


@pytest.mark.requirement("F3", "F5")
@pytest.mark.parametrize("versions", [(1, 2, 1), (2, 1, 2)])
async def test_clients_on_three_nodes_watch_prompt_answer_and_cancel_one_session(
    versions: tuple[int, int, int], tmp_path: Path
) -> None:
    with nodes(tmp_path, "a", "b", "c") as (a, b, c):
        reads: Any = {"fs": {"readTextFile": True, "writeTextFile": False}} if versions[1] == 1 else {}
        async with a.client(versions[0]) as one, b.client(versions[1], **reads) as two, c.client(versions[2]) as three:
            session = await one.new(str(tmp_path))
            assert await one.prompt(session, "2") == "end_turn"
            await join(two, session, tmp_path)
            await join(three, session, tmp_path)
            assert await two.prompt(session, "3") == "end_turn"
            mine = three.begin_prompt(session, "4 ask")
            questions = [await client.question() for client in (one, two, three)]
            questions[1].select("allow_once")
            await one.until(lambda: questions[0].withdrawn)
            await three.until(lambda: questions[2].withdrawn)
            await patiently(mine)
            await heard(three, "yes")
            stopped = one.begin_prompt(session, "5 wait")
            await heard(two, "yes" + numbers(5))
            two.tell("session/cancel", {"sessionId": session})
            await patiently(stopped)
            if versions[1] == 1:  # a turn works with what the client offers that prompted it, wherever that is
                two.answers["fs/read_text_file"] = lambda _: {"content": "unsaved"}
                assert await two.prompt(session, "1 read") == "end_turn"
                await heard(one, "unsaved")
            assert await three.prompt(session, "6") == "end_turn"
            for client in (one, two, three):
                await heard(client, numbers(6))
            async with b.client(2) as late:
                await join(late, session, tmp_path)
                for client in (one, two, three):
                    assert client.said() == late.said()
            assert performed(tmp_path)[:4] == ["2", "3", "4 ask", "5 wait"]


@pytest.mark.requirement("P1", "P3")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ends"])
async def test_an_owner_that_goes_in_mid_turn_is_succeeded_and_nothing_seen_is_lost(
    number: signal.Signals, tmp_path: Path
) -> None:
    with nodes(tmp_path, "a", "b", "c") as (a, b, c):
        async with a.client() as one, b.client(1) as two, c.client(2) as three:
            session = await one.new(str(tmp_path))
            await join(two, session, tmp_path)
            await join(three, session, tmp_path)
            mine = two.begin_prompt(session, "200 wait")
            await heard(three, numbers(200))
            a.signal(number)
            if number == signal.SIGKILL:
                await postgres.end_lease(a.store, session)
            with pytest.raises(Refused, match=f"node {a.base} has left"):
                await patiently(mine)
            await noticed(two, f"node {a.base} has left; the session goes on")
            await noticed(three, f"node {a.base} has left; the session goes on")
            await three.until(lambda: three.states()[-1] == "error")
            assert await three.prompt(session, "3") == "end_turn"
            assert await two.prompt(session, "2") == "end_turn"
            await heard(three, numbers(200) + numbers(3) + numbers(2))
            async with b.client() as late:
                await join(late, session, tmp_path)
                assert late.said() == two.said() == three.said()
        assert performed(tmp_path) == ["200 wait", "3", "2"]


@pytest.mark.requirement("P3")
async def test_an_owner_that_is_stopped_past_its_lease_shows_nothing_more_and_follows_when_it_goes_on(
    tmp_path: Path,
) -> None:
    with nodes(tmp_path, "a", "b", lease=5.0) as (a, b):
        async with a.client(2) as one, a.client(1) as watching, b.client(1) as two:
            session = await one.new(str(tmp_path))
            await one.prompt(session, "1")
            await join(watching, session, tmp_path)
            await join(two, session, tmp_path)
            one.begin_prompt(session, "20 wait")
            await heard(two, numbers(20))
            a.signal(signal.SIGSTOP)
            try:
                await noticed(two, f"node {a.base} has left; the session goes on here")
                assert await two.prompt(session, "3") == "end_turn"
            finally:
                a.signal(signal.SIGCONT)
            await one.until(lambda: one.states()[-1] == "error")
            await heard(one, numbers(20) + numbers(3))
            await noticed(watching, f"goes on in node {b.base}")
            assert await watching.prompt(session, "4") == "end_turn"
            await heard(two, numbers(3) + numbers(4))
            for client in (one, watching):
                await client.until(lambda client=client: client.said() == two.said())
        assert performed(tmp_path) == ["1", "20 wait", "3", "4"]


SLOW_END = """
import asyncio, os
from holdfast import Agent

agent = Agent("shared")


@agent.prompt
async def answer(turn):
    await turn.say("a ")
    while not os.path.exists("go"):
        await asyncio.sleep(0.01)
    await turn.say("b ")
"""


@pytest.mark.requirement("P5", "B12")
async def test_who_comes_to_another_node_while_a_turn_is_sealed_has_all_of_it_once(tmp_path: Path) -> None:
    with nodes(tmp_path, "a", "b", source=SLOW_END) as (a, b):
        async with a.client(2) as one, b.client(2) as two, b.client(1) as three:
            session = await one.new(str(tmp_path))
            mine = one.begin_prompt(session, "go on")
            await heard(one, "a ")
            async with row_locked(a.store, session):
                (tmp_path / "go").touch()
                await sealing(a.store)
                joining = [asyncio.ensure_future(join(client, session, tmp_path)) for client in (two, three)]
                await asyncio.wait(joining, timeout=2.0)  # they come while the seal waits for the row
            await patiently(mine)
            for done in joining:
                await patiently(done)
            await one.until(lambda: one.states()[-1:] == ["end_turn"])
            for client in (one, two, three):
                await heard(client, "b ")
                assert client.said() == "a b "


@asynccontextmanager
async def row_locked(address: str, session: str) -> AsyncGenerator[None]:
    """Let nobody change the row of a session: a seal waits for it."""
    connect = cast("Any", asyncpg.connect)  # pyright: ignore[reportUnknownMemberType]
    connection = await connect(postgres.OURS.sub("", address))
    try:
        async with connection.transaction():
            await connection.fetch("SELECT 1 FROM holdfast.session WHERE id = $1 FOR SHARE", session)
            yield
    finally:
        await connection.close()


async def sealing(address: str) -> None:
    """Wait until a statement waits for a lock."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(60):
        while not await postgres.run_sql(address, waiting):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_an_owner_that_cannot_be_reached_while_its_lease_holds_is_named(tmp_path: Path) -> None:
    with nodes(tmp_path, "a", "b", lease=120.0) as (a, b):
        async with a.client(2) as one, b.client(1) as two:
            session = await one.new(str(tmp_path))
            one.begin_prompt(session, "2 wait")
            await heard(one, numbers(2))
            a.signal(signal.SIGSTOP)
            try:
                with pytest.raises(Refused, match=f"running in node {a.base}, which does not answer"):
                    await two.load(session, str(tmp_path))
            finally:
                a.signal(signal.SIGCONT)
            await two.load(session, str(tmp_path))
            assert two.said() == numbers(2)


@pytest.mark.requirement("P6")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_node_that_is_started_anew_at_its_address_does_not_wait_for_the_one_that_was_there(
    version: int, tmp_path: Path
) -> None:
    """For the database the owner of its sessions lives until its lease is over, and has the address of this one."""
    with nodes(tmp_path, "a") as (a,):
        async with a.client(version) as one:
            idle, broken = [await one.new(str(tmp_path)) for _ in range(2)]
            await one.prompt(idle, "1")
            one.begin_prompt(broken, "2 wait")
            await heard(one, numbers(1) + numbers(2))
            a.kill()
        a.start()
        async with a.client(version) as again:
            await join(again, idle, tmp_path)
            assert again.said() == numbers(1)
            with pytest.raises(Refused, match="which does not answer"):
                await join(again, broken, tmp_path)
            await postgres.end_lease(a.store, broken)
            await join(again, broken, tmp_path)
            assert again.said() == numbers(1) + numbers(2)


@pytest.mark.timeout(600)
@pytest.mark.requirement("P1", "P2", "P3")
async def test_clients_at_random_nodes_lose_nothing_in_a_bad_time() -> None:
    if postgres.GIVEN in os.environ:
        pytest.skip(f"{postgres.GIVEN} names a server that is not ours to stop")
    postgres.server()  # or why there is none
    ran = await trial(20.0, 5)
    assert ran.wrong == []
    for happened in ("accepted", "shown", "loaded", "ended"):
        assert ran.counts[happened], f"too little happened: {ran.counts}"


@pytest.mark.requirement("P12")
async def test_whoever_does_not_know_the_secret_gets_no_link_and_no_session_of_a_running_turn(tmp_path: Path) -> None:
    with nodes(tmp_path, "a", lease=120.0) as (a,), Node(tmp_path, "b", a.store, "another secret, just as long") as b:
        async with a.client(2) as one, b.client(1) as two:
            session = await one.new(str(tmp_path))
            one.begin_prompt(session, "2 wait")
            await heard(one, numbers(2))
            with pytest.raises(Refused, match=f"running in node {a.base}, .*it has another secret"):
                await two.load(session, str(tmp_path))
            with pytest.raises(NeighbourLost, match="it has another secret"):
                await Linked(a, "guessed, and just as wrong").request("status", None)
            headers: dict[str, str]
            for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Holdfast-Node challenge=0"}):
                with pytest.raises(ConnectionRefused, match="401"):
                    await connect_websocket(a.base + PATH, headers=headers)
            with pytest.raises(ConnectionRefused, match="404"):
                await connect_websocket(a.base + PATH, headers={"Origin": a.base})


@pytest.mark.requirement("P12")
async def test_a_proof_is_good_for_one_link(tmp_path: Path) -> None:
    with nodes(tmp_path, "a") as (a,):
        async with a.client() as client:
            await client.new(str(tmp_path))
            with pytest.raises(ConnectionRefused) as refused:
                await connect_websocket(a.base + PATH)
            proof = NodeSecret(SECRET.encode()).answer(refused.value.headers["www-authenticate"])
            headers = {"Authorization": proof.authorization}
            let_in = await connect_websocket(a.base + PATH, headers=headers)
            assert let_in.headers["holdfast-node-proof"] == proof.expected
            with pytest.raises(ConnectionRefused, match="401"):
                await connect_websocket(a.base + PATH, headers=headers)
            await let_in.close(0)


async def test_an_owner_is_asked_by_the_epoch_of_its_claim_and_refuses_another(tmp_path: Path) -> None:
    with nodes(tmp_path, "a") as (a,):
        async with a.client() as client:
            session = await client.new(str(tmp_path))
            await client.prompt(session, "1")
            setup = Setup(
                "x", ClientInfo(protocol=2), (str(tmp_path),), [], None, frozenset(), frozenset(), False, LOCAL, session
            )
            link = Linked(a, SECRET)
            try:
                for epoch in (0, 2):
                    with pytest.raises(RemoteError) as refused:
                        await link.request("open", Open(session, LOCAL, "shared", setup, epoch))
                    assert refused.value.code == NOT_HERE
                await link.request("open", Open(session, LOCAL, "shared", setup, 1))
            finally:
                await link.close()


class Linked:
    """A link to a node that is opened with its first request."""

    def __init__(self, node: Node, secret: str) -> None:
        self._address = node.base
        self._neighbours = PeerNeighbours(secret=NodeSecret(secret.encode()))
        self._link: Any = None

    async def request(self, method: str, params: object) -> object:
        if self._link is None:
            self._link = await self._neighbours.reach(self._address, lambda _: Nobody())
        return await self._link.request(method, params)

    async def close(self) -> None:
        self._link.close()
        await self._neighbours.close()


class Nobody:
    """Takes what comes over a link, and does nothing with it."""

    async def requested(self, method: str, params: object) -> object:
        raise NotImplementedError

    async def notified(self, method: str, params: object) -> None: ...

    def lost(self) -> None: ...
