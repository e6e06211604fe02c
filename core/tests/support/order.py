"""Which tests begin first where several workers run them: a long one that begins last is waited for by all."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

LONGEST = (
    "core/tests/faults/test_postgres_nodes.py",
    "app/tests/interop/test_wrapped_agents.py",
    "app/tests/interop/test_sdks.py",
    "app/tests/interop/test_wheel.py",
    "app/tests/check/test_our_agents.py",
    "core/tests/faults/test_engine_kills.py",
    "core/tests/faults/test_remote_entry.py",
    "core/tests/faults/test_remote_stalled.py",
    "app/tests/check/test_broken_agents.py",
    "app/tests/check/test_command_line.py",
    "core/tests/laws/test_engine.py",
    "app/tests/faults/test_nodes.py",
    "core/tests/faults/test_postgres_full_disk.py",
    "app/tests/interaction/test_connect.py",
)
"""The files whose tests take longest, the longest first. (`pytest --durations=50` tells.)"""


WHOLE = ("app/tests/interop/test_sdks.py", "app/tests/interop/test_wheel.py")
"""Those of them whose tests look at one thing that took long to make: one worker has all of a file."""


def longest_first(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """Deal the longest tests to the workers one by one, in front of their even shares of all others.

    Args:
        items: the tests as they were collected.
        workers: how many there are. `--dist worksteal` gives each of them one even run of the list.

    """
    long = _pieces(items)
    others = iter([item for item in items if _file(item) not in LONGEST])
    dealt: dict[pytest.Item, None] = {}
    for worker in range(workers):
        share = (len(items) - len(dealt)) // (workers - worker)
        first = list(chain.from_iterable(long[worker::workers]))[:share]
        dealt |= dict.fromkeys([*first, *islice(others, share - len(first))])
    return list(dealt | dict.fromkeys(items))


def _pieces(items: Sequence[pytest.Item]) -> list[list[pytest.Item]]:
    """Return the long tests, the longest first, in pieces that stay together."""
    found: list[list[pytest.Item]] = []
    for name in LONGEST:
        inside = [item for item in items if _file(item) == name]
        found += ([inside] if inside else []) if name in WHOLE else [[item] for item in inside]
    return found


def _file(item: pytest.Item) -> str:
    return item.nodeid.split("::", 1)[0]
