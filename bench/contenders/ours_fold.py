"""Holdfast's client folds chunks of one message into a history. Each argument is how many.

Each chunk comes as the parameters of its notification, as the wire has them; at the end the message is read.
"""

from __future__ import annotations

import sys

import msgspec
from meter import Meter
from params import CHUNK, TEXT

from holdfast.client.incoming import UpdateParams
from holdfast.model import History
from holdfast.surface.v1.lift import Lifting

read = msgspec.json.Decoder(UpdateParams).decode


def fold(count: int) -> str:
    history, lifting = History(), Lifting()
    for _ in range(count):
        for event in lifting.lift(bytes(read(CHUNK).update)):
            history.apply(event)
    (message,) = history
    return message.text()


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
