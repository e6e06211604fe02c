"""The commands for people as real processes: what they load, what they exit with, and what shells make of them."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from app.tests.support.commands import HERE, a_store, environment

if TYPE_CHECKING:
    from pathlib import Path


def holdfast(*arguments: str, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "holdfast", *arguments)
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=90, check=False)


TELLING = """
import sys
from holdfast_app.cli.main import main
status = main(sys.argv[1:])
sys.stderr.write("\\n".join(sys.modules))
sys.exit(status)
"""


def telling_modules(arguments: list[str], env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that tells in the end what it has loaded."""
    command = (sys.executable, "-c", TELLING, *arguments)
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=90, check=True)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


def test_help_loads_nothing_but_click_and_names_every_command(tmp_path: Path) -> None:
    done = telling_modules(["--help"], dict(os.environ), tmp_path)
    for name in ("run", "sessions", "completion"):
        assert f"\n  {name} " in done.stdout
    loaded = set(done.stderr.split())
    assert "click" in loaded
    assert not loaded & {"asyncio", "msgspec", "apsw", "rich", "mcp", "markdown_it", "argparse", "holdfast.model"}


def test_the_version_is_told(tmp_path: Path) -> None:
    assert holdfast("--version", env=dict(os.environ), cwd=tmp_path).stdout.startswith("holdfast 0.")


def test_a_list_loads_neither_what_draws_nor_what_serves(place: Path, tmp_path: Path) -> None:
    asyncio.run(a_store(place, (HERE, ("say hello",))))
    done = telling_modules(["sessions", "list", "--all"], environment(place), tmp_path)
    assert "say hello" in done.stdout
    assert not set(done.stderr.split()) & {"rich", "mcp", "markdown_it", "holdfast.agent", "holdfast.server", "http"}


def test_a_reader_that_has_had_enough_is_no_error_to_talk_about(place: Path, tmp_path: Path) -> None:
    asyncio.run(a_store(place, (HERE, ("say hello",))))
    for arguments in (("sessions", "list", "--all"), ("--help",)):
        read, write = os.pipe()
        os.close(read)
        command = (sys.executable, "-m", "holdfast", *arguments)
        try:
            done = subprocess.run(
                command, env=environment(place), cwd=tmp_path, stdout=write, stderr=-1, timeout=90, check=False
            )
        finally:
            os.close(write)
        assert (done.returncode, done.stderr) == (1, b"")


def test_letters_that_a_terminal_does_not_have_are_no_reason_to_fail(place: Path, tmp_path: Path) -> None:
    asyncio.run(a_store(place, (HERE, ("say 日本",))))
    ascii_only = environment(place) | {"PYTHONIOENCODING": "ascii"}
    done = holdfast("sessions", "list", "--all", env=ascii_only, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("say ??\n")
    exported = holdfast("sessions", "export", "sess_", env=ascii_only, cwd=tmp_path)
    assert "say 日本" in exported.stdout


def stopped(process: subprocess.Popen[bytes]) -> bytes:
    """Interrupt a process until it says that it stops; return what it says.

    Right before it begins to wait for an answer, Python hears nothing; and once it stops, it dies of another signal.
    """
    assert process.stderr is not None
    said, errors = b"", process.stderr.fileno()
    for _ in range(100):
        process.send_signal(signal.SIGINT)
        while select.select([errors], [], [], 1.0)[0]:
            said += (some := os.read(errors, 1_000))
            if not some:
                process.wait(60)
                return said
            if b"Stopped." in said:
                process.wait(60)
    process.kill()
    pytest.fail(f"it did not stop: {said!r}")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_who_is_asked_may_stop_everything(place: Path, tmp_path: Path) -> None:
    (only,) = asyncio.run(a_store(place, (HERE, ("say hello",))))
    ours, theirs = os.openpty()
    command = (sys.executable, "-m", "holdfast", "sessions", "delete", only)
    with subprocess.Popen(command, env=environment(place), cwd=tmp_path, stdin=theirs, stdout=-1, stderr=-1) as process:
        assert process.stderr is not None
        said = b""
        while b"for good?" not in said:
            said += (some := os.read(process.stderr.fileno(), 1_000))
            assert some, said
        rest = stopped(process)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 130
    assert rest.decode().strip().endswith("Stopped.") and b"Traceback" not in rest
    assert only in holdfast("sessions", "show", only, env=environment(place), cwd=tmp_path).stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        (("run", "demo"), b"holdfast chat demo "),
        (("wrap", "--", "an agent", "--acp"), b"holdfast chat -- 'an agent' --acp "),
        (("connect", "http://127.0.0.1:1/acp"), b"holdfast chat http://127.0.0.1:1/acp "),
    ],
)
def test_who_starts_by_hand_what_editors_start_is_told_what_to_type(
    arguments: tuple[str, ...], instead: bytes, place: Path, tmp_path: Path
) -> None:
    ours, theirs = os.openpty()
    command = (sys.executable, "-m", "holdfast", *arguments)
    with subprocess.Popen(command, env=environment(place), cwd=tmp_path, stdin=theirs, stdout=-1, stderr=-1) as process:
        assert process.stdout is not None and process.stderr is not None
        told = process.stderr.readline()
        process.terminate()
        assert process.stdout.read() == b""
    os.close(ours)
    os.close(theirs)
    assert instead in told
    done = holdfast(*arguments, env=environment(place), cwd=tmp_path)
    assert instead.decode() not in done.stderr, "editors are not told"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell: str, tmp_path: Path) -> None:
    done = holdfast("completion", shell, env=dict(os.environ), cwd=tmp_path)
    assert done.returncode == 0
    assert f"_HOLDFAST_COMPLETE={shell}_complete" in done.stdout


def complete(place: Path, words: str, at: int) -> list[str]:
    """Ask as bash does what a word could become."""
    env = environment(place) | {"_HOLDFAST_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    done = holdfast(env=env, cwd=place.parent)
    assert done.returncode == 0 and done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_options_and_ids_of_sessions_are_completed(place: Path) -> None:
    one, two = asyncio.run(a_store(place, (HERE, ("say 1",)), (HERE, ("say 2",))))
    assert complete(place, "holdfast ", 1)[:3] == ["run", "wrap", "chat"]
    assert "--no-redact" in complete(place, "holdfast sessions export --no", 3)
    assert complete(place, "holdfast sessions show ", 3) == [two[5:15], one[5:15]]
    assert complete(place, f"holdfast sessions show {one[5:9]}", 3) == [one[5:15]]
    assert complete(place, f"holdfast sessions show {one[:12]}", 3) == [one]
    assert complete(place, f"holdfast chat demo --resume {one[5:9]}", 4) == [one[5:15]]
    assert complete(place.with_name("nowhere.db"), "holdfast sessions show ", 3) == []
