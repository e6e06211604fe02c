"""A session that is followed from another process: what an update costs at both ends, and how much later it comes.

The owner streams by turns in a session that nobody follows and in one that another process follows; both sessions
have one client at the owner. CPU is that of whole processes, from the system, and their ratio is what counts.
"""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.model import TIMES, Benchmark, Bound, Figure
from bench.places import a_store
from bench.wire import END_OF_TURN, INITIALIZE, NEW_SESSION, open_session, prompt, take_turn

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender, ContenderProcess

COUNT, SLICES = 20_480, 5
RATE, PACED = 400, 1_200
CHUNK = b"agent_message_chunk"
STALL_TURNS, STALL_COUNT = 4, 20_480


def follow(contender: Contender) -> Sample:
    """Measure what the relay costs, and how much later updates come through it."""
    with a_store() as store, contender.start("durable", store) as owner, contender.start("durable", store) as other:
        alone = open_session(owner, version=2)
        owner.write(NEW_SESSION)
        shared = owner.read_line().partition(b'"sessionId":"')[2].partition(b'"')[0].decode()
        take_turn(owner, "burst 64", shared)
        _load(other, shared)
        cpu: dict[str, list[float]] = {"alone": [], "owner": [], "follower": []}
        for session in (alone, shared):
            _turn(owner, other, session, followed=session == shared)
        for _ in range(SLICES):
            before = _cpu(owner)
            _turn(owner, other, alone, followed=False)
            cpu["alone"].append(_cpu(owner) - before)
            before, others = _cpu(owner), _cpu(other)
            _turn(owner, other, shared, followed=True)
            cpu["owner"].append(_cpu(owner) - before)
            cpu["follower"].append(_cpu(other) - others)
        added = _added(owner, other, shared)
    each = {name: statistics.median(found) / COUNT * 1e6 for name, found in cpu.items()}
    quantiles = statistics.quantiles(added, n=100)
    return {
        **each,
        "owner share": each["owner"] / each["alone"],
        "follower share": each["follower"] / each["alone"],
        "p50": quantiles[49] * 1e3,
        "p99": quantiles[98] * 1e3,
    }


def _load(client: ContenderProcess, session: str) -> None:
    client.write(INITIALIZE.replace(b'"protocolVersion":1', b'"protocolVersion":2'))
    client.read_line()
    client.write(
        b'{"jsonrpc":"2.0","id":1,"method":"session/resume","params":{"sessionId":"%b","cwd":"/","mcpServers":[]}}\n'
        % session.encode()
    )
    client.read_until(b'"id":1')


def _turn(owner: ContenderProcess, other: ContenderProcess, session: str, *, followed: bool) -> None:
    """Let the owner stream a turn, and read it at both ends."""
    reading = threading.Thread(target=other.read_until, args=(END_OF_TURN,))
    if followed:
        reading.start()
    owner.write(prompt(f"burst {COUNT}", session))
    owner.read_until(END_OF_TURN)
    if followed:
        reading.join()


def _added(owner: ContenderProcess, other: ContenderProcess, session: str) -> list[float]:
    """Return for each update of a paced turn how much later the follower's client has it than the owner's."""
    moments: dict[ContenderProcess, list[float]] = {owner: [], other: []}

    def read(process: ContenderProcess) -> None:
        rest = b""
        while True:
            said = rest + process.read()
            moments[process] += [time.perf_counter()] * said.count(CHUNK)
            if END_OF_TURN in said:
                return
            rest = said[len(said) - len(CHUNK) + 1 :]

    readers = [threading.Thread(target=read, args=(process,)) for process in moments]
    for reader in readers:
        reader.start()
    owner.write(prompt(f"paced {RATE} {PACED}", session))
    for reader in readers:
        reader.join()
    assert len(moments[owner]) == len(moments[other]) == PACED
    return [max(0.0, there - here) for here, there in zip(moments[owner], moments[other], strict=True)]


def _cpu(process: ContenderProcess) -> float:
    """Return the CPU time a process has used, all its threads, in seconds."""
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def stall(contender: Contender) -> Sample:
    """Compare the rate of ten followers with that of nine beside one that has stalled, by turns."""
    walls: dict[int, list[float]] = {0: [], 1: []}
    with a_store() as store, contender.start("durable", store) as owner:
        session = open_session(owner, version=2)
        take_turn(owner, "burst 64", session)
        for stalled in (0, 1, 0, 1):
            with contender.start("followers", store, session, str(STALL_TURNS), str(stalled)) as followers:
                followers.read_until(b"ready\n")
                for _ in range(STALL_TURNS):
                    take_turn(owner, f"burst {STALL_COUNT}", session)
                walls[stalled].append(followers.finish().more["wall"])
    return {"rate": statistics.median(walls[0]) / statistics.median(walls[1]) * 100}


RELAY = Benchmark(
    name="relay",
    title="a session followed from another process",
    sample=follow,
    figures=(
        Figure("CPU an update, nobody following", "alone", "µs"),
        Figure("CPU an update at the owner", "owner", "µs"),
        Figure("…of that without followers", "owner share", TIMES, (Bound("at most", 1.5),)),
        Figure("CPU an update at the follower", "follower", "µs"),
        Figure("…of that of an owner without followers", "follower share", TIMES, (Bound("at most", 1.5),)),
        Figure("how much later an update comes, p50", "p50", "ms", (Bound("at most", 1.0),)),
        Figure("how much later an update comes, p99", "p99", "ms", (Bound("at most", 5.0),)),
    ),
    who=("ours",),
)

FOLLOWERS = Benchmark(
    name="followers",
    title="ten followers, one of them stalled",
    sample=stall,
    figures=(Figure("the others' rate", "rate", "%", (Bound("at least", 90),)),),
    who=("ours",),
)
