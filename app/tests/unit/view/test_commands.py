"""A command is one entry for a reader: its call, what its terminal showed, and how it ended."""

from __future__ import annotations

from base64 import b64encode
from itertools import permutations
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from holdfast.format import fold
from holdfast.view import commands
from holdfast.view.commands import Commands
from holdfast.view.entries import view_entry
from holdfast_app.export.markdown import MarkdownWriter
from holdfast_app.export.page import PageWriter

if TYPE_CHECKING:
    from collections.abc import Iterable

CALL: dict[str, Any] = {
    "sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Check", "kind": "execute", "status": "completed",
    "content": [{"type": "terminal", "terminalId": "t"}],
}  # fmt: skip
TERMINAL: dict[str, Any] = {
    "sessionUpdate": "terminal_update", "terminalId": "t", "command": "make check", "exitStatus": {"exitCode": 1},
    "output": {"data": b64encode(b"1 test failed").decode()},
}  # fmt: skip
SAID: dict[str, Any] = {
    "sessionUpdate": "agent_message", "messageId": "m", "content": [{"type": "text", "text": "I looked."}]
}  # fmt: skip


def entries(updates: Iterable[dict[str, Any]]) -> Any:
    return fold([msgspec.json.encode(update) for update in updates])


@pytest.mark.parametrize("order", list(permutations((CALL, TERMINAL, SAID))))
def test_an_export_has_a_command_as_one_entry(order: tuple[dict[str, Any], ...]) -> None:
    for writer in (MarkdownWriter(), PageWriter()):
        text = "".join([*map(writer.entry, entries(order)), writer.closing(0)])
        assert text.count("Check") == text.count("make check") == text.count("1 test failed") == 1
        assert text.count("exit status 1") == 1 and "I looked." in text
        assert "## Terminal" not in text and 'class="entry terminal' not in text
    assert 'data-status="failed"' in text and 'data-status="completed"' not in text


def test_a_terminal_that_no_call_shows_stays_an_entry() -> None:
    grouping = Commands()
    for number, entry in enumerate(entries([{**CALL, "content": []}, TERMINAL]), 1):
        assert grouping.take(number, entry) == []
    call, terminal = grouping.rest()
    assert (call.number, terminal.number) == (1, 2) and call.terminals == terminal.terminals == {}
    assert view_entry(terminal.entry).status == "exited with 1"


def test_entries_of_a_long_turn_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "MOST", 3)
    grouping = Commands()
    said = [{**SAID, "messageId": f"m{n}"} for n in range(8)]
    found = [it for n, entry in enumerate(entries(said)) for it in grouping.take(n, entry)]
    assert [it.number for it in found] == [0, 1, 2, 3, 4, 5]
    assert [it.number for it in grouping.rest()] == [6, 7]


def test_a_command_that_is_in_the_title_or_the_input_is_not_said_twice() -> None:
    (call, terminal) = entries([{**CALL, "title": "Run make check"}, TERMINAL])
    assert [part.text for part in view_entry(call, {"t": terminal}).parts] == ["1 test failed"]
    (call, terminal) = entries([{**CALL, "rawInput": {"command": "make check"}}, TERMINAL])
    assert [part.text for part in view_entry(call, {"t": terminal}).parts] == [
        "Input", "make check", "Output", "1 test failed",
    ]  # fmt: skip
