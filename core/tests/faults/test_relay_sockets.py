"""Sockets of processes that share a store: who may connect, and what those can do who flood, hang or died."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from core.tests.support.acp import serving
from core.tests.support.links import PATIENCE
from holdfast import Agent
from holdfast.cluster import PeerNeighbours, links, sockets
from holdfast.engine import attachment
from holdfast.engine import cluster as neighbours
from holdfast.engine.relay.messages import Attach, Open, Setup
from holdfast.errors import NeighbourLost
from holdfast.model import LOCAL, ClientInfo

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncGenerator, Iterator

    from core.tests.support.acp import Client, Serving
    from holdfast import Turn

STRANGER = Path(__file__).parents[1] / "programs" / "stranger.py"

LISTENS = """
import asyncio, sys, time
from holdfast.cluster import PeerNeighbours

class Nobody:
    async def requested(self, method, params):
        time.sleep(600)  # so that it does not even greet
    async def notified(self, method, params): ...
    def lost(self): ...

async def listen():
    await PeerNeighbours(sys.argv[1]).listen(lambda link: Nobody())
    print("listening", flush=True)
    await asyncio.to_thread(sys.stdin.read)

asyncio.run(listen())
"""

AS_ROOT = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become somebody else")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a short name that others can enter, so that sockets are beside the store."""
    with tempfile.TemporaryDirectory(prefix="hf") as path:
        Path(path).chmod(0o755)
        yield Path(path)


def agent() -> Agent:
    streams = Agent("streams")

    @streams.prompt
    async def answer(turn: Turn) -> None:
        for _ in range(int(turn.text)):
            await turn.say("x" * 100_000)
            await asyncio.sleep(0.005)  # those who read keep up

    return streams


@asynccontextmanager
async def open_elsewhere(place: Path) -> AsyncGenerator[tuple[Serving, Client, str, Path]]:
    """Let a process have a session open; yield it, its client, the session, and its socket."""
    async with serving(agent(), place / "s.db") as host:
        client = await host.client(2)
        session = await client.new(str(place))
        (path,) = (place / "s.db.sockets").iterdir()
        yield host, client, session, path


@asynccontextmanager
async def neighbour_in(place: Path) -> AsyncGenerator[str]:
    """Start a process that others can reach, and that hangs when it is asked for something; yield its address."""
    address = f"unix:{place}/own/x.sock"
    neighbour = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LISTENS, address, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert neighbour.stdout is not None
    assert await neighbour.stdout.readline() == b"listening\n"
    try:
        yield address
    finally:
        neighbour.kill()
        await neighbour.wait()


async def stranger(what: str, path: Path) -> str:
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, str(STRANGER), what, str(path)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@AS_ROOT
@pytest.mark.requirement("P12")
async def test_another_user_cannot_enter_the_directory_and_is_cut_off_where_it_was_opened(place: Path) -> None:
    async with open_elsewhere(place) as (_, client, session, path):
        assert await stranger("connect", path) == "EACCES"
        path.parent.chmod(0o755)
        assert await stranger("connect", path) == "EACCES"
        path.chmod(0o666)
        assert await stranger("connect", path) == "cut off"
        assert await client.prompt(session, "1") == "end_turn"


