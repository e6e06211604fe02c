"""Processes we start: they and all they started end with us, however we end; nothing they do holds us (P8)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys

import pytest

from core.tests.support.links import PATIENCE, PROGRAMS, Collector
from core.tests.support.wire import Wire, wait_for_death
from holdfast.errors import ConnectionLost, ProcessExited, UsageError
from holdfast.peer import Peer, Routes
from holdfast.subprocesses import guard
from holdfast.transport import ProcessTransport, spawn

pytestmark = pytest.mark.requirement("P8")

QUICK = 0.2
"""Seconds of patience with a process that should end."""


async def start(program: str, *arguments: str, patience: float = QUICK) -> tuple[ProcessTransport, Collector]:
    transport = await spawn(sys.executable, str(PROGRAMS / program), *arguments, patience=patience)
    transport.open(collector := Collector())
    return transport, collector


async def pids_of(family: Collector) -> list[int]:
    (line,) = await family.get(1)
    assert isinstance(line, bytes)
    pids = json.loads(line)
    assert len(pids) == 8
    return pids


# All of them end


@pytest.mark.parametrize("manner", ["obey", "ignore"])
async def test_closing_ends_a_process_with_all_its_descendants(manner: str) -> None:
    """Children, grandchildren, those in groups and sessions of their own, daemons; polite or not."""
    transport, family = await start("family.py", manner, patience=PATIENCE if manner == "obey" else QUICK)
    pids = await pids_of(family)
    await transport.close(0.1)
    wait_for_death([*pids, transport.pid])
    assert await transport.wait() == (0 if manner == "obey" else 128 + signal.SIGKILL)


async def test_a_process_that_exits_leaves_no_descendants_behind() -> None:
    transport, family = await start("family.py", "exit")
    pids = await pids_of(family)
    assert await transport.wait() == 7
    wait_for_death(pids)
    reason = await family.end()
    assert isinstance(reason, ProcessExited)
    assert reason.returncode == 7
    await transport.close(0)


async def test_a_close_that_is_cancelled_ends_them_all_the_same() -> None:
    transport, family = await start("family.py", "ignore", patience=60)
    pids = await pids_of(family)
    closing = asyncio.ensure_future(transport.close(0.1))
    for _ in range(3):
        await asyncio.sleep(0)
    for _ in range(2):  # as one who closes it and is then told to hurry
        closing.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await closing
    with pytest.raises(ProcessLookupError):
        os.kill(transport.pid, 0)  # gone when its closing is over, not some time later
    await transport.wait()
    wait_for_death(pids)


@pytest.mark.parametrize("manner", ["return", "raise", "_exit"])
def test_our_own_exit_ends_everything_we_started(manner: str) -> None:
    with Wire("holder.py", manner) as holder:
        pids = holder.hear()
        holder.status()
        wait_for_death(pids)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=str)
def test_our_own_death_ends_everything_we_started(number: signal.Signals) -> None:
    with Wire("holder.py", "wait") as holder:
        pids = holder.hear()
        assert len(pids) == 9
        holder.process.send_signal(number)
        holder.status()
        wait_for_death(pids)


async def test_a_stopped_process_is_ended_too() -> None:
    transport, family = await start("family.py", "obey")
    pids = await pids_of(family)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    await transport.close(0.1)
    wait_for_death(pids)


LATE_GUARD = """
import importlib.util, os, sys, time

spec = importlib.util.spec_from_file_location("guard", sys.argv[1])
guard = importlib.util.module_from_spec(spec)
spec.loader.exec_module(guard)
outer, wake_on = os.getpid(), guard.wake_on

def late(*numbers):
    if os.getpid() == outer:
        time.sleep(1)  # as on a machine that has better things to do
    return wake_on(*numbers)

