"""What goes with a prompt, how terminals say what they are, and how keys are reported: without a terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.keys import Keys

from holdfast.view.blocks import Note
from holdfast_app.chat.attachments import (
    MAX_EMBEDDED,
    Takes,
    attach_files,
    complete_files,
    mention_before,
    pasted_image,
)
from holdfast_app.chat.paint import Painter
from holdfast_app.chat.shell_command import ShellResult
from holdfast_app.chat.terminal_keys import learn_keys
from holdfast_app.chat.theme import choose_theme, theme_of_answer, theme_of_environment

if TYPE_CHECKING:
    from pathlib import Path

ALL, NONE = Takes(images=True, resources=True), Takes(images=False, resources=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("print(1)\n")
    (root / "two words.txt").write_text("hello")
    (root / "binary.dat").write_bytes(b"\xff\0")
    (root / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "outside.txt").write_text("secret")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    return root


def kinds(text: str, root: Path, takes: Takes) -> list[str]:
    return [block["type"] for block in attach_files(text, (str(root),), takes).blocks]


def test_a_file_is_embedded_linked_or_shown_as_the_agent_allows(root: Path) -> None:
    text = 'see @src/main.py, @"two words.txt" and @binary.dat (@picture.png) @src'
    assert kinds(text, root, ALL) == ["resource", "resource", "resource_link", "image", "resource_link"]
    assert kinds(text, root, NONE) == ["resource_link"] * 5
    assert kinds("@src/main.py @./src/main.py @src/main.py.", root, ALL) == ["resource"]
    (root / "long.txt").write_text("x" * (MAX_EMBEDDED + 1))
    assert kinds("@long.txt", root, ALL) == ["resource_link"]


@pytest.mark.requirement("P9")
@pytest.mark.parametrize("name", ["../outside.txt", "link.txt", "/etc/hostname", "~/x.txt", "src/../../outside.txt"])
def test_what_is_outside_stays_text_and_is_told_of(name: str, root: Path) -> None:
    attached = attach_files(f"read @{name}", (str(root),), ALL)
    assert attached.blocks == []
    assert "is no file inside" in attached.remarks[0]
    assert not any("outside" in found.text for found in complete_files(name.rpartition("/")[2][:4], (str(root),)))


def test_people_and_addresses_are_not_taken_for_files(root: Path) -> None:
    attached = attach_files("ask @ada, mail bob@example.org, use a@b", (str(root),), ALL)
    assert attached == ([], [])


def test_files_are_completed_by_their_beginning_and_by_a_part_of_their_name(root: Path) -> None:
    (root / ".hidden").write_text("")
    (root / "new\nline.txt").write_text("")
    (root / "evil\x1b]0;x\x07.txt").write_text("")
    assert not any("line" in name.text or "evil" in name.text for name in complete_files("", (str(root),)))
    (root / "node_modules").mkdir()
    (root / "node_modules" / "main.js").write_text("")

    def found(typed: str) -> list[str]:
        return [candidate.text for candidate in complete_files(typed, (str(root),))]

    assert found("src/") == ["@src/main.py"]
    assert found("main") == ["@src/main.py"]
    assert found("two") == ['@"two words.txt"']
    assert "@src/" in found("") and "@.hidden" not in found("")
    assert found(".hid") == ["@.hidden"]
    assert found("no/such/place/") == []
    assert mention_before("look at @src/ma") == "src/ma"
    assert mention_before("mail me@home") is None and mention_before("no") is None


def test_the_name_of_an_image_that_was_dropped_is_understood(root: Path) -> None:
    picture = root / "my picture.png"
    picture.write_bytes(b"\x89PNG")
    for text in (str(picture), f"'{picture}'", str(picture).replace(" ", "\\ "), f"{picture}\n"):
        assert pasted_image(text) == picture
    for text in (
        "",
        "picture.png",
        str(root / "src" / "main.py"),
        str(root / "none.png"),
        f"{picture}\n{picture}",
        "x" * 9_999,
    ):
        assert pasted_image(text) is None


def test_what_a_command_printed_cannot_leave_its_fence() -> None:
    said = ShellResult("cat x", "a\n````\nb", 1).as_prompt()
    assert said == "I ran `cat x`. It exited with status 1:\n`````\na\n````\nb\n`````"
    assert len(ShellResult("yes", "y\n" * 100_000, 0).as_prompt()) < 21_000


@pytest.mark.parametrize(
    ("answer", "theme"),
    [
        (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62c", "light"),
        (b"\x1b]11;rgb:00/00/00\x07", "dark"),
        (b"\x1b]11;rgba:fdfd/f6f6/e3e3/ffff\x1b\\", "light"),
        (b"\x1b[?1;2c", None),
        (b"\x1b]11;rgb:zz/zz/zz\x07", None),
        (b"", None),
    ],
)
def test_a_terminal_says_what_its_background_is(answer: bytes, theme: str | None) -> None:
    assert theme_of_answer(answer) == theme


def test_without_an_answer_the_environment_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [theme_of_environment(text) for text in ("15;0", "0;15", "0;default;7", "", "x;y")] == [
        "dark", "light", "light", None, None,
    ]  # fmt: skip
    read, write = os.pipe()
    monkeypatch.delenv("HOLDFAST_THEME", raising=False)
    monkeypatch.setenv("COLORFGBG", "0;15")
    assert choose_theme(None, read, write) == "light"
    monkeypatch.setenv("HOLDFAST_THEME", "dark")
    assert choose_theme(None, read, write) == "dark" and choose_theme("light", read, write) == "light"
    os.close(read)
    os.close(write)


def test_what_cannot_be_read_on_a_light_background_is_written_otherwise() -> None:
    note = Note("look out", tone="warning")
    assert "\x1b[33m" in Painter(80).lines(note)[0]
    assert "\x1b[35m" in Painter(80, theme="light").lines(note)[0]
    assert "\x1b[3" not in Painter(80, "mono", theme="light").lines(note)[0]


def test_enter_with_another_key_begins_a_line_however_it_is_reported() -> None:
    learn_keys()
    for sequence in ("\x1b[27;2;13~", "\x1b[13;2u", "\x1b[27;5;13~", "\x1b[13;3u"):
        assert ANSI_SEQUENCES[sequence] == (Keys.Escape, Keys.ControlM)
    assert ANSI_SEQUENCES["\x1b[27;5;99~"] == Keys.ControlC
    assert ANSI_SEQUENCES["\x1b[27;2;33~"] == Keys.Ignore
