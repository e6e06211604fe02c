"""The fuzzer itself: it passes a peer that is right, and notices one that is wrong."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.tests.support.oracle import Verdict, answer
from core.tests.torture.inputs import GROUP_LINES, LINE_LIMIT, Group
from core.tests.torture.trial import Trial, shrink

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.requirement("A2", "A3", "A4", "A5", "P6")


def test_a_short_run_finds_nothing_and_counts_what_it_tried() -> None:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "core.tests.torture", "--inputs", "3000", "--seed", "1", "--jobs", "2"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=50, check=False)
    assert run.returncode == 0, run.stderr
    count, word, *_ = run.stdout.split()
    assert word == "inputs"
    assert int(count) >= 3_000


def test_a_group_is_made_from_its_number_alone() -> None:
    assert Group(7, [b"3"]).chunks == Group(7, [b"3"]).chunks
    assert Group(7, [b"3"]).chunks != Group(8, [b"3"]).chunks


def test_a_group_is_a_mixture() -> None:
    """Enough of each kind that every rule is met again and again."""
    groups = [Group(number, [b"0"]) for number in range(30)]
    lines = [line for group in groups for line in group.lines]
    assert len(lines) >= 30 * GROUP_LINES
    assert sum(line.startswith(b"[") for line in lines) > 100
    assert sum(len(line) > LINE_LIMIT for line in lines) > 10
    assert sum(b"\\ud800" in line for line in lines) > 10
    assert sum(b"[" * 128 in line for line in lines) > 10
    assert sum(not line.isascii() for line in lines) > 100
    assert sum(line in group.known for group in groups for line in group.lines) > 10


def twice(line: bytes) -> list[bytes]:
    return [line, line]


def never(line: bytes) -> list[bytes]:
    return [] if b"32602" in line else [line]


def with_another_id(line: bytes) -> list[bytes]:
    return [line.replace(b'"id":9007199254740993', b'"id":9007199254740992')]


def with_another_code(line: bytes) -> list[bytes]:
    return [line.replace(b"-32601", b"-32600")]


def as_text(line: bytes) -> list[bytes]:
    return [line.replace(b'"id":1,', b'"id":"1",')]


def broken(line: bytes) -> list[bytes]:
    return [line.replace(b'"error"', b'"oops"')]


@pytest.mark.parametrize("fault", [twice, never, with_another_id, with_another_code, as_text, broken])
async def test_a_peer_that_is_wrong_is_noticed(fault: Callable[[bytes], list[bytes]]) -> None:
    trial = Trial()
    await asyncio.sleep(0)
    transport = trial.transport
    send = transport.send

    def send_wrong(line: bytes) -> None:
        for wrong in fault(line):
            send(wrong)

    transport.send = send_wrong
    complaints = [(await trial.put(number))[1] for number in range(5)]
    assert any(complaints)
    transport.send = send
    await trial.end(b"")


async def test_a_failing_group_is_shrunk_to_the_lines_that_fail() -> None:
    """Here the oracle is told something wrong about one line, so that this line is the one that fails."""
    group = Group(3, [])
    del group.lines[20:]
    culprit = next(line for line in group.lines if line.startswith(b"{"))
    group.known[culprit] = Verdict(answer("nobody", 1))
    assert await shrink(group) == [culprit] * group.lines.count(culprit)
