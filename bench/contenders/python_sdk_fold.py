"""The official Python SDK's accumulator takes chunks of one message. Each argument is how many, as for ours."""

from __future__ import annotations

import sys

from acp.contrib.session_state import SessionAccumulator
from acp.schema import SessionNotification, TextContentBlock
from meter import Meter
from params import CHUNK, TEXT


def fold(count: int) -> str:
    accumulator = SessionAccumulator()
    for _ in range(count):
        accumulator.apply(SessionNotification.model_validate_json(CHUNK))
    blocks = [it.content for it in accumulator.snapshot().agent_messages]
    return "".join(it.text for it in blocks if isinstance(it, TextContentBlock))


def main(counts: list[str]) -> None:
    meter = Meter()
    for count in counts:
        meter.lap(count)
        said = fold(int(count))
        meter.lap(None)
        assert len(said) == int(count) * len(TEXT)
    meter.report()


if __name__ == "__main__":
    main(sys.argv[1:])
