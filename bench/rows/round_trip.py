"""One request at a time, from either end: an agent asks and is answered, an agent is asked and answers."""

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

COUNT = 4_000
FIGURES = (
    Figure("CPU", "cpu", "µs", (Bound("share", 0.65, "python_sdk"),)),
    Figure("p50 wall", "p50", "µs", (Bound("share", 1, "python_sdk"), Bound("share", 1, "typescript_sdk"))),
)


def ask(contender: Contender) -> Sample:
    """Answer an agent that asks for a file, again and again. It notes how long each answer took."""
    with contender.start("agent") as agent:
        open_session(agent)
        for count in (COUNT - 1, COUNT):
            agent.write(prompt(f"ask {count}"))
            while END_OF_TURN not in (line := agent.read_line()):
                agent.write(b'{"jsonrpc":"2.0","id":%b,"result":{"content":"hello"}}\n' % id_of(line))
        take_turn(agent, "done")
        report = agent.finish()
    return {"cpu": report.laps[f"ask {COUNT}"].cpu / COUNT * 1e6, "p50": report.more["p50"] * 1e6}


def be_asked(contender: Contender) -> Sample:
    """Send an agent prompts it answers at once, and note how long each took."""
    with contender.start("agent") as agent:
        open_session(agent)
        _time_prompts(agent, COUNT)
        take_turn(agent, "begin")
        p50 = _time_prompts(agent, COUNT)
        take_turn(agent, "done")
        lap = agent.finish().laps["begin"]
    return {"cpu": lap.cpu / COUNT * 1e6, "p50": p50 * 1e6}


def _time_prompts(agent: ContenderProcess, count: int) -> float:
    took: list[float] = []
    line = prompt("nothing")
    for _ in range(count):
        asked = time.perf_counter()
        agent.write(line)
        agent.read_line()
        took.append(time.perf_counter() - asked)
    return statistics.median(took)


ASK = Benchmark(name="ask", title="request sent and its answer received", sample=ask, figures=FIGURES)
ANSWER = Benchmark(name="answer", title="request received and answered", sample=be_asked, figures=FIGURES)
