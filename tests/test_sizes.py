"""A file is read in one sitting."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
LINES = 800


def test_no_file_of_the_source_is_longer_than_one_sitting() -> None:
    files = [path for storey in ("core", "app") for path in (ROOT / storey / "src").rglob("*.py")]
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    assert len(sizes) > 400
    assert {name: size for name, size in sizes.items() if size > LINES} == {}
