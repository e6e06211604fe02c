"""The status line, and the settings of a chat: which agent, and the command that goes on with a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from holdfast.errors import UsageError
from holdfast_app.chat.settings import Inspection, chat_settings, settings_in
from holdfast_app.chat.status import short_path, usage_parts


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (None, []),
        ({}, []),
        ({"used": 53_000, "size": 200_000}, ["53k of 200k tokens (26%)"]),
        ({"used": 999, "size": 0}, ["999 tokens"]),
        ({"used": 1_250_000, "size": 2_000_000, "cost": {"amount": 12.345, "currency": "USD"}},
         ["1.2M of 2M tokens (62%)", "$12.35"]),
        ({"used": 1, "size": 2, "cost": {"amount": 0.0451, "currency": "USD"}}, ["1 of 2 tokens (50%)", "$0.045"]),
        ({"cost": {"amount": 3, "currency": "EUR"}}, ["3.00 EUR"]),
        ({"used": "x", "cost": "y"}, []),
    ],
)  # fmt: skip
def test_usage_is_told_in_few_words(usage: dict[str, Any] | None, words: list[str]) -> None:
    assert usage_parts(usage) == words


def test_the_home_directory_is_a_tilde() -> None:
    assert short_path(str(Path.home() / "x" / "y")) == "~/x/y"
    assert short_path(str(Path.home())) == "~"
    assert short_path("/somewhere/else") == "/somewhere/else"


def started(
    agent: str | None, command: tuple[str, ...] | None = None, store: str | None = None, *, bare: bool = False
) -> Any:
    return chat_settings(
        agent, command, cwd="/p", newest=False, resume=None, permissions=None, store=store, protocol="auto", bare=bare
    )


def test_how_to_come_back_can_be_pasted_into_a_shell(tmp_path: Path) -> None:
    file = tmp_path / "my agent.py"
    file.touch()
    settings, _ = started(str(file), store="x.db")
    assert settings.resume_command("s1") == f"holdfast chat --resume s1 --store x.db '{file}'"
    settings, _ = started(None, ("gemini", "--acp"))
    assert settings.resume_command("s1") == "holdfast chat --resume s1 -- gemini --acp"
    assert settings.command[1:] == ("-m", "holdfast", "wrap", "--", "gemini", "--acp")  # its sessions hold, too
    settings, _ = started(None, ("gemini", "--acp"), store="x.db")
    assert settings.resume_command("s1") == "holdfast chat --resume s1 --store x.db -- gemini --acp"
    assert settings.command[1:] == ("-m", "holdfast", "wrap", "--store", "x.db", "--", "gemini", "--acp")
    settings, _ = started(None, ("gemini", "--acp"), bare=True)
    assert settings.resume_command("s1") == "holdfast chat --resume s1 --bare -- gemini --acp"
    assert settings.command == ("gemini", "--acp")


@pytest.mark.requirement("G1")
@pytest.mark.parametrize(
    "command",
    [
        "holdfast run weather.py",
        "/opt/bin/holdfast wrap -- gemini --acp",
        "python3.12 -X dev -m holdfast connect https://host/acp",
        "uvx holdfast run demo",
        "uv run holdfast run demo",
    ],
)
def test_a_holdfast_behind_the_dashes_is_talked_to_itself_because_it_keeps_its_sessions(command: str) -> None:
    settings, _ = started(None, tuple(command.split()))
    assert settings.command == tuple(command.split())
    assert settings.resume_command("s1") == f"holdfast chat --resume s1 -- {command}"
    settings, _ = started(None, tuple(command.split()), store="x.db")  # the user wants its sessions kept there too
    assert settings.command[3:] == ("wrap", "--store", "x.db", "--", *command.split())


@pytest.mark.parametrize("command", ["ssh host holdfast run demo", "holdfast-like run x", "gemini holdfast run"])
def test_what_only_looks_like_a_holdfast_is_wrapped(command: str) -> None:
    assert started(None, tuple(command.split()))[0].command[3] == "wrap"


def test_a_chat_with_a_server_shows_the_wire_and_comes_back_with_its_files() -> None:
    settings, _ = chat_settings(
        "https://host/acp", None, cwd="/p", newest=False, resume=None, permissions=None, store=None, protocol="auto",
        inspection=Inspection(wire=True, wire_file="w"), token_file="t", ca="c",
    )  # fmt: skip
    assert (settings.wire, settings.wire_file) == (True, "w")
    assert settings.resume_command("s1") == "holdfast chat --resume s1 --token-file t --ca c https://host/acp"
    assert settings.command[3:] == ("connect", "https://host/acp", "--token-file", "t", "--ca", "c", "--wait", "2")


def test_the_directory_of_the_session_may_be_another_than_where_the_agent_is_started(tmp_path: Path) -> None:
    (tmp_path / "agent.py").touch()
    settings = settings_in(str(tmp_path), started(str(tmp_path / "agent.py"))[0])
    assert (settings.cwd, settings.process_cwd) == (str(tmp_path), "/p")
    assert settings.resume_command("s") == f"holdfast chat --resume s --cwd {tmp_path} {tmp_path}/agent.py"
    with pytest.raises(UsageError, match="there is no such directory"):
        settings_in(str(tmp_path / "nothing"), settings)
    remote = settings_in("/srv/ada", started("https://host/acp")[0])  # which need not be here
    assert (remote.cwd, remote.process_cwd) == ("/srv/ada", "/p")
    with pytest.raises(UsageError, match="by its whole path"):
        settings_in("ada", remote)


def test_directories_are_mapped_for_a_server_and_for_nobody_else() -> None:
    asked = {"cwd": "/p", "newest": False, "resume": None, "permissions": None, "store": None, "protocol": "auto"}
    settings, _ = chat_settings("https://host/acp", None, maps=("/p=/srv", "/q=/home"), **cast("Any", asked))
    assert settings.command[3:-2] == ("connect", "https://host/acp", "--map", "/p=/srv", "--map", "/q=/home")
    assert settings.resume_command("s") == "holdfast chat --resume s --map /p=/srv --map /q=/home https://host/acp"
    with pytest.raises(UsageError, match="--token-file and --map: only for an agent on a server"):
        chat_settings("demo", None, maps=("/p=/srv",), token_file="t", **cast("Any", asked))


def test_without_a_name_it_is_the_coding_agent_if_it_has_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_MODEL", raising=False)
    settings, remark = started(None)
    assert settings.command[1:] == ("-m", "holdfast", "run", "demo")  # in a process of its own, as for an editor
    assert "demo agent" in remark
    monkeypatch.setenv("HOLDFAST_MODEL", "any:model")
    settings, remark = started(None)
    assert (settings.command[1:], remark) == (("-m", "holdfast", "run", "code"), "")


def test_a_file_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(UsageError, match="there is no file"):
        started("nothing.py")
