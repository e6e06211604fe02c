"""The stores that every rule about stores is tried on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.scratch import scratch
from tests.support.stores import Place

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["file", "memory"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Every store there is."""
    with scratch() as directory:
        yield Place(":memory:" if request.param == "memory" else str(directory / "store" / "sessions.db"))


@pytest.fixture
def lasting() -> Iterator[Place]:
    """A store that lasts."""
    with scratch() as directory:
        yield Place(str(directory / "store" / "sessions.db"))
