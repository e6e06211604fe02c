"""What makes a server a node: an address and a secret, or a clear word why not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
import pytest

from holdfast_app.cli.node_options import SECRET, node_address, node_secret

if TYPE_CHECKING:
    from pathlib import Path

GOOD = "0123456789abcdef0123456789abcdef"


def options(**changed: Any) -> dict[str, Any]:
    usual = {"node_url": "http://127.0.0.1:8181", "node_secret_file": None, "store": "postgresql://db/x"}
    return {**usual, "insecure": False, **changed}


@pytest.mark.requirement("P10")
def test_a_node_has_an_address_and_a_secret_which_leaves_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, GOOD)
    node = node_address(options(node_url="http://127.0.0.1:8181/"))
    assert node is not None
    assert node.url == "http://127.0.0.1:8181"
    assert node.name == "node http://127.0.0.1:8181"
    assert SECRET not in os.environ
    monkeypatch.setenv(SECRET, GOOD)
    assert node_address(options(node_url=None)) is None
    assert SECRET not in os.environ


def test_the_secret_is_read_from_a_file_without_its_newline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET, raising=False)
    file = tmp_path / "secret"
    file.write_text(GOOD + "\n")
    from_file = node_secret(file)
    monkeypatch.setenv(SECRET, GOOD)
    from_environment = node_secret()
    assert from_file is not None
    assert from_environment is not None
    assert from_file.check(from_environment.answer(from_file.challenge()).authorization) is not None


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"store": "/tmp/sessions.db"}, "is for sessions in PostgreSQL"),
        ({"node_url": "db.example"}, "write it as"),
        ({"node_url": "ws://127.0.0.1:1"}, "write it as"),
        ({"node_url": "http://a:b"}, "write it as"),
        ({"node_url": "http://me:word@127.0.0.1:1"}, "write it as"),
        ({"node_url": "http://10.0.0.7:8180"}, "others could listen in"),
        ({}, "openssl rand"),
    ],
)
def test_what_is_missing_or_unsafe_is_said(changed: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET, raising=False)
    with pytest.raises(click.UsageError, match=says):
        node_address(options(**changed))


def test_a_secret_without_an_address_and_one_that_is_short_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(click.UsageError, match="goes with --node-url"):
        node_address(options(node_url=None, node_secret_file=tmp_path))
    monkeypatch.setenv(SECRET, "short")
    with pytest.raises(click.UsageError, match="at least 16 bytes"):
        node_address(options())
