"""The log file beside a store: bounded, private, without keys, and shared by processes."""

from __future__ import annotations

import logging
import re
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.diagnostics import log_file
from holdfast.diagnostics.log_file import MAX_BYTES, LogFile, older, read_log
from holdfast.diagnostics.logging_setup import FORMATS, log_path, start_logging

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "sessions.db.log"


def logging_to(path: Path) -> logging.Logger:
    named = logging.Logger("tested")  # noqa: LOG001  (one of its own, that no other test has)
    named.addHandler(LogFile(lambda: path, "weather.py"))
    return named


@pytest.fixture
def logger(path: Path) -> logging.Logger:
    return logging_to(path)


def test_an_entry_is_found_by_its_reference_with_its_traceback(path: Path, logger: logging.Logger) -> None:
    try:
        int("none")
    except ValueError:
        logger.exception("A turn failed", extra={"reference": "ref_1"})
    logger.info("nobody needs this later")
    (entry,) = read_log(path)
    assert (entry.reference, entry.level, entry.agent, entry.message) == (
        "ref_1",
        "error",
        "weather.py",
        "A turn failed",
    )
    assert "ValueError" in entry.traceback and entry.time.endswith("Z")


@pytest.mark.requirement("P10")
def test_nobody_else_may_read_it_and_no_key_is_in_it(
    path: Path, logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEATHER_API_KEY", "very-private-value")
    try:
        int("very-private-value")
    except ValueError:
        logger.exception("The provider said Authorization: Bearer sk-proj-4rT9xQ2mB7vN1cZ8kL3j")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written = path.read_text()
    assert (
        "very-private-value" not in written and "4rT9xQ2mB7vN1cZ8kL3j" not in written and "invalid literal" in written
    )


HOSTILE = "\x1b[2J\x1b]0;owned\x07 \x9b31m \u202e \x7f \ud800 red"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800]")


@pytest.mark.requirement("P13")
@pytest.mark.parametrize("format", FORMATS)
def test_nothing_that_is_logged_steers_a_terminal(
    tmp_path: Path, format: Any, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    root = logging.Logger("root of this test")  # noqa: LOG001
    monkeypatch.setattr(logging, "getLogger", lambda _="": root)
    start_logging("info", agent=HOSTILE, store=str(tmp_path / "s.db"), file=str(tmp_path / "log"), format=format)
    request.addfinalizer(lambda: [handler.close() for handler in root.handlers])
    try:
        int(HOSTILE)
    except ValueError as e:
        e.add_note(HOSTILE)
        root.exception("The agent said %s\n2026-01-01 ERROR holdfast: forged", HOSTILE)
    for file in (tmp_path / "log", tmp_path / "s.db.log"):
        written = file.read_text(encoding="utf-8")
        assert "red" in written and not STEERING.search(written)
        assert not re.search("^2026-01-01 ERROR holdfast: forged", written, re.MULTILINE)


def test_it_does_not_grow_without_end(path: Path, logger: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "FLOOD", 10_000)
    for number in range(400):
        logger.warning("%d %s", number, "words " * 1500)
    assert path.stat().st_size <= MAX_BYTES and older(path).stat().st_size <= MAX_BYTES
    kept = [int(entry.message.split()[0]) for entry in read_log(path)]
    assert kept == list(range(kept[0], 400)) and len(kept) > 100


@pytest.mark.requirement("P7")
def test_a_flood_is_left_out_and_said_to_be_but_failures_with_a_reference_stay(
    path: Path, logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "FLOOD_SECONDS", 1e9)
    for _ in range(500):
        logger.warning("again")
    logger.error("A turn failed", extra={"reference": "ref_2"})
    entries = list(read_log(path))
    assert len(entries) == log_file.FLOOD + 2
    assert entries[-2].message == "400 more entries came at once and were left out"
    assert entries[-1].reference == "ref_2"


def test_a_file_that_cannot_be_written_ends_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    logging_to(tmp_path / "file" / "log").error("lost")
    assert capsys.readouterr().err == ""


def test_a_link_in_its_place_is_not_followed(path: Path, logger: logging.Logger, tmp_path: Path) -> None:
    path.parent.mkdir()
    (tmp_path / "victim").write_text("precious")
    path.symlink_to(tmp_path / "victim")
    logger.error("A turn failed")
    assert (tmp_path / "victim").read_text() == "precious"


PROGRAM = """
import logging, sys
from pathlib import Path
from holdfast.diagnostics import log_file
log_file.FLOOD = 10**6
named = logging.Logger("tested")
named.addHandler(log_file.LogFile(lambda: Path(sys.argv[1])))
for number in range(150):
    named.warning("%s %d %s", sys.argv[2], number, "words " * 1000)
"""


def test_several_processes_write_to_it_and_lose_nothing_of_each_other(path: Path) -> None:
    running = [subprocess.Popen([sys.executable, "-c", PROGRAM, str(path), name]) for name in ("a", "b")]
    assert [process.wait(50) for process in running] == [0, 0]
    entries: list[Any] = [entry.message.split()[:2] for entry in read_log(path)]
    for name in ("a", "b"):  # the oldest may be gone; what is there has no gap
        numbers = [int(number) for who, number in entries if who == name]
        assert numbers == list(range(numbers[0], 150))
    lines = path.read_bytes().splitlines() + older(path).read_bytes().splitlines()
    assert len(lines) == len(entries)


def test_each_store_has_a_log_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "linked.db").symlink_to(tmp_path / "real.db")
    assert log_path(str(tmp_path / "linked.db")) == (tmp_path / "real.db.log").resolve()
    assert log_path(":memory:") is None
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "mine.db"))
    assert log_path(None) == (tmp_path / "mine.db.log").resolve()
