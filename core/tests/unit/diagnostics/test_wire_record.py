"""Recordings of the wire: every message of every connection, as JSON lines, without keys."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.diagnostics.wire_record import WireRecord
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-ant-api03-abcdefghij0123456789abcdefghij0123456789"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_both_sides_are_recorded_in_one_file_in_order(tmp_path: Path) -> None:
    record = WireRecord(str(tmp_path / "wire"))
    client, agent = record.between("holdfast", "client"), record.between("holdfast", "agent")
    client("in", b'{"id": 1, "method": "initialize", "params": {}}\n')
    agent("out", b'{"id": 1, "method": "initialize", "params": {}}')
    agent("in", b'{"id": 1, "result": {"x": null}}')
    told = [(line["from"], line["to"], line["message"]) for line in lines(tmp_path / "wire")]
    asked: dict[str, Any] = {"id": 1, "method": "initialize", "params": {}}
    assert told == [
        ("client", "holdfast", asked),
        ("holdfast", "agent", asked),
        ("agent", "holdfast", {"id": 1, "result": {"x": None}}),
    ]


@pytest.mark.requirement("P10")
def test_no_key_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "a-value-of-mine")
    observe = WireRecord(str(tmp_path / "wire")).between("holdfast", "client")
    said = {
        "params": {
            "_meta": {"proxy": {"token": "aBcDeF0123456789aBcDeF0123"}},
            "text": f"{KEY} a-value-of-mine",
            "mcpServers": [{"env": [{"name": "A", "value": "hidden-value"}]}],
        }
    }
    observe("in", json.dumps(said).encode())
    observe("in", f"no JSON {KEY}".encode())
    text = (tmp_path / "wire").read_text()
    for secret in (KEY, "a-value-of-mine", "hidden-value", "aBcDeF0123456789aBcDeF0123"):
        assert secret not in text
    first, second = lines(tmp_path / "wire")
    assert first["message"]["params"]["mcpServers"][0]["env"][0]["name"] == "A"
    assert second["malformed"].startswith("no JSON")
    assert stat.S_IMODE((tmp_path / "wire").stat().st_mode) == 0o600


def test_long_texts_are_whole_and_an_earlier_recording_is_gone_on_with(tmp_path: Path) -> None:
    for _ in range(2):
        WireRecord(str(tmp_path / "wire")).between("a", "b")("out", json.dumps({"text": "word " * 1000}).encode())
    assert [line["message"]["text"] for line in lines(tmp_path / "wire")] == ["word " * 1000] * 2


def test_a_file_that_cannot_be_written_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write to"):
        WireRecord(str(tmp_path))
