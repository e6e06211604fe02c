"""Runs `async def` tests, and fails those that leave something behind.

A test that is a coroutine runs in a loop of its own. When it is done no task may be left, and nothing may have gone
wrong unseen: an exception in a callback or in a task nobody waited for fails the test.
"""

from __future__ import annotations

import inspect
import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from core.tests.support import order, postgres
from core.tests.support.coroutines import run_alone

if TYPE_CHECKING:
    from collections.abc import Callable

# A busy machine is no reason to fail.
settings.register_profile("holdfast", deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("holdfast")

for _signal in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)):
    # Where tests run in the background these may be ignored, and would be by every program that a test starts.
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal == signal.SIGINT else signal.SIG_DFL)


def pytest_configure() -> None:
    # A shell that starts the tests in the background lets them ignore SIGINT, and so would every process they start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    postgres.mark_run()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = order.longest_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test: Callable[..., object] = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    run_alone(test(**arguments))
    return True
