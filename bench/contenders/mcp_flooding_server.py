"""An MCP server that shakes hands and then never stops talking.

``KIND`` says what it says: ``notices`` and ``progress`` are short notifications, ``logs`` long ones, ``requests`` are
questions for the roots, ``answers`` answer nothing, ``lines`` are no messages, ``stderr`` goes to stderr.
"""

import json
import os
import sys

CHUNK_BYTES = 64 << 10


def line(**message: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


SAID = {
    "notices": line(method="notifications/tools/list_changed"),
    "progress": line(method="notifications/progress", params={"progressToken": 1, "progress": 1}),
    "logs": line(method="notifications/message", params={"level": "info", "data": "x" * 100_000}),
    "requests": line(id="again", method="roots/list"),
    "answers": line(id=1_000_000, result={}),
    "lines": b"x\n",
    "stderr": b"x" * 99 + b"\n",
}


def shake_hands() -> None:
    message = json.loads(sys.stdin.readline())
    version = message["params"]["protocolVersion"]
    about = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "flood", "version": "0"}}
    os.write(1, line(id=message["id"], result=about))


def flood(kind: str) -> None:
    piece = SAID[kind]
    data = piece * max(1, CHUNK_BYTES // len(piece))
    while True:
        view = memoryview(data)
        while view:
            view = view[os.write(2 if kind == "stderr" else 1, view) :]


if __name__ == "__main__":
    shake_hands()
    flood(sys.argv[1])
