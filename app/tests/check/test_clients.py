"""The mirror image: what a client does wrong is seen, and a client that does nothing wrong fails nothing."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

import holdfast
from core.tests.support.schemas import SDK, lacking
from holdfast_app.check.client_check import PROBE_ID, ClientJudge
from holdfast_app.check.report import Outcome
from holdfast_app.check.requirements import CLIENT_REQUIREMENTS
from holdfast_app.check.schemas import find_schemas

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.timeout(120)

HELLO = {
    "protocolVersion": 1,
    "clientInfo": {"name": "small", "version": "1"},
    "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
}
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
QUESTION = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": OPTIONS}


class Talk:
    """A conversation written down: what a client says, and what an agent says."""

    def __init__(self) -> None:
        if not SDK.is_dir():
            lacking("the official schemas are not installed: they come with npm, by `make test`")
        self.judge = ClientJudge(find_schemas(SDK))

    def client(self, message: Any) -> None:
        self.judge.take(message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode())

    def agent(self, message: dict[str, Any]) -> None:
        self.judge.give(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def ask(self, id_: int, method: str, params: dict[str, Any], result: dict[str, Any]) -> None:
        self.client({"id": id_, "method": method, "params": params})
        self.agent({"id": id_, "result": result})

    def begin(self) -> None:
        """Say what every client says first."""
        self.ask(1, "initialize", HELLO, {"protocolVersion": 1})
        self.ask(2, "session/new", {"cwd": "/work", "mcpServers": []}, {"sessionId": "s"})
        self.agent({"id": PROBE_ID, "method": "_holdfast/check_probe", "params": {}})

    def question(self, answer: dict[str, Any], id_: int = 7) -> None:
        self.agent({"id": id_, "method": "session/request_permission", "params": QUESTION})
        self.client({"id": id_, "result": {"outcome": answer}})

    def probe_answered(self, code: int = -32601) -> None:
        self.client({"id": PROBE_ID, "error": {"code": code, "message": "no"}})

    def failed(self) -> set[str]:
        self.judge.ended()
        return {row.id for row in self.judge.report().results if row.outcome is Outcome.FAILED}


def well(talk: Talk) -> None:
    """Do everything right, and everything once."""
    talk.begin()
    talk.probe_answered()
    talk.client(
        {"id": 3, "method": "session/prompt", "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "x"}]}}
    )
    talk.question({"outcome": "selected", "optionId": "no"})
    talk.agent({"id": 8, "method": "session/request_permission", "params": QUESTION})
    talk.client({"method": "session/cancel", "params": {"sessionId": "s"}})
    talk.client({"id": 8, "result": {"outcome": {"outcome": "cancelled"}}})
    talk.agent({"id": 3, "result": {"stopReason": "cancelled"}})
    talk.ask(4, "session/close", {"sessionId": "s"}, {})
    talk.ask(5, "session/load", {"sessionId": "s", "cwd": "/work", "mcpServers": []}, {})


def test_a_client_that_does_nothing_wrong_fails_nothing() -> None:
    talk = Talk()
    well(talk)
    assert talk.failed() == set()
    report = talk.judge.report()
    assert report.agent == "small 1"
    assert {row.outcome for row in report.results} == {Outcome.PASSED}


def _starts_late(talk: Talk) -> None:
    talk.client({"id": 0, "method": "session/list", "params": {}})
    talk.agent({"id": 0, "error": {"code": -32600, "message": "no"}})
    well(talk)


def _invalid(talk: Talk) -> None:
    well(talk)
    talk.client({"id": 9, "method": "session/prompt", "params": {"sessionId": "s", "prompt": "x"}})


def _batch(talk: Talk) -> None:
    well(talk)
    talk.client(b'[{"jsonrpc":"2.0","method":"x"}]')


def _same_id(talk: Talk) -> None:
    well(talk)
    talk.client({"id": 9, "method": "session/list", "params": {}})
    talk.client({"id": 9, "method": "session/list", "params": {}})


def _silent(talk: Talk) -> None:
    well(talk)
    talk.agent({"id": 11, "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/x"}})


def _answers_updates(talk: Talk) -> None:
    well(talk)
    talk.client({"id": None, "error": {"code": -32603, "message": "no"}})


def _knows_everything(talk: Talk) -> None:
    talk.begin()
    talk.probe_answered(-32603)


def _guesses(talk: Talk) -> None:
    well(talk)
    prompt = {"sessionId": "guess", "prompt": [{"type": "text", "text": "x"}]}
    talk.client({"id": 9, "method": "session/prompt", "params": prompt})


def _relative(talk: Talk) -> None:
    well(talk)
    talk.client({"id": 9, "method": "session/new", "params": {"cwd": "work", "mcpServers": []}})


def _after_close(talk: Talk) -> None:
    well(talk)
    talk.ask(9, "session/close", {"sessionId": "s"}, {})
    talk.client(
        {"id": 10, "method": "session/prompt", "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "x"}]}}
    )


def _invents(talk: Talk) -> None:
    well(talk)
    talk.question({"outcome": "selected", "optionId": "whatever"}, 12)


def _answers_after_cancel(talk: Talk) -> None:
    well(talk)
    talk.agent({"id": 12, "method": "session/request_permission", "params": QUESTION})
    talk.client({"method": "session/cancel", "params": {"sessionId": "s"}})
    talk.client({"id": 12, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}})


def _nameless(talk: Talk) -> None:
    talk.ask(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}}, {"protocolVersion": 1})


BAD: dict[str, Callable[[Talk], None]] = {
    "client-initialize-first": _starts_late,
    "client-frames-valid": _invalid,
    "client-only-frames": _batch,
    "client-ids": _same_id,
    "client-answers": _silent,
    "client-foreign-answers": _answers_updates,
    "client-unknown-request": _knows_everything,
    "client-known-sessions": _guesses,
    "client-absolute-cwd": _relative,
    "client-closed-sessions": _after_close,
    "client-permission": _invents,
    "client-cancel-answers": _answers_after_cancel,
    "client-capabilities": _nameless,
}


def test_every_rule_for_clients_has_a_client_that_breaks_it() -> None:
    assert BAD.keys() == {row.id for row in CLIENT_REQUIREMENTS}


@pytest.mark.parametrize("rule", BAD)
def test_a_client_with_one_fault_fails_one_rule(rule: str) -> None:
    talk = Talk()
    BAD[rule](talk)
    assert talk.failed() == {rule}


def test_a_client_may_load_a_session_that_an_earlier_process_of_the_agent_gave_out() -> None:
    talk = Talk()
    well(talk)
    talk.ask(9, "session/load", {"sessionId": "old", "cwd": "/work", "mcpServers": []}, {})
    prompt = {"sessionId": "old", "prompt": [{"type": "text", "text": "x"}]}
    talk.ask(10, "session/prompt", prompt, {"stopReason": "end_turn"})
    assert talk.failed() == set()


@pytest.mark.parametrize("version", [1, 2])
async def test_our_own_client_fails_nothing(version: Any, tmp_path: Path) -> None:
    if not SDK.is_dir():
        lacking("the official schemas are not installed: they come with npm, by `make test`")
    files = {name: tmp_path / f"report.{name}" for name in ("json", "junit", "html", "markdown")}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    command = (sys.executable, "-m", "holdfast", "check", "--client", *options, "--schemas", str(SDK))
    async with holdfast.connect(*command, protocol=version, permissions="allow", files=True) as agent:
        session = await agent.new_session(tmp_path)
        for prompt in ("hello", "/ask", "/tool", "/plan"):
            assert await session.prompt(prompt) == "end_turn"
        await session.close()
        await agent.load(session.id, tmp_path)
    assert ET.fromstring(files["junit"].read_text())[0].get("failures") == "0"
    assert "what a client does" in files["html"].read_text()
    assert files["markdown"].read_text().startswith("## holdfast ")
    value = json.loads(files["json"].read_text())
    assert [row for row in value["results"] if row["outcome"] == "failed"] == []
    assert value["agent"].startswith("holdfast ")
    assert sum(row["outcome"] == "passed" for row in value["results"]) >= 9
