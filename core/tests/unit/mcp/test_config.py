from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from holdfast.errors import UsageError
from holdfast.mcp.config import read_config
from holdfast.mcp.servers import HttpServer, SseServer, StdioServer

if TYPE_CHECKING:
    from pathlib import Path


def test_the_file_of_other_tools_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    servers = {
        "files": {"command": "npx", "args": ["-y", "files"], "env": {"KEY": "value"}, "disabled": False},
        "web": {"url": "https://a.test/mcp", "headers": {"X-Key": "value"}},
        "named": {"type": "streamable-http", "url": "https://a.test/mcp"},
        "old": {"type": "sse", "url": "https://a.test/sse"},
    }
    file.write_text(json.dumps({"mcpServers": servers, "other": 1}))
    assert read_config(str(file)) == (
        StdioServer("files", "npx", ("-y", "files"), (("KEY", "value"),)),
        HttpServer("web", "https://a.test/mcp", (("X-Key", "value"),)),
        HttpServer("named", "https://a.test/mcp"),
        SseServer("old", "https://a.test/sse"),
    )


def test_what_is_switched_off_is_left_out_whatever_it_is(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    servers = {
        "a": {"command": "a", "disabled": True},
        "b": {"command": "b", "enabled": False},
        "c": {"type": "carrier-pigeon", "disabled": True},
        "d": {"command": "d", "disabled": False, "enabled": True},
        "e": {"command": "e", "disabled": None},
    }
    file.write_text(json.dumps({"mcpServers": servers}))
    assert [it.name for it in read_config(str(file))] == ["d", "e"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "must hold an object"),
        ('{"mcpServers": []}', "must hold an object"),
        ('{"mcpServers": {"a": 1}}', "'a' must be an object"),
        ('{"mcpServers": {"a": {}}}', "'a': .*command"),
        ('{"mcpServers": {"a": {"type": "carrier-pigeon"}}}', "of type 'carrier-pigeon'"),
    ],
)
def test_a_mistake_in_it_is_named(tmp_path: Path, written: str, said: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(written)
    with pytest.raises(UsageError, match=said):
        read_config(str(file))


def test_a_file_that_is_not_there_is_said_so() -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_config("/no/such/file.json")
