"""The stores that every rule about stores is tried on."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from tests.support.stores import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED_MEMORY = Path("/dev/shm")
"""Here a sync costs nothing. What a sync is good for is tried elsewhere, with disks that fail."""


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory that is gone afterwards."""
    with TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as path:
        yield Path(path)


@pytest.fixture(params=["file", "memory"])
def place(request: pytest.FixtureRequest, scratch: Path) -> Place:
    """Every store there is."""
    return Place(":memory:" if request.param == "memory" else str(scratch / "store" / "sessions.db"))


@pytest.fixture
def lasting(scratch: Path) -> Place:
    """A store that lasts."""
    return Place(str(scratch / "store" / "sessions.db"))