guard.wake_on = late
read, write = os.pipe()
os.set_inheritable(read, True)
sys.argv = ["guard", str(read), "/bin/true"]
sys.exit(guard.main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one guard")
def test_a_command_that_is_over_before_its_guard_looks_is_noticed() -> None:
    command = [sys.executable, "-I", "-c", LATE_GUARD, guard.__file__]
    assert subprocess.run(command, timeout=PATIENCE, check=False).returncode == 0


# Those who would rather stay: they kill or stop the process that guards them


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one guard, and it can be killed")
@pytest.mark.parametrize("manner", ["kill", "kill by a child"])
async def test_a_process_that_kills_its_guard_ends_with_all_its_descendants(manner: str) -> None:
    transport, family = await start("family.py", manner)
    pids = await pids_of(family)
    wait_for_death(pids)
    assert await transport.wait() == 128 + signal.SIGKILL
    await transport.close(0)


@pytest.mark.parametrize("manner", ["stop", "stop by a child"])
async def test_a_process_that_stops_its_guard_is_ended_with_all_its_descendants(manner: str) -> None:
    transport, family = await start("family.py", manner)
    pids = await pids_of(family)
    await transport.close(0.1)
    wait_for_death([*pids, transport.pid])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one guard, and it can be killed")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=str)
async def test_a_guard_that_somebody_else_kills_or_stops_is_no_way_out_either(number: signal.Signals) -> None:
    transport, family = await start("family.py", "ignore")
    pids = await pids_of(family)
    os.kill(transport.pid, number)
    if number == signal.SIGSTOP:
        await transport.close(0.1)
    wait_for_death(pids)
    await transport.close(0.1)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one guard, and it can be killed")
@pytest.mark.parametrize("manner", ["kill", "stop", "kill by a child", "stop by a child"])
def test_a_process_that_kills_or_stops_its_guard_does_not_outlive_us(manner: str) -> None:
    with Wire("holder.py", "wait", manner) as holder:
        pids = holder.hear()
        holder.process.send_signal(signal.SIGKILL)
        holder.status()
        wait_for_death(pids)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not wake a guard that was stopped")
def test_a_stopped_guard_does_its_work_when_we_die() -> None:
    with Wire("holder.py", "wait") as holder:
        *pids, guard = holder.hear()
        os.kill(guard, signal.SIGSTOP)
        holder.process.send_signal(signal.SIGKILL)
        holder.status()
        wait_for_death([*pids, guard])


async def test_a_process_that_is_slow_to_go_is_asked_to_terminate() -> None:
    transport, child = await start("child.py", "wait for SIGTERM")
    await child.get(1)
    await transport.close(0.1)
    assert await transport.wait() == 5


async def test_signals_for_us_are_not_passed_on_by_the_terminal() -> None:
    """Control-C reaches the whole foreground group: what we started must not be in it."""
    transport, child = await start("child.py", "deaf")
    await child.get(1)
    assert os.getsid(transport.pid) != os.getsid(0)
    await transport.close(0.1)


# What they write last


async def test_a_process_that_is_closed_can_say_its_last_words() -> None:
    """A closed pipe would kill it, or worse, in the middle of saving its work."""
    transport, _ = await start("child.py", "last words", patience=PATIENCE)
    await transport.close(0.1)
    assert await transport.wait() == 0
    assert transport.stderr == "saved"


async def test_a_process_that_floods_stderr_is_not_held_up_and_its_last_words_are_kept() -> None:
    """The official SDK's helper deadlocks after 64 KB."""
    heard: list[bytes] = []
    transport = await spawn(sys.executable, str(PROGRAMS / "child.py"), "flood stderr", on_stderr=heard.append)
    transport.open(child := Collector())
    assert await child.get(1) == [b"ready"]
    await transport.close(0.1)
    assert transport.stderr.endswith("the very last words")
    assert len(transport.stderr) <= 16_384
    assert len(b"".join(heard)) > 5_000_000
    assert b"".join(heard).startswith(b"0 0 0 ")


async def test_whoever_waits_for_an_answer_is_told_how_the_process_died_and_what_it_said() -> None:
    transport = await spawn(sys.executable, str(PROGRAMS / "child.py"), "flood stderr and die")
    async with Peer(transport, Routes()) as peer:
        with pytest.raises(ProcessExited, match="the very last words") as caught:
            await peer.request("anything")
    assert caught.value.returncode == 9
    assert len(str(caught.value)) < 20_000


@pytest.mark.parametrize(("how", "status"), [("0", 0), ("1", 1), ("255", 255), ("die of a signal", 128 + 11)])
async def test_the_status_is_that_of_the_command(how: str, status: int) -> None:
    transport, child = await start("child.py", how)
    reason = await child.end()
    assert isinstance(reason, ProcessExited)
    assert reason.returncode == status
    assert await transport.wait() == status
    await transport.close(0)


async def test_the_status_is_told_of_a_process_that_takes_its_time_to_exit() -> None:
    """On a busy machine a second may pass between the end of its output and its exit."""
    transport, child = await start("child.py", "hang up, then fail")
    reason = await child.end()
    assert isinstance(reason, ProcessExited)
    assert reason.returncode == 4
    await transport.close(0)


async def test_a_process_that_closes_its_stdout_and_stays_is_an_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.transport.process.EXIT_SECONDS", 0.1)
    transport, child = await start("child.py", "hang up")
    reason = await child.end()
    assert isinstance(reason, ConnectionLost)
    await transport.close(0.1)
    assert len(child.ends) == 1


async def test_the_status_is_told_of_a_process_that_takes_its_time_after_it_stopped_reading() -> None:
    transport, child = await start("child.py", "close stdin, then fail")
    await child.get(1)
    transport.send(b"anybody?")
    reason = await child.end()
    assert isinstance(reason, ProcessExited)
    assert reason.returncode == 4
    await transport.close(0)


async def test_a_process_that_never_reads_ends_the_connection_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.transport.process.EXIT_SECONDS", 0.1)
    transport, child = await start("child.py", "deaf")
    await child.get(1)
    for _ in range(100):
        transport.send(b"x" * (1 << 20))
    reason = await child.end()
    assert "does not read" in str(reason)
    await transport.close(0.1)


# Starting


async def test_a_process_inherits_no_descriptor_but_its_three() -> None:
    """The other end of another child's pipe, kept open here, would keep that child alive."""
    inherited = os.dup(0)
    try:
        other, _ = await start("child.py", "deaf")
        transport, child = await start("child.py", "descriptors")
        (line,) = await child.get(1)
        assert line == b"0 1 2 3"  # the last is the directory it reads to find out
        await transport.close(0.1)
        await other.close(0.1)
    finally:
        os.close(inherited)


async def test_an_environment_and_a_directory_are_passed_on(tmp_path: object) -> None:
    script = 'printf "%s %s\\n" "$PWD" "$COLOR"; cat'
    transport = await spawn(
        "/bin/sh", "-c", script, cwd=str(tmp_path), env={"COLOR": "red", "PATH": os.environ["PATH"]}
    )
    transport.open(child := Collector())
    assert await child.get(1) == [f"{tmp_path} red".encode()]
    await transport.close(0.1)


@pytest.mark.parametrize("command", [[], ["no-such-program-anywhere"], ["/no/such/program"], ["/tmp"]], ids=str)
async def test_a_program_that_is_not_there_is_the_callers_mistake(command: list[str]) -> None:
    with pytest.raises(UsageError, match="cannot start"):
        await spawn(*command)


async def test_a_directory_that_is_not_there_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="no such directory"):
        await spawn("cat", cwd="/no/such/directory")


async def test_arguments_that_no_system_takes_are_the_callers_mistake_and_leave_nothing_open() -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for argument in ("nul\0byte", "x" * (1 << 20)):
        with pytest.raises(UsageError, match="cannot start"):
            await spawn("cat", argument)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


async def test_a_file_that_is_no_program_is_reported_with_its_name(tmp_path: object) -> None:
    path = f"{tmp_path}/broken"
    with open(path, "w") as file:  # noqa: PTH123, ASYNC230
        file.write("\x7fELF, or not")
    os.chmod(path, 0o755)  # noqa: PTH101
    transport = await spawn(path)
    transport.open(child := Collector())
    reason = await child.end()
    assert isinstance(reason, ProcessExited)
    assert reason.returncode == 127
    assert path in reason.stderr
    await transport.close(0)
