"""`holdfast setup`: what it writes into settings, what it leaves alone, and how it is undone."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast.errors import UsageError
from holdfast_app.cli.commands import holdfast
from holdfast_app.editor_setup import changes_made, plan_change
from holdfast_app.editor_setup.jsonc import read_jsonc

ZED = '{\n  // mine\n  "theme": "One Dark",\n}\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of one's own, with an agent in it."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home)
    (home / "weather.py").write_text("from holdfast import Agent\nagent = Agent('weather')\n")
    return home


@pytest.fixture
def settings(home: Path) -> Path:
    file = home / ".config" / "zed" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(ZED)
    return file


def setup(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(holdfast, ["setup", *arguments], input=answer)


def test_an_agent_of_ones_own_is_put_into_zed_and_taken_out_to_the_last_byte(settings: Path, home: Path) -> None:
    settings.chmod(0o640)
    done = setup("zed", "weather.py", "--yes")
    assert done.exit_code == 0, done.output
    assert '+    "weather": {' in done.output
    entry = read_jsonc(settings.read_text()).value["agent_servers"]["weather"]
    assert entry["type"] == "custom"
    assert Path(entry["command"]).is_absolute()
    assert entry["args"] == ["run", str(home / "weather.py")]
    assert "// mine" in settings.read_text()
    assert stat.S_IMODE(settings.stat().st_mode) == 0o640
    assert "has it already" in setup("zed", "weather.py", "--yes").output
    assert setup("zed", "--undo", "--yes").exit_code == 0
    assert settings.read_text() == ZED
    assert changes_made() == []
    assert [file.name for file in settings.parent.iterdir()] == ["settings.json"]


def test_undo_takes_back_what_was_set_and_leaves_what_came_after(settings: Path) -> None:
    setup("zed", "weather.py", "--yes")
    settings.write_text(settings.read_text().replace("One Dark", "Ayu"))
    assert setup("zed", "--undo", "--yes").exit_code == 0
    assert settings.read_text() == ZED.replace("One Dark", "Ayu")
    again = setup("zed", "--undo", "--yes")
    assert again.exit_code == 1


def test_undo_gives_back_what_stood_there_before(home: Path) -> None:
    file = home / ".jetbrains" / "acp.json"
    file.parent.mkdir()
    before = '{"agent_servers": {"weather": {"command": "old"}}}'
    file.write_text(before)
    setup("jetbrains", "weather.py", "--yes")
    file.write_text(file.read_text() + "\n")
    setup("jetbrains", "--undo", "--yes")
    assert read_jsonc(file.read_text()).value == json.loads(before)


def test_a_file_that_was_not_there_is_gone_after_undo(home: Path) -> None:
    assert setup("jetbrains", "demo", "--yes").exit_code == 0
    file = home / ".jetbrains" / "acp.json"
    assert json.loads(file.read_text())["agent_servers"]["holdfast demo"]["args"] == ["run", "demo"]
    assert setup("jetbrains", "--undo", "--yes").exit_code == 0
    assert not file.exists()


def test_a_script_is_called_by_its_name_and_found_wherever_the_editor_starts_it(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weather.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert setup("zed", "--yes", "--", sys.executable, "-u", "weather.py", "--style", "no.file").exit_code == 0
    added = read_jsonc(settings.read_text()).value["agent_servers"]["weather, kept"]["args"]
    assert added[:2] == ["wrap", "--"]  # its sessions have the name that it has in the terminal too: its own
    assert added[3:] == ["-u", str(tmp_path / "weather.py"), "--style", "no.file"]


@pytest.mark.requirement("F1")
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["gemini"], "gemini"),
        (["gemini-cli"], "gemini"),
        (["--", "gemini", "--acp"], "gemini"),
        (["--", "npx", "-y", "@google/gemini-cli", "--acp"], "gemini"),
        (["--name", "mine", "gemini"], "mine"),
    ],
)
def test_a_known_agent_has_one_name_whatever_command_starts_it(
    arguments: list[str], name: str, settings: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("gemini", "npx"):
        (home / program).write_text("#!/bin/sh\n")
        (home / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(home))
    done = setup("zed", "--title", "G", "--yes", *arguments)
    assert done.exit_code == 0, done.output
    assert read_jsonc(settings.read_text()).value["agent_servers"]["G"]["args"][:3] == ["wrap", "--name", name]


@pytest.mark.requirement("F1")
def test_an_agent_of_ours_gets_the_name_that_the_user_gives_it(settings: Path, home: Path) -> None:
    assert setup("zed", "weather.py", "--name", "winter", "--yes").exit_code == 0
    added = read_jsonc(settings.read_text()).value["agent_servers"]["winter"]["args"]
    assert added == ["run", "--name", "winter", str(home / "weather.py")]


def test_a_wrapped_agent_is_found_by_its_short_name_or_by_its_command(
    settings: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = setup("zed", "claude", "--yes")
    assert missing.exit_code == 1
    assert isinstance(missing.exception, UsageError)
    assert "npm install -g @agentclientprotocol/claude-agent-acp" in str(missing.exception)
    programs = home / "bin"
    programs.mkdir()
    for name in ("claude-agent-acp", "other"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    assert setup("zed", "claude", "--yes").exit_code == 0
    assert setup("zed", "--name", "mine", "--yes", "--", "other", "--acp", "-x").exit_code == 0
    servers = read_jsonc(settings.read_text()).value["agent_servers"]
    assert servers["Claude, kept"]["args"] == ["wrap", "--name", "claude", "--", str(programs / "claude-agent-acp")]
    assert servers["mine, kept"]["args"] == ["wrap", "--name", "mine", "--", str(programs / "other"), "--acp", "-x"]
    assert len(changes_made()) == 2
    assert "Claude, kept" in setup().output
    setup("zed", "--undo", "--yes")
    setup("zed", "--undo", "--yes")
    assert settings.read_text() == ZED


def test_nothing_is_changed_without_a_yes(settings: Path) -> None:
    for arguments in (["--dry-run"], []):
        setup("zed", "weather.py", *arguments)
        assert settings.read_text() == ZED
    assert changes_made() == []


@pytest.mark.parametrize("text", ['{"theme": ', "not json", "[]", '{"agent_servers": []}'])
def test_a_file_that_cannot_be_read_is_left_alone(settings: Path, text: str) -> None:
    settings.write_text(text)
    refused = setup("zed", "weather.py", "--yes")
    assert refused.exit_code == 1
    assert "left alone" in str(refused.exception)
    assert settings.read_text() == text


def test_two_agents_with_one_title_do_not_take_each_others_place(settings: Path, home: Path) -> None:
    (home / "other").mkdir()
    (home / "other" / "weather.py").write_text("from holdfast import Agent\nagent = Agent('weather')\n")
    assert setup("zed", "weather.py", "--yes").exit_code == 0
    refused = setup("zed", "other/weather.py", "--yes")
    assert isinstance(refused.exception, UsageError)
    assert f"starts another command: {Path(sys.executable).parent / 'holdfast'} run {home / 'weather.py'}" in str(
        refused.exception
    )
    assert setup("zed", "other/weather.py", "--title", "weather 2", "--yes").exit_code == 0
    assert list(read_jsonc(settings.read_text()).value["agent_servers"]) == ["weather", "weather 2"]
    assert setup("zed", "other/weather.py", "--title", "weather", "--yes").exit_code == 0
    servers = read_jsonc(settings.read_text()).value["agent_servers"]
    assert servers["weather"]["args"] == ["run", str(home / "other" / "weather.py")]


def test_what_the_user_has_added_to_an_agent_stays_when_it_is_set_up_again(settings: Path) -> None:
    assert setup("zed", "weather.py", "--yes").exit_code == 0
    mine = settings.read_text().replace('"env": {}', '"env": {"KEY": "1"}, "default_mode": "ask"')
    settings.write_text(mine.replace(str(Path(sys.executable).parent), "/of/an/older/installation"))
    assert setup("zed", "weather.py", "--yes").exit_code == 0
    entry = read_jsonc(settings.read_text()).value["agent_servers"]["weather"]
    assert (entry["env"], entry["default_mode"]) == ({"KEY": "1"}, "ask")
    assert Path(entry["command"]).parent == Path(sys.executable).parent
    assert "has it already" in setup("zed", "weather.py", "--yes").output


def test_an_undo_that_cannot_read_the_settings_says_which_file_and_where(settings: Path) -> None:
    assert setup("zed", "weather.py", "--yes").exit_code == 0
    settings.write_text('{ "theme": }')
    refused = setup("zed", "--undo", "--yes")
    assert isinstance(refused.exception, UsageError)
    assert f"{settings} was left alone" in str(refused.exception) and "line 1, column 12" in str(refused.exception)
    assert settings.read_text() == '{ "theme": }'


def test_settings_that_cannot_be_read_at_all_are_named(settings: Path) -> None:
    settings.unlink()
    settings.mkdir()
    refused = setup("zed", "weather.py", "--yes")
    assert isinstance(refused.exception, UsageError)
    assert f"{settings} was left alone, because it cannot be read: Is a directory" in str(refused.exception)


def test_a_link_that_leads_to_itself_is_left_alone(settings: Path) -> None:
    settings.unlink()
    settings.symlink_to(settings.name)
    refused = setup("zed", "weather.py", "--yes")
    assert isinstance(refused.exception, UsageError)
    assert "a link that leads to itself" in str(refused.exception)


def test_a_link_to_settings_that_are_not_there_yet_makes_them_where_it_leads(home: Path, settings: Path) -> None:
    settings.unlink()
    settings.symlink_to(home / "dotfiles" / "zed.json")
    assert setup("zed", "weather.py", "--yes").exit_code == 0
    assert settings.is_symlink() and "weather" in (home / "dotfiles" / "zed.json").read_text()
    assert setup("zed", "--undo", "--yes").exit_code == 0
    assert settings.is_symlink() and not (home / "dotfiles" / "zed.json").exists()


def test_a_change_is_remembered_before_it_is_made(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(made: list[dict[str, Any]]) -> None:
        raise OSError(28, f"No space left for {len(made)} on the device")

    change = plan_change("zed", settings, ("agent_servers", "weather"), {"command": "x", "args": []})
    with monkeypatch.context() as patched:
        patched.setattr("holdfast_app.editor_setup.changes._write_record", refuse)
        with pytest.raises(OSError, match="No space"):
            change.make()
    assert settings.read_text() == ZED


def test_a_link_to_settings_elsewhere_stays_a_link(home: Path, settings: Path) -> None:
    real = home / "dotfiles.json"
    settings.rename(real)
    settings.symlink_to(real)
    setup("zed", "weather.py", "--yes")
    assert settings.is_symlink()
    assert "weather" in real.read_text()


def test_a_file_that_was_changed_while_somebody_thought_is_left_alone(settings: Path) -> None:
    change = plan_change("zed", settings, ("agent_servers", "x"), {})
    settings.write_text("{}")
    with pytest.raises(UsageError, match="changed meanwhile"):
        change.make()
    assert settings.read_text() == "{}"


@pytest.mark.skipif(sys.platform == "win32", reason="rights are others there")
def test_what_a_file_was_is_kept_for_its_owner_alone(settings: Path) -> None:
    setup("zed", "weather.py", "--yes")
    (record,) = changes_made()
    backup = Path(record["backup"])
    assert backup.read_text() == ZED
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(backup.parent.stat().st_mode) == 0o700


def test_acpx_gets_a_name_that_one_can_type(home: Path) -> None:
    assert setup("acpx", "--yes", "--", "/bin/sh", "-c", "x").exit_code == 0
    agents = json.loads((home / ".acpx" / "config.json").read_text())["agents"]
    assert agents["sh-kept"]["argv"][1:] == ["wrap", "--", "/bin/sh", "-c", "x"]


@pytest.mark.parametrize(
    ("editor", "has"), [("codecompanion", "commands = {"), ("agent-shell", ":command-params"), ("toad", "toad acp ")]
)
def test_editors_whose_settings_are_programs_get_text_to_paste(editor: str, has: str, home: Path) -> None:
    printed = setup(editor, "weather.py")
    assert printed.exit_code == 0
    assert has in printed.output
    assert str(home / "weather.py") in printed.output
    assert changes_made() == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["zed"], "Which agent"),
        (["zed", "nothing.py"], "no nothing.py"),
        (["zed", "--undo", "weather.py"], "the editor alone"),
        (["zed", "no-such-program"], "no program no-such-program"),
    ],
)
def test_what_makes_no_sense_is_said(arguments: list[str], says: str) -> None:
    refused = setup(*arguments)
    assert refused.exit_code != 0
    assert says in f"{refused.output} {refused.exception}"
