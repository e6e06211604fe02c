"""`langgraph`: its `PostgresSaver` puts ``COUNT`` checkpoints of one item each into ``STORE``, and lists them.

That is as little as it can be asked to do: a graph would put the whole conversation into each.
"""

# pyright: basic, reportMissingImports=false
# It lives in an environment of its own: .venv-bench.

from __future__ import annotations

import sys

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from meter import WARM_UP, Meter

TEXT = "a few words of an answer, say 32"


def append(saver: PostgresSaver, thread: str, count: int) -> dict:
    """Put so many checkpoints into a thread; return where they are."""
    config = at = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    for n in range(count):
        item = {"role": "assistant" if n % 2 else "user", "content": TEXT}
        checkpoint = {**empty_checkpoint(), "channel_values": {"item": item}, "channel_versions": {"item": str(n)}}
        at = saver.put(at, checkpoint, {"source": "loop", "step": n, "parents": {}}, {"item": str(n)})
    return config


def main(count: int, store: str) -> None:
    meter = Meter()
    with PostgresSaver.from_conn_string(store) as saver:
        saver.setup()
        append(saver, "warm up", WARM_UP)
        meter.lap("append")
        config = append(saver, "session", count)
        meter.lap("load")
        assert sum(1 for _ in saver.list(config)) == count
        meter.lap(None)
    meter.report()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
