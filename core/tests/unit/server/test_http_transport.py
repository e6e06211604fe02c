"""What is POSTed is taken in the order in which it came (P5)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.server.remote.http_transport import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.requirement("P5", "C6")


class Taken:
    """A receiver that keeps what it gets."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def lines_received(self, lines: Sequence[Any]) -> None:
        self.lines += lines

    def input_ended(self, reason: Exception | None) -> None: ...


async def test_what_comes_as_the_server_reads_again_does_not_overtake_what_waits() -> None:
    transport, taken = HttpTransport(lambda _: None), Taken()
    transport.open(taken)
    transport.pause()
    waiting = [asyncio.ensure_future(transport.deliver(line)) for line in (b"prompt", b"another")]
    await asyncio.sleep(0)
    newcomer = asyncio.ensure_future(transport.deliver(b"cancel"))
    transport.resume()
    assert await asyncio.gather(*waiting, newcomer) == [True, True, True]
    assert taken.lines == [b"prompt", b"another", b"cancel"]


async def test_what_waits_is_refused_when_the_connection_ends() -> None:
    transport = HttpTransport(lambda _: None)
    transport.open(Taken())
    transport.pause()
    waiting = [asyncio.ensure_future(transport.deliver(line)) for line in (b"a", b"b")]
    await asyncio.sleep(0)
    transport.end_input()
    assert await asyncio.gather(*waiting) == [False, False]
