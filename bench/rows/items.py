"""Messages appended one by one and loaded again, against what other frameworks keep sessions with.

The others are given item by item. Ours come in turns of ten, as an agent at work makes them: a prompt, thoughts,
answers. They are in the turn's log before anyone is shown them, where the death of the process does not harm them;
prompt and end of a turn are synced to the disk. A trace shows one sync an item for `openai-agents` and `langgraph`, and
two a turn for ours; `google-adk` was not traced. Turns of two, so with a sync for each item too, are shown as well.
Ours can be searched afterwards.
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
ITEMS = {OURS: 10_000, "openai_agents": 10_000, "google_adk": 500, "langgraph": 10_000}
"""How many each takes; fewer where they take long. Figures are per item."""
IN_PAIRS = 2_000

MORE = Bound("at least", 1)


def compare(contender: Contender) -> Sample:
    """Let each of them have a go."""
    ours = _laps(OURS, contender.program, "10", "2")
    sample = {"append": ours["append"].wall, "append cpu": ours["append"].cpu, "load": ours["load"].wall}
    sample = {name: seconds / ITEMS[OURS] * 1e6 for name, seconds in sample.items()}
    sample["pairs"] = _laps(OURS, contender.program, "2", "2", items=IN_PAIRS)["append"].wall / IN_PAIRS * 1e6
    if not PYTHON.exists():
        print("The other frameworks are not installed: make .venv-bench/.ready", file=sys.stderr)
        return sample
    for name in OTHERS:
        theirs = _laps(name, str(PYTHON))
        for what, lap in theirs.items():
            sample[f"{name} {what}"] = lap.wall / ITEMS[name] * 1e6 / sample[what]
        sample[f"{name} append cpu"] = theirs["append"].cpu / ITEMS[name] * 1e6 / sample["append cpu"]
    return sample


def _laps(name: str, program: str, *more: str, items: int | None = None) -> dict[str, Lap]:
    with a_store() as store:
        script = str(SCRIPTS / f"{name}_items.py")
        with ContenderProcess((program, script, str(items or ITEMS[name]), store, *more)) as process:
            return process.finish().laps


APPEND = Benchmark(
    name="items",
    title="items, one by one",
    sample=compare,
    figures=(
        Figure("append", "append", "µs"),
        Figure("append, in turns of two", "pairs", "µs"),
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
