"""`holdfast chat` finds agents by their names and by their sessions, and each conversation stays one session."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.wrapping import agent_command
from holdfast_app.editor_setup.jsonc import read_jsonc

if TYPE_CHECKING:
    from pathlib import Path

WEATHER = """
from holdfast import Agent, Turn

agent = Agent("weather")


@agent.prompt
async def answer(turn: Turn) -> None:
    turn.session.state["said"] = [*turn.session.state.get("said", []), turn.text]
    await turn.say(" ".join(turn.session.state["said"]))
"""


class Machine:
    """A machine with an agent called Gemini, which calls itself gemini-cli."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.home = place / "home"
        (place / "bin").mkdir()
        self.home.mkdir()
        self.install("gemini", "gemini-cli")
        (place / "weather.py").write_text(WEATHER)

    def install(self, program: str, own_name: str) -> None:
        path = self.place / "bin" / program
        path.write_text(f"#!/bin/sh\nAGENT_NAME={own_name} exec {shlex.join(agent_command())} titles-itself\n")
        path.chmod(0o755)

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run a command; return what it printed, and where it fails what it said of that."""
        env = {
            "PATH": f"{self.place}/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "AGENT_HOME": str(self.home),
            "HOLDFAST_STORE": str(self.place / "store" / "sessions.db"),
            "PYTHONUTF8": "1",
        }
        command = (sys.executable, "-m", "holdfast", *arguments)
        done = subprocess.run(
            command, cwd=self.place, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90,
            check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return done.stderr if status else done.stdout

    def say(self, text: str, *arguments: str, status: int = 0) -> str:
        return self.run("chat", "--print", "--prompt", text, *arguments, status=status)

    def sessions(self) -> list[tuple[str, str]]:
        """Return the ids of all sessions, with their agents, newest first."""
        listed: list[dict[str, Any]] = json.loads(self.run("sessions", "list", "--all", "--json"))["sessions"]
        return [(session["sessionId"], session["agent"]) for session in listed]

    def session(self, agent: str) -> str:
        """Return the id of the only session, which is an agent's."""
        ((session, owner),) = self.sessions()
        assert owner == agent
        return session


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.requirement("F1", "G9")
def test_one_conversation_is_one_session_whatever_starts_the_agent(machine: Machine) -> None:
    """The walk of the README: rescued in the terminal, gone on with in an editor."""
    machine.say("remember heron", "--", "gemini", "--acp")
    assert machine.say("recall", "--continue", "--", "gemini", "--acp") == "heron\n"
    session = machine.session("gemini")
    settings = machine.home / "settings.json"
    machine.run("setup", "zed", "gemini", "--yes", "--file", str(settings))
    (entry,) = read_jsonc(settings.read_text()).value["agent_servers"].values()
    editor = (entry["command"], *entry["args"])
    assert machine.say("recall", "--resume", session, "--", *editor) == "heron\n"
    for asked in (
        ("--continue", "--", *editor),
        ("--continue", "gemini"),
        ("--continue", "gemini-cli"),
        ("--continue",),
    ):
        assert machine.say("recall", *asked) == "heron\n"
    assert machine.session("gemini") == session


@pytest.mark.requirement("F1", "G9")
def test_a_session_that_the_agent_has_itself_is_adopted_once(machine: Machine) -> None:
    machine.say("remember heron", "--bare", "--", "gemini", "--acp")
    assert machine.say("recall", "--continue", "--", "gemini", "--acp") == "heron\n"
    session = machine.session("gemini")
    assert machine.say("recall", "--continue", "--name", "gemini-cli", "--", "gemini", "--acp") == "heron\n"
    machine.install("agent", "gemini")  # lists the same sessions under another name
    assert machine.say("recall", "--continue", "--", "agent") == "heron\n"
    told = machine.say("recall", "--continue", "--name", "mine", "--", "gemini", "--acp", status=1)
    assert "mine has no session in" in told
    assert machine.session("gemini") == session


@pytest.mark.requirement("F1")
def test_a_name_keeps_sessions_apart(machine: Machine) -> None:
    machine.say("remember heron", "gemini")
    machine.say("remember stork", "--name", "work", "gemini")
    machine.say("cold", "--name", "winter", "weather.py")
    assert sorted(agent for _, agent in machine.sessions()) == ["gemini", "winter", "work"]
    assert machine.say("recall", "--continue", "--name", "work", "--", "gemini", "--acp") == "stork\n"
    assert machine.say("wet", "--continue", "--name", "winter", "weather.py") == "cold wet\n"
    machine.run("web", "add", "--name", "winter", "weather.py")
    assert machine.say("dry", "--continue") == "cold wet dry\n"


