"""Calls into the event loop from another thread."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from holdfast.store.sqlite import loop_wakeup
from holdfast.store.sqlite.loop_wakeup import LoopWakeup


@pytest.mark.parametrize("platform", ["linux", "darwin"])
async def test_what_a_thread_asks_for_is_called_in_the_loop(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if platform == "linux" and not hasattr(os, "eventfd"):
        pytest.skip("eventfd is Linux's")
    monkeypatch.setattr(loop_wakeup.sys, "platform", platform)
    called, threads = asyncio.Event(), set[int]()

    def call() -> None:
        threads.add(threading.get_ident())
        called.set()

    wakeup = LoopWakeup(asyncio.get_running_loop(), call)
    for _ in range(3):
        thread = threading.Thread(target=wakeup.wake)
        thread.start()
        async with asyncio.timeout(30):
            await called.wait()
        called.clear()
        thread.join()
    assert threads == {threading.get_ident()}
    wakeup.close()
    wakeup.close()


async def test_closing_gives_the_descriptor_back() -> None:
    free = lowest_free_descriptor()
    for _ in range(20):
        LoopWakeup(asyncio.get_running_loop(), lambda: None).close()
    assert lowest_free_descriptor() == free


def lowest_free_descriptor() -> int:
    found = os.dup(2)
    os.close(found)
    return found
