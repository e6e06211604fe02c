"""What `core/tests/programs/record.py` has written down, and the judgement of the official schemas on it."""

from __future__ import annotations

import fcntl
import json
import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

from core.tests.support.schemas import faults, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIKE_OTHERS = re.compile(rb"[0-9a-f]{16,}|\d+")
"""Ids and numbers: frames that differ in nothing else are judged once, with 1 in their place."""


class Recording:
    """The frames of one agent process, in the order they came."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # waits until the agent is gone
            self.lines = file.read().split(b"\n")[:-1]
        self.methods: Counter[str] = Counter()
        """What the agent sent, counted: the methods it answered, asked and told of."""

    def faults(self) -> Iterator[str]:
        """Say what is wrong with the frames the agent sent."""
        asked: dict[str, str] = {}
        version = 1
        for line in self.lines:
            frame: dict[str, Any] = json.loads(line[1:])
            if frame.pop("jsonrpc", None) != "2.0":
                yield f"this is not JSON-RPC 2.0: {line!r}"
            if line.startswith(b"<"):
                if "method" in frame and "id" in frame:
                    asked[repr(frame["id"])] = frame["method"]
                continue
            method = frame["method"] if "method" in frame else asked[repr(frame["id"])]
            self.methods[method] += 1
            if method == "initialize" and "result" in frame:
                version = frame["result"]["protocolVersion"]
            yield from judge(version, method, LIKE_OTHERS.sub(b"1", line[1:]))


@cache
def judge(version: int, method: str, line: bytes) -> list[str]:
    """Say what is wrong with one frame; `method` is its own, or that of the request it answers."""
    return [f"{it} in {line[:600]!r}" for it in _faults(version, method, json.loads(line))]


def _faults(version: int, method: str, frame: dict[str, Any]) -> list[str]:
    match sorted(frame.keys() - {"jsonrpc"}):
        case ["id", "result"]:
            return faults(version, "agent", method, "Response", frame["result"])
        case ["error", "id"]:
            return [f"error of {method}, {it}" for it in invalid(version, "Error", frame["error"], stable=True)]
        case ["id", "method", "params"]:
            return faults(version, "client", method, "Request", frame["params"])
        case ["method", "params"]:
            side = "protocol" if method.startswith("$/") else "client"
            return faults(version, side, method, "Notification", frame["params"])
        case members:
            return [f"a frame of {members}"]


def recordings(directory: Path) -> list[Recording]:
    """Read what was written down of all agents that were started, once they are gone."""
    return [Recording(path) for path in sorted(directory.glob("*.frames"))]