def test_a_command_for_editors_that_is_started_by_hand_says_how_to_talk_to_the_same_sessions(machine: Machine) -> None:
    store = str(machine.place / "other.db")
    terminal, end = pty.openpty()
    command = (sys.executable, "-m", "holdfast", "wrap", "--name", "mine", "--store", store, "--", "gemini", "--acp")
    with subprocess.Popen(command, cwd=machine.place, stdin=end, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            told = process.stderr.readline()
        finally:
            process.kill()
    os.close(terminal)
    os.close(end)
    assert f"holdfast chat --name mine --store {store} -- gemini --acp (" in told


def test_a_known_agent_that_is_missing_says_how_to_install_it(machine: Machine) -> None:
    told = machine.say("hello", "claude", status=1)
    assert "there is no program claude-agent-acp on this machine" in told
    assert "npm install -g @agentclientprotocol/claude-agent-acp" in told
    assert "gemini" in machine.say("hello", "gemeni", status=1)
    (machine.place / "claude").mkdir()  # a directory is no agent
    assert "npm install" in machine.say("hello", "claude", status=1)
    assert "claude, codex, gemini" in machine.run("chat", "--help")


@pytest.mark.requirement("F1")
def test_a_session_is_resumed_by_its_id_alone(machine: Machine) -> None:
    machine.say("remember heron", "gemini")
    gemini = machine.session("gemini")
    assert machine.say("recall", "--resume", gemini[5:15]) == "heron\n"
    machine.say("hello", "demo")
    (demo, _), *_ = machine.sessions()
    assert machine.say("again", "--resume", demo) == "again\n"
    assert machine.say("more", "--continue") == "more\n"
    told = machine.say("recall", "--resume", gemini, "weather.py", status=1)
    assert f"session {gemini} belongs to the agent gemini, not to weather" in told
    assert told.endswith(f"Type: holdfast chat --resume {gemini}\n")
    assert "there is no session 'nothing'" in machine.say("recall", "--resume", "nothing", status=1)


@pytest.mark.requirement("F1")
def test_a_session_whose_agent_holdfast_cannot_start_says_what_to_type(machine: Machine) -> None:
    machine.say("cold", "weather.py")
    weather = machine.session("weather")
    line = f"Type: holdfast chat --resume {weather} FILE.py\n"
    assert machine.say("wet", "--resume", weather, status=1).endswith(line)
    assert machine.say("wet", "--continue", status=1).endswith(line)
    assert machine.say("wet", "--resume", weather, "gemini", status=1).endswith(line)
    machine.run("web", "add", "weather.py")
    assert machine.say("wet", "--resume", weather) == "cold wet\n"
    machine.install("heron", "heron")
    machine.say("remember heron", "--", "heron", "--key", f"sk-ant-{'a1B2' * 12}")  # a secret is not noted anywhere
    (heron, _), *_ = machine.sessions()
    assert machine.say("x", "--resume", heron, status=1).endswith(f"--resume {heron} --name heron -- COMMAND\n")


@pytest.mark.requirement("F1")
def test_a_session_of_any_command_is_resumed_by_its_id_alone(machine: Machine) -> None:
    machine.install("heron", "heron")
    machine.say("remember heron", "--name", "mine", "--", "./bin/heron", "--flag")
    assert machine.say("recall", "--resume", machine.session("mine")) == "heron\n"
    assert machine.say("recall", "--continue") == "heron\n"
    machine.say("remember stork", "--", "env", "AGENT_NAME=claude-code", *agent_command())
    (claude, _), *_ = machine.sessions()
    assert machine.say("recall", "--resume", claude) == "stork\n"  # though there is no program of Claude's
    assert "belongs to the agent claude, not to mine" in machine.say(
        "x", "--resume", claude, "--name", "mine", "gemini", status=1
    )


def test_without_any_session_the_default_agent_says_that_there_is_none(machine: Machine) -> None:
    assert "holdfast-demo has no session in" in machine.say("hello", "--continue", status=1)
    elsewhere = machine.place / "elsewhere"
    elsewhere.mkdir()
    machine.say("remember heron", "--cwd", str(elsewhere), "gemini")
    assert machine.say("recall", "--continue", "--cwd", os.path.relpath(elsewhere, machine.place)) == "heron\n"
