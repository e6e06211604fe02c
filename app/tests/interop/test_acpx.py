"""acpx, a client of the command line: every command is a process, and a process behind them keeps the agent a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.peers import PATIENCE, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(240)  # each of its commands takes seconds on a busy machine


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, "demo")
    yield stage
    stage.end_acpx()


@pytest.fixture
def weather(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, "examples/weather.py")
    yield stage
    stage.end_acpx()


def said(printed: list[dict[str, Any]]) -> str:
    """Put together what the agent said."""
    updates = [it["params"]["update"] for it in printed if it.get("method") == "session/update"]
    return "".join(it["content"]["text"] for it in updates if it["sessionUpdate"] == "agent_message_chunk")


def sent(printed: list[dict[str, Any]]) -> list[str]:
    """Name the requests that acpx made."""
    return [it["method"] for it in printed if "method" in it and "id" in it]


@pytest.mark.requirement("A11", "B1", "B4", "B5", "B7", "B13", "C5", "D4")
def test_acpx_leaves_and_comes_back_and_finds_everything(demo: Stage) -> None:
    (made,) = demo.acpx("sessions", "new")
    assert made["created"]
    id_ = made["acpxSessionId"]

    first = demo.acpx("prompt", "/history")
    assert sent(first) == ["initialize", "session/resume", "session/prompt"]
    assert said(first) == "You asked 1 time."

    demo.end_acpx()
    again = demo.acpx("prompt", "/history")
    assert sent(again) == ["initialize", "session/resume", "session/prompt"]
    assert said(again) == "You asked 2 times."

    (listed,) = demo.acpx("sessions", "list")
    assert [(it["sessionId"], it["title"]) for it in listed["sessions"]] == [(id_, "/history")]

    (mode,) = demo.acpx("set-mode", "auto")
    assert (mode["action"], mode["modeId"]) == ("mode_set", "auto")
    (option,) = demo.acpx("set", "tone", "pirate")
    assert {it["id"]: it["currentValue"] for it in option["configOptions"]} == {
        "mode": "auto",
        "model": "small",
        "tone": "pirate",
    }

    asleep = demo.start_acpx("prompt", "/sleep 60")
    assert asleep.stdout is not None
    next(line for line in asleep.stdout if "Good night" in line)
    (cancelled,) = demo.acpx("cancel")
    assert cancelled["cancelled"]
    rest, _ = asleep.communicate(timeout=PATIENCE)
    assert '"stopReason":"cancelled"' in rest

    (closed,) = demo.acpx("sessions", "close")
    assert (closed["action"], closed["acpxSessionId"]) == ("session_closed", id_)

    recorded = demo.recordings()
    assert [fault for it in recorded for fault in it.faults()] == []
    assert sum(it.methods["session/new"] for it in recorded) == 1
    assert sum(it.methods["session/close"] for it in recorded) == 1


def test_acpx_runs_the_agent_of_the_readme(weather: Stage) -> None:
    weather.acpx("sessions", "new")
    assert said(weather.acpx("prompt", "How warm is it?")) == "Reading the thermometer… It is 21 °C."
    weather.acpx("set-mode", "act")
    weather.acpx("prompt", "Write it down")
    assert (weather.cwd / "report.txt").read_text() == "21 °C"
    weather.end_acpx()
    assert [fault for it in weather.recordings() for fault in it.faults()] == []
