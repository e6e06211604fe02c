"""A project to work in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a program in it, and something beside it that is nobody's business."""
    (tmp_path / "outside.txt").write_text("the outside\n")
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / "hello.py").write_text('print("hello")\n')
    return directory
