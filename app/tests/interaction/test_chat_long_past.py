"""A session of very many entries, gone on with in a chat without a terminal."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from holdfast.format import fold, lines_of
from holdfast.model import SessionInfo, SessionState, new_session_id
from holdfast.store import open_store

if TYPE_CHECKING:
    from pathlib import Path


async def _store(place: Path, cwd: str, count: int) -> str:
    store = await open_store(str(place))
    said = (
        {"sessionUpdate": "agent_message", "messageId": f"a{n}", "content": [{"type": "text", "text": f"answer {n}."}]}
        for n in range(count)
    )
    info = SessionInfo(new_session_id(), cwd, (), "long", 1, 1, archived=False, messages=count, agent="holdfast-demo")
    await store.add(info, SessionState(), lines_of(fold(map(msgspec.json.encode, said))))
    await store.close()
    return info.id


@pytest.mark.requirement("P11")
def test_the_end_of_a_long_past_is_shown_and_how_much_is_not(tmp_path: Path) -> None:
    session = asyncio.run(_store(tmp_path / "s.db", str(tmp_path), 3_000))
    env = {"HOLDFAST_STORE": str(tmp_path / "s.db"), "PATH": "/usr/bin:/bin", "PYTHONUTF8": "1"}
    command = (sys.executable, "-m", "holdfast", "chat", "demo", "--resume", session)
    done = subprocess.run(
        command, cwd=tmp_path, env=env, input="hi\n", capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"2,000 earlier entries are not shown here; `holdfast sessions show {session}` has them." in done.stdout
    assert "answer 2000." in done.stdout and "answer 2999." in done.stdout and "answer 1999." not in done.stdout
