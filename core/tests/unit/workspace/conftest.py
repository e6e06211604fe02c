from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from core.tests.unit.workspace.trees import Tree, plant
from holdfast.workspace import openat2

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["openat2", "walk"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Tree:
    """Two roots and an outside, with both ways to open files in turn."""
    wanted = request.param == "openat2"
    if wanted and not openat2.available():
        pytest.skip("this kernel has no openat2")
    return plant(tmp_path, openat2=wanted)
