"""A small MCP server that notes in a file what happens to it. A program of its own: imports nothing of ours."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Serve until the input ends."""
    note("started", word=os.environ.get("HOLDFAST_CHECK_WORD"), pid=os.getpid())
    for line in sys.stdin:
        try:
            message: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        if message.get("method") == "notifications/initialized":
            note("initialized")
        if "id" in message and "method" in message:
            answer(message)


def answer(message: dict[str, Any]) -> None:
    """Answer a request."""
    method = str(message["method"])
    params: dict[str, Any] = message.get("params") or {}
    result: object = {}
    if method == "initialize":
        about = {"name": "holdfast-check-notes", "version": "1"}
        result = {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}}, "serverInfo": about}
    elif method.endswith("/list"):
        result = {method.partition("/")[0]: []}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
    sys.stdout.flush()


def note(what: str, **more: object) -> None:
    """Append a line to the notes."""
    with open(sys.argv[1], "a", encoding="utf-8") as file:  # noqa: PTH123
        file.write(json.dumps({"what": what, **more}) + "\n")


if __name__ == "__main__":
    main()
