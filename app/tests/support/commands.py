"""The command line, run in this process, and stores for it to work on."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

from core.tests.support.sessions import ScriptedAgent, engine_at, run
from holdfast_app.cli.commands import main_for_people

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

HERE = "/project"
ELSEWHERE = "/elsewhere"

CALL = {
    "sessionUpdate": "tool_call_update",
    "toolCallId": "c1",
    "title": "Read thermometer",
    "kind": "read",
    "status": "completed",
    "rawInput": {"place": "roof"},
    "locations": [{"path": "/project/a.py", "line": 3}],
    "content": [
        {"type": "content", "content": {"type": "text", "text": "21 degrees"}},
        {
            "type": "diff",
            "path": "/project/a.py",
            "oldText": "cold\n",
            "newText": "warm\n",
            "changes": [{"operation": "modify", "path": "/project/a.py"}],
        },
    ],
}
TERMINAL = {
    "sessionUpdate": "terminal_update",
    "terminalId": "t1",
    "command": "ls",
    "output": {"data": "G1szMW1yZWQbWzBtCg=="},
    "exitStatus": {"exitCode": 0},
}
TOOLS = (
    "say I will look.",
    "think The roof may be wet.",
    f"emit {CALL!r}",
    f"emit {TERMINAL!r}",
    "plan Look again",
    "unknown happy",
    "say It is 21 degrees.",
)
"""A turn that has nearly everything in it."""


class Ran(NamedTuple):
    """What became of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def sessions(*arguments: str, stdin: bytes = b"", terminal: bool = False) -> Ran:
    """Run `holdfast sessions …`; `terminal` says that a person looks at its output and types its input."""
    kind = Terminal if terminal else io.StringIO
    out, err, before = kind(), kind(), sys.stdin
    sys.stdin = Terminal(stdin.decode()) if terminal else io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with redirect_stdout(out), redirect_stderr(err):
            status = main_for_people(["sessions", *arguments])
    finally:
        sys.stdin = before
    return Ran(status, out.getvalue(), err.getvalue())


async def a_store(place: Path | str, *talks: tuple[str, tuple[str, ...]]) -> list[str]:
    """Make a store: in each directory a session, with the turns that are given as scripts; give the ids."""
    async with engine_at(place, ScriptedAgent()) as engine:
        ids: list[str] = []
        for cwd, turns in talks:
            session = await engine.create(cwd)
            for script in turns:
                await run(engine, session, script)
            ids.append(session.id)
    return ids


def live_at(place: Path, monkeypatch: pytest.MonkeyPatch, cwd: Path | None = None) -> None:
    """Let commands work on a store, without colours, in a directory."""
    monkeypatch.setenv("HOLDFAST_STORE", str(place))
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "PWD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    if cwd is not None:
        monkeypatch.chdir(cwd)


def environment(place: Path) -> dict[str, str]:
    """Give the environment of a command in a process of its own."""
    return {**os.environ, "HOLDFAST_STORE": str(place), "NO_COLOR": "1"}
