"""The page when things go wrong: the server is killed, the network is away, another program works in the session."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.web_process import AGENT, WebProcess, is_ready, new_session, say

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.browser import Browser, Page

pytestmark = pytest.mark.timeout(300)

COUNT = 200


def words_of(page: Page) -> list[str]:
    """Return the words of the last answer."""
    return page.texts(".entry.agent .prose")[-1].split()


@pytest.mark.requirement("P1", "P3")
def test_a_server_that_is_killed_in_mid_answer_comes_back_and_the_page_heals(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page() as page:
        web.sign_in(page)
        new_session(page, web.project)
        say(page, "before")
        page.sees(".entry.agent >> text=You said: before")
        say(page, "/slow 5000 100")
        page.sees("text=word20")
        web.kill()
        seen = words_of(page)
        page.sees("#state >> text=connecting")
        web.start()
        page.until("document.querySelector('#state').dataset.state !== 'offline'")
        page.sees(".entry.note >> text=broken off")
        healed = words_of(page)
        assert healed[: len(seen)] == seen
        assert healed == [f"word{number}" for number in range(len(healed))]
        say(page, "after")
        page.sees(".entry.agent >> text=You said: after")
        shown = entries_of(page)
        page.call(["reload"])
        is_ready(page)
        page.sees(".entry.agent >> text=You said: after")
        assert entries_of(page) == shown
        assert page.noted("error", "violation", "dialog") == []


def entries_of(page: Page) -> list[str]:
    entries = "[...document.querySelectorAll('.placed .entry')]"
    return page.run(f"{entries}.map(each => each.className + each.innerText)")


def test_what_was_missed_without_a_network_is_there_when_the_network_is(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page() as page:
        web.sign_in(page)
        new_session(page, web.project)
        say(page, f"/slow {COUNT} 100")
        page.sees("text=word10")
        page.call(["context"], ["setOffline", True])
        page.run("void 0")
        with browser.page(storageState=page.signed_in()) as other:
            other.open(page.run("location.href"))
            other.sees(".entry.agent >> text=done.")
        page.fill("#prompt", "said offline")
        page.press("Enter", "#prompt")
        page.sees("#composer .error:not(:empty)")
        assert page.run("document.querySelector('#prompt').value") == "said offline"
        page.call(["context"], ["setOffline", False])
        page.sees(".entry.agent >> text=done.")
        assert words_of(page) == [*(f"word{number}" for number in range(COUNT)), "done."]
        page.press("Enter", "#prompt")
        page.sees(".entry.agent >> text=You said: said offline")
        assert page.count(".entry.user >> text=said offline") == 1
        assert page.noted("error", "violation", "dialog") == []


class Editor:
    """An editor-shaped client: the agent as a process on the same store, spoken to over stdio."""

    def __init__(self, web: WebProcess) -> None:
        command = [sys.executable, "-m", "holdfast", "run", str(AGENT), "--store", str(web.store)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=web.project
        )
        self._number = 0
        self.updates: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []

    def request(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request; return its result. What comes in between is kept."""
        number = self.send(method, params)
        return self.result(number)

    def send(self, method: str, params: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return self._number

    def result(self, number: int) -> Any:
        while True:
            message = self.read()
            if message.get("id") == number and "method" not in message:
                assert "error" not in message, message
                return message["result"]

    def read(self) -> dict[str, Any]:
        """Read one message; what it is about is kept."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the agent has ended"
        message = json.loads(line)
        if message.get("method") == "session/update":
            self.updates.append(message["params"]["update"])
        elif message.get("method") == "session/request_permission":
            self.asked.append(message)
        return message

    def answer(self, question: dict[str, Any], option: str) -> None:
        assert self._process.stdin is not None
        result = {"outcome": {"outcome": "selected", "optionId": option}}
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}) + "\n")
        self._process.stdin.flush()

    def text(self) -> str:
        """Return what the agent has said so far."""
        return "".join(u["content"]["text"] for u in self.updates if u["sessionUpdate"] == "agent_message_chunk")

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def test_a_session_stays_in_step_with_an_editor(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page() as page:
        editor = Editor(web)
        try:
            editor.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            session = editor.request("session/new", {"cwd": str(web.project), "mcpServers": []})["sessionId"]
            hello = [{"type": "text", "text": "from the editor"}]
            editor.request("session/prompt", {"sessionId": session, "prompt": hello})
            web.sign_in(page)
            page.open(f"{web.base}/sessions/{session}")
            is_ready(page)
            page.sees(".entry.agent >> text=You said: from the editor")
            say(page, "from the page")
            page.sees(".entry.agent >> text=You said: from the page")
            while "You said: from the page" not in editor.text():
                editor.read()
            asked = editor.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "/run"}]})
            page.sees(".question >> text=rm -rf build")
            page.click(".question button[value=allow_once]")
            assert editor.result(asked)["stopReason"] == "end_turn"
            assert "It was allowed." in editor.text()
            page.sees(".entry.agent >> text=It was allowed.")
            say(page, "/run")
            page.sees(".question")
            while len(editor.asked) < 2:
                editor.read()
            editor.answer(editor.asked[-1], "reject_once")
            page.sees(".entry.agent >> text=It was not allowed.")
            page.misses(".question")
            assert page.noted("error", "complaint", "violation", "dialog") == []
        finally:
            editor.close()
