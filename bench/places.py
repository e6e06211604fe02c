"""Where benchmarks put what they store: on the disk the project is on, not in memory as `/tmp` may be."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.processes import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

BUILT = ROOT / "build" / "bench"
"""What takes long to make and is the same every time is kept here."""


@contextmanager
def a_store(copy_of: Path | None = None) -> Generator[str]:
    """Give a place for a store that is gone afterwards: an empty one, or a copy to spoil."""
    BUILT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILT) as directory:
        path = Path(directory) / "sessions.db"
        if copy_of is not None:
            shutil.copyfile(copy_of, path)
        yield str(path)


def built(name: str, build: Callable[[Path], None]) -> Path:
    """Give a file that was built before, or build it, telling that this takes a while."""
    BUILT.mkdir(parents=True, exist_ok=True)
    path = BUILT / name
    if not path.exists():
        print(f"building {path.relative_to(ROOT)}, once …", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=BUILT) as directory:
            unfinished = Path(directory) / name
            build(unfinished)
            unfinished.rename(path)
    return path
