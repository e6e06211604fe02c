"""The official Python SDK's agent with ``COUNT`` sessions in a dict, as its examples keep them: memory for each.

An entry holds what `session/new` brought, an empty history, and what a running turn would be cancelled by.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from acp.schema import NewSessionRequest
from meter import Meter


def memory() -> int:
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def main(count: int) -> None:
    meter = Meter()
    sessions: dict[str, dict[str, Any]] = {}

    def new_session(n: int) -> None:
        request = NewSessionRequest.model_validate({"cwd": f"/home/somebody/project-{n}", "mcpServers": []})
        sessions[uuid4().hex] = {"request": request, "history": [], "cancelled": asyncio.Event()}

    for n in range(200):
        new_session(n)
    before = memory()
    for n in range(count):
        new_session(n)
    meter.more["memory"] = (memory() - before) / count
    meter.report()


if __name__ == "__main__":
    main(int(sys.argv[1]))
