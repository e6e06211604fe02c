"""Each rule is tried over each of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.links import LINKS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.links import Link


@pytest.fixture(params=["memory", "pipes", "threads"])
def link(request: pytest.FixtureRequest) -> Link:
    return LINKS[request.param]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a store may be."""
    return tmp_path / "store" / "sessions.db"
