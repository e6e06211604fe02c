"""Each rule is tried over each of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from core.tests.support import postgres
from core.tests.support.links import LINKS

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.support.links import Link


@pytest.fixture(params=["memory", "pipes", "threads"])
def link(request: pytest.FixtureRequest) -> Link:
    return LINKS[request.param]


ON_BOTH_STORES = {
    f"test_engine_{name}"
    for name in (
        "arriving", "asks", "between_turns", "cancelling", "ending", "forks", "idle", "memory", "options", "owners",
        "sessions", "titles", "turns", "watching",
    )
}  # fmt: skip
"""These go through with a store in a file, and with one that is far away and takes its time."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        module = metafunc.definition.path.stem
        stores = ["sqlite", "postgres"] if module in ON_BOTH_STORES else ["sqlite"]
        metafunc.parametrize("place", stores, indirect=True)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a store may be."""
    return postgres.empty_database() if request.param == "postgres" else tmp_path / "store" / "sessions.db"
