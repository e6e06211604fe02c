"""The source trees that are measured: this one, or another (`--source`), and an earlier one (`--baseline`).

A tree is named by its directory or by a revision of this repository; the sources of a revision are put into
`build/bench/sources`. Children run a tree with this interpreter and the packages that are installed for it.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.places import BUILT
from bench.processes import ROOT

if TYPE_CHECKING:
    import argparse

BASELINE = "63d28c2"
"""The last commit before group commit: what the rows about turns are compared with unless told otherwise."""

_SOURCE, _BASELINE = "HOLDFAST_BENCH_SOURCE", "HOLDFAST_BENCH_BASELINE"


class NoSource(Exception):
    """There is no such tree."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let a command line say which trees are measured."""
    parser.add_argument(
        "--source", metavar="TREE", help="what is measured by rows that compare two (default: this tree)"
    )
    parser.add_argument("--baseline", metavar="TREE", help=f"what that is compared with (default: {BASELINE})")


def choose(arguments: argparse.Namespace) -> None:
    """Measure what the command line says; `source` and `baseline` return it."""
    for name, value in ((_SOURCE, arguments.source), (_BASELINE, arguments.baseline)):
        if value is not None:
            os.environ[name] = value


def source() -> Path:
    """Return the directory to import `holdfast` from."""
    return sources_of(os.environ.get(_SOURCE, str(ROOT)))


def baseline() -> Path | None:
    """Return the same of the tree to compare with, or None, and say why, where it cannot be had."""
    try:
        return sources_of(os.environ.get(_BASELINE, BASELINE))
    except NoSource as e:
        print(f"There is nothing to compare with: {e}", file=sys.stderr)
        return None


def sources_of(tree: str) -> Path:
    """Return where `holdfast` is imported from in a tree; raise `NoSource` where there is none."""
    if Path(tree).is_dir():
        return _library_in(Path(tree).resolve())
    commit = _git("rev-parse", "--verify", "--quiet", f"{tree}^{{commit}}").decode().strip()
    place = BUILT / "sources" / commit
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as directory:
            unfinished = Path(directory) / commit
            with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
                archive.extractall(unfinished, filter="data")
            unfinished.rename(place)
    return _library_in(place)


def _library_in(tree: Path) -> Path:
    """Return where the library lies in a tree; it lay in `src` before the library and the products were divided."""
    return tree / "core" / "src" if (tree / "core").is_dir() else tree / "src"


def _git(*arguments: str) -> bytes:
    try:
        done = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, check=False)
    except FileNotFoundError:
        raise NoSource("git is not installed") from None
    if done.returncode != 0:
        raise NoSource(f"git {' '.join(arguments)} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
