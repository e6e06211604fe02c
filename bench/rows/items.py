"""Messages appended one by one and loaded again, against what other frameworks keep sessions with.

A trace shows one sync an item for ours, `openai-agents` and `langgraph`; `google-adk` was not traced. Ours are whole
turns of the engine, a prompt and an answer, found by search afterwards.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bench.model import TIMES, Benchmark, Bound, Figure
from bench.places import a_store
from bench.processes import ROOT, SCRIPTS, ContenderProcess

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender, Lap

PYTHON = ROOT / ".venv-bench" / "bin" / "python"
OURS = "ours"
OTHERS = {
    "openai_agents": "openai-agents SQLiteSession",
    "google_adk": "google-adk DatabaseSessionService",
    "langgraph": "langgraph SqliteSaver",
}
ITEMS = {OURS: 2_000, "openai_agents": 2_000, "google_adk": 200, "langgraph": 2_000}
"""How many each takes: as many as take it a while. Figures are per item."""


MORE = Bound("at least", 1)


def compare(contender: Contender) -> Sample:
    """Let each of them have a go."""
    ours = _laps(OURS, contender.program)
    sample = {"append": ours["append"].wall, "append cpu": ours["append"].cpu, "load": ours["load"].wall}
    sample = {name: seconds / ITEMS[OURS] * 1e6 for name, seconds in sample.items()}
    if not PYTHON.exists():
        print("The other frameworks are not installed: make .venv-bench/.ready", file=sys.stderr)
        return sample
    for name in OTHERS:
        theirs = _laps(name, str(PYTHON))
        for what, lap in theirs.items():
            sample[f"{name} {what}"] = lap.wall / ITEMS[name] * 1e6 / sample[what]
        sample[f"{name} append cpu"] = theirs["append"].cpu / ITEMS[name] * 1e6 / sample["append cpu"]
    return sample


def _laps(name: str, program: str) -> dict[str, Lap]:
    with a_store() as store:
        script = str(SCRIPTS / f"{name}_items.py")
        with ContenderProcess((program, script, str(ITEMS[name]), store)) as process:
            return process.finish().laps


APPEND = Benchmark(
    name="items",
    title="messages, one by one",
    sample=compare,
    figures=(
        Figure("append", "append", "µs"),
        Figure("append, CPU", "append cpu", "µs"),
        Figure("load", "load", "µs"),
        *(
            Figure(f"{what}, {title} against ours", f"{name} {what}", TIMES, () if "cpu" in what else (MORE,))
            for name, title in OTHERS.items()
            for what in ("append", "append cpu", "load")
        ),
    ),
    who=("ours",),
)
