"""A wrapped agent that can neither load nor resume, driven by acpx: it remembers across a restart of the proxy."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.peers import RECORD, Stage
from app.tests.support.wrapping import agent_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(240)  # each of acpx's commands takes seconds on a busy machine

FORGETFUL = ("no-load", "no-resume", "no-list", "no-fork", "no-close", "no-delete", "keeps-nothing")
"""acpx splits its commands at spaces."""


def wrapped_stage(directory: Path, *options: str) -> Stage:
    stage = Stage(directory, "demo")
    store = ("--store", str(directory / "sessions.db"))
    wrap = [sys.executable, "-m", "holdfast", "wrap", *store, *options, "--", *agent_command(*FORGETFUL)]
    stage.agent = [sys.executable, str(RECORD), str(directory / "recorded"), *wrap]
    return stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    (tmp_path / "agent").mkdir()
    monkeypatch.setenv("AGENT_HOME", str(tmp_path / "agent"))
    stage = wrapped_stage(tmp_path)
    yield stage
    stage.end_acpx()


def said(printed: list[dict[str, Any]]) -> str:
    updates = [it["params"]["update"] for it in printed if it.get("method") == "session/update"]
    return "".join(it["content"]["text"] for it in updates if it["sessionUpdate"] == "agent_message_chunk")


@pytest.mark.requirement("G6", "P11")
def test_an_agent_without_load_remembers_across_a_restart_and_the_user_sees_why(stage: Stage) -> None:
    stage.acpx("sessions", "new")
    assert said(stage.acpx("prompt", "remember heron")) == "Noted."
    stage.end_acpx()  # the proxy and the agent are gone
    answer = said(stage.acpx("prompt", "recall"))
    assert answer.endswith("heron")
    assert answer.startswith("The agent no longer has this conversation.")
    heard = json.loads(said(stage.acpx("prompt", "heard session/prompt")))  # the note is not said again
    told, asked = (message["params"]["prompt"] for message in heard)
    assert [block["type"] for block in told].count("resource") == 1
    assert told[0] == {"type": "text", "text": "recall"}
    assert asked == [{"type": "text", "text": "heard session/prompt"}]
    stage.end_acpx()
    assert [fault for it in stage.recordings() for fault in it.faults()] == []


@pytest.mark.requirement("G6")
def test_refuse_answers_that_the_session_is_gone(stage: Stage) -> None:
    (made,) = stage.acpx("sessions", "new")
    assert said(stage.acpx("prompt", "remember heron")) == "Noted."
    stage.end_acpx()
    stage.agent = [
        *stage.agent[: stage.agent.index("--")],
        "--on-lost-context",
        "refuse",
        *stage.agent[stage.agent.index("--") :],
    ]
    done = stage.start_acpx("prompt", "recall")
    printed, _ = done.communicate(timeout=150)
    assert "-32002" in printed
    assert made["acpxSessionId"]