@AS_ROOT
@pytest.mark.requirement("P12")
async def test_a_socket_that_another_user_listens_at_is_not_talked_to(place: Path) -> None:
    os.chmod(place, 0o777)  # noqa: PTH101
    path = place / "x.sock"
    listening = await asyncio.create_subprocess_exec(
        sys.executable, str(STRANGER), "listen", str(path), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert listening.stdout is not None
    assert await listening.stdout.readline() == b"listening\n"
    os.chown(path, 0, 0)
    try:
        with pytest.raises(NeighbourLost, match="belongs to another user"):
            await PeerNeighbours().reach(f"unix:{path}", lambda _: Nobody())
    finally:
        await listening.communicate(b"")


@AS_ROOT
@pytest.mark.requirement("P12")
async def test_a_directory_of_another_user_is_not_used_for_sockets(place: Path) -> None:
    (place / "s.db.sockets").mkdir(mode=0o777)
    os.chown(place / "s.db.sockets", 65534, 65534)
    async with serving(agent(), place / "s.db") as host:  # it works, and cannot be reached
        client = await host.client(1)
        session = await client.new(str(place))
        assert await client.prompt(session, "1") == "end_turn"
        assert not list((place / "s.db.sockets").iterdir())


@pytest.mark.requirement("P7")
async def test_a_process_whose_backlog_is_full_is_given_up_and_reached_again_when_it_is_not(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "CONNECT_SECONDS", 0.2)
    monkeypatch.setattr(sockets, "BACKLOG", 2)
    address = f"unix:{place}/own/x.sock"
    listening = sockets.listen(address)
    waiting: list[socket.socket] = []
    try:
        for _ in range(3):  # one more than may wait, as the system counts
            waiting.append(await sockets.connect(address))  # noqa: PERF401
        with pytest.raises(NeighbourLost, match="does not accept connections"):
            await sockets.connect(address)
        for _ in waiting:
            listening.accept()[0].close()
        waiting.append(await sockets.connect(address))
    finally:
        for connected in waiting:
            connected.close()
        sockets.stop_listening(listening, address)


@pytest.mark.requirement("F4")
async def test_a_process_that_begins_while_another_ends_can_be_reached(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"unix:{place}/own/x.sock"
    leaves = f"from holdfast.cluster import sockets; sockets.remove_left_over('unix:{place}/own/y.sock')"
    set_mode = Path.chmod

    def interrupted(path: Path, mode: int) -> None:
        """Let another process leave at this very moment: the socket is there, and nobody listens yet."""
        set_mode(path, mode)
        subprocess.run([sys.executable, "-c", leaves], check=True)

    monkeypatch.setattr(Path, "chmod", interrupted)
    listening = sockets.listen(address)
    try:
        (await sockets.connect(address)).close()
        assert [path.name for path in (place / "own").iterdir()] == ["x.sock"]
    finally:
        sockets.stop_listening(listening, address)


@pytest.mark.requirement("P4")
async def test_an_answer_that_came_while_the_one_who_asked_was_stopped_is_an_answer(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "GREETING_SECONDS", 1.0)
    async with neighbour_in(place) as address:
        reaching = asyncio.create_task(PeerNeighbours().reach(address, lambda _: Nobody()))
        for _ in range(3):
            await asyncio.sleep(0)  # by now it has asked
        time.sleep(2)  # noqa: ASYNC251  (that nothing goes on here is the point)
        link = await reaching
        assert await link.is_alive()
        link.close()


@pytest.mark.requirement("P4")
async def test_a_process_that_hangs_after_its_greeting_is_not_waited_for_without_end(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "SOON_SECONDS", 0.1)
    monkeypatch.setattr(links, "LIFE_SECONDS", 1.0)
    async with neighbour_in(place) as address:
        with pytest.raises(NeighbourLost, match="does not answer") as lost:
            await asyncio.wait_for(PeerNeighbours().ask(address, "status", None), PATIENCE)
        assert lost.value.hangs


async def test_what_a_process_left_that_died_before_it_listened_is_removed_in_time(place: Path) -> None:
    address = f"unix:{place}/own/x.sock"
    listening = sockets.listen(address)
    old, young = place / "own" / "old.new", place / "own" / "young.new"
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    sockets.remove_left_over(address)
    assert sorted(path.name for path in (place / "own").iterdir()) == ["x.sock", "young.new"]
    sockets.stop_listening(listening, address)


@pytest.mark.requirement("P7")
async def test_a_process_that_floods_and_does_not_read_harms_nobody(place: Path) -> None:
    async with open_elsewhere(place) as (_, client, session, path):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b'{"jsonrpc":"2.0","id":0,"method":"hello","params":{"version":1}}\n')
        assert b'"version":1' in await reader.readline()
        flood = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"status"}\n' % n for n in range(1, 200_000))
        writer.write(flood)  # and never a look at an answer
        for _ in range(5):
            assert await client.prompt(session, "20") == "end_turn"
        assert writer.transport.get_write_buffer_size() > 0, "it was read without end"
        writer.transport.abort()
        assert await client.prompt(session, "1") == "end_turn"


@pytest.mark.requirement("P7")
async def test_a_follower_that_hangs_is_dropped_and_the_others_see_everything(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachment, "DROP_BYTES", 4 << 20)
    async with open_elsewhere(place) as (host, client, session, path), serving(agent(), place / "s.db") as other:
        reading = await other.client(1)
        await reading.load(session, str(place))
        reader, writer = await asyncio.open_unix_connection(str(path))
        setup = Setup(
            "hangs", ClientInfo(protocol=2, name="hangs"), (str(place),), [], None, frozenset(), frozenset(),
            permission=False, principal=LOCAL, session_id=session,
        )  # fmt: skip
        asked: list[tuple[str, object]] = [
            ("hello", {"version": 1}), ("open", Open(session, LOCAL, "streams", setup)), ("attach", Attach()),
        ]  # fmt: skip
        for number, (method, params) in enumerate(asked):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            writer.write(msgspec.json.encode(request) + b"\n")
            answer: dict[str, Any] = msgspec.json.decode(await reader.readline())
            assert "result" in answer, answer
        writer.write(b'{"jsonrpc":"2.0","method":"follow"}\n')
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        engine = host.host.opened
        assert engine is not None
        assert await client.prompt(session, "100") == "end_turn"
        names = [watching.client.info.name for watching in engine.get(session).attachments]
        assert "hangs" not in names
        assert len(names) == 2
        await reading.until(lambda: len(reading.said()) == 10_000_000)
        writer.transport.abort()


class Nobody:
    """Takes what comes over a link, and does nothing with it."""

    async def requested(self, method: str, params: object) -> object:
        raise NotImplementedError

    async def notified(self, method: str, params: object) -> None: ...

    def lost(self) -> None: ...
