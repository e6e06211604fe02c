"""The stores that every rule about stores is tried on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from core.tests.support import postgres
from core.tests.support.scratch import scratch
from core.tests.support.stores import Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["file", "memory", "postgres"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Every store there is."""
    with scratch() as directory:
        yield _place(request.param, directory)


@pytest.fixture(params=["file", "postgres"])
def lasting(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A store that lasts."""
    with scratch() as directory:
        yield _place(request.param, directory)


@pytest.fixture
def in_file() -> Iterator[Place]:
    """A store in a file."""
    with scratch() as directory:
        yield _place("file", directory)


@pytest.fixture
def in_postgres() -> Place:
    """A store in a database of many."""
    return Place(postgres.empty_database())


def _place(kind: str, directory: Path) -> Place:
    match kind:
        case "memory":
            return Place(":memory:")
        case "postgres":
            return Place(postgres.empty_database())
        case _:
            return Place(str(directory / "store" / "sessions.db"))
