"""Agents on the official Python SDK with our sessions: one line of theirs changes, and they stay in their process."""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pytest

from core.tests.support.schemas import ROOT, lacking
from holdfast import connect
from holdfast.errors import ConnectionLost

if TYPE_CHECKING:
    from pathlib import Path

AGENTS = ROOT / "app" / "tests" / "interop" / "agents"
OURS = "from holdfast_app.acp_sdk import run_agent"
SDK1 = ROOT / ".venv-sdk1"


class Kind(NamedTuple):
    """An agent, the SDK it is written with, and the lines that are changed."""

    file: str
    pre_release: bool
    changed: tuple[tuple[str, str], ...]


V1 = (("from acp import Agent, run_agent, schema", f"from acp import Agent, schema\n{OURS}"),)
V2 = (
    (
        "from acp.experimental.v2 import run_agent, schema",
        f"from acp.experimental.v2 import run_agent as sdk, schema\n{OURS}",
    ),
    ("run_agent(Teller())", "run_agent(Teller(), sdk=sdk)"),
)
KINDS = {
    "0.12.1": Kind("python_v1.py", pre_release=False, changed=V1),
    "1.0 pre-release": Kind("python_v1.py", pre_release=True, changed=V1),
    "1.0 pre-release, version 2": Kind("python_v2.py", pre_release=True, changed=V2),
}


class Stage(NamedTuple):
    command: tuple[str, str]
    env: dict[str, str]
    cwd: Path
    lowest: int

    def pid(self) -> int:
        return int((self.cwd / "pid").read_text())


@pytest.fixture(params=KINDS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    kind = KINDS[request.param]
    program = (AGENTS / kind.file).read_text()
    for before, after in kind.changed:
        assert before in program
        program = program.replace(before, after)
    (tmp_path / "agent.py").write_text(
        f"{program.rstrip()}\n".replace(
            'if __name__ == "__main__":\n',
            'if __name__ == "__main__":\n    open("pid", "w").write(str(__import__("os").getpid()))\n',
        )
    )
    python, paths = sys.executable, [f"{ROOT / 'core' / 'src'}{os.pathsep}{ROOT / 'app' / 'src'}"]
    if kind.pre_release:  # it has the name of the released one, so it comes first; what else we need lies behind
        found = list(SDK1.glob("lib/python3*/site-packages/acp"))
        if not found:
            lacking("the pre-release of the Python SDK is not installed: `make test` does that")
        python = str(SDK1 / "bin" / "python")
        paths = [str(found[0].parent), *paths, sysconfig.get_path("purelib")]
    env = {"HOLDFAST_STORE": str(tmp_path / "sessions.db"), "PYTHONPATH": os.pathsep.join(paths)}
    return Stage((python, str(tmp_path / "agent.py")), env, tmp_path, 2 if kind.changed is V2 else 1)


@pytest.mark.timeout(200)
@pytest.mark.parametrize("protocol", [1, 2])
async def test_its_sessions_are_kept_listed_and_loaded_by_the_next_process(stage: Stage, protocol: int) -> None:
    protocol = max(protocol, stage.lowest)  # an agent that speaks version 2 alone is for clients of version 2
    options = {"env": stage.env, "cwd": stage.cwd, "protocol": protocol, "permissions": "allow", "timeout": 90}
    async with connect(*stage.command, **options) as agent:  # pyright: ignore[reportArgumentType]
        session = await agent.new_session(stage.cwd)
        assert (await session.ask_text("story")).replace("\n", "") == "Let me look. Done."
        before = session.history.markdown()
    assert "Read thermometer (read, completed)" in before and "21 °C" in before
    async with connect(*stage.command, **options) as agent:  # pyright: ignore[reportArgumentType]
        assert [listed.id async for listed in agent.sessions(stage.cwd)] == [session.id]
        assert (await agent.load(session.id, stage.cwd)).history.markdown() == before


@pytest.mark.timeout(200)
@pytest.mark.requirement("P1")
async def test_what_was_seen_is_there_after_a_kill(stage: Stage) -> None:
    received = session_id = ""
    with suppress(ConnectionLost):
        async with connect(*stage.command, env=stage.env, cwd=stage.cwd, timeout=90) as agent:
            session = await agent.new_session(stage.cwd)
            session_id = session.id
            async for update in session.prompt("wait"):
                received += update.text or "" if update.kind == "agent_message_chunk" else ""
                if received == "waiting":
                    os.kill(stage.pid(), signal.SIGKILL)
    assert received == "waiting"
    async with connect(*stage.command, env=stage.env, cwd=stage.cwd, timeout=90) as agent:
        loaded = await agent.load(session_id, stage.cwd)
        assert [entry.text() for entry in loaded.history if entry.entity == "agent_message"] == ["waiting"]
