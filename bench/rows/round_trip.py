"""One request at a time, from either end: an agent asks and is answered, an agent is asked and answers.

Measured where the system puts the two processes, then with both on one core, then with a core for each. On one core
the wall time is the way through the code and little else. With a core for each most of it is the wait for a core to
wake up, and a contender that is still busy with the last answer when the next request comes need not be woken at all.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from bench.model import Benchmark, Bound, Figure
from bench.processes import id_of
from bench.wire import END_OF_TURN, open_session, prompt, take_turn

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender, ContenderProcess

WARM_UP = 6_000
COUNT = 2_000
CORES = {0: "p50", 1: "p50 on 1", 2: "p50 on 2"}
NOT_SLOWER = (Bound("share", 1, "python_sdk"), Bound("share", 1, "typescript_sdk"))
FIGURES = (
    Figure("CPU", "cpu", "µs", (Bound("share", 0.65, "python_sdk"),)),
    Figure("p50 wall", "p50", "µs", NOT_SLOWER),
    Figure("p50 wall on one core", "p50 on 1", "µs"),
    Figure("p50 wall on two cores", "p50 on 2", "µs"),
)


def ask(contender: Contender) -> Sample:
    """Answer an agent that asks for a file, again and again. It notes how long each answer took."""
    with contender.start("agent") as agent:
        open_session(agent)
        _answer_questions(agent, WARM_UP)
        for cores in CORES:
            if cores:
                agent.share_cores(cores)
            _answer_questions(agent, COUNT + cores)
        take_turn(agent, "done")
        report = agent.finish()
    p50s = {name: report.more[f"p50 of {COUNT + cores}"] * 1e6 for cores, name in CORES.items()}
    return p50s | {"cpu": report.laps[f"ask {COUNT + 1}"].cpu / COUNT * 1e6}


def _answer_questions(agent: ContenderProcess, count: int) -> None:
    agent.write(prompt(f"ask {count}"))
    while END_OF_TURN not in (line := agent.read_line()):
        agent.write(b'{"jsonrpc":"2.0","id":%b,"result":{"content":"hello"}}\n' % id_of(line))


def be_asked(contender: Contender) -> Sample:
    """Send an agent prompts it answers at once, and note how long each took."""
    sample: dict[str, float] = {}
    with contender.start("agent") as agent:
        open_session(agent)
        _time_prompts(agent, WARM_UP)
        for cores, name in CORES.items():
            if cores:
                agent.share_cores(cores)
            take_turn(agent, f"{cores} cores")  # begins a lap
            sample[name] = _time_prompts(agent, COUNT) * 1e6
        take_turn(agent, "done")
        sample["cpu"] = agent.finish().laps["1 cores"].cpu / COUNT * 1e6
    return sample


def _time_prompts(agent: ContenderProcess, count: int) -> float:
    took: list[float] = []
    line = prompt("nothing")
    for _ in range(count):
        asked = time.perf_counter()
        agent.write(line)
        agent.read_line()
        took.append(time.perf_counter() - asked)
    return statistics.median(took)


ASK = Benchmark(name="ask", title="request sent, answer received", sample=ask, figures=FIGURES)
ANSWER = Benchmark(name="answer", title="request received, answer sent", sample=be_asked, figures=FIGURES)
