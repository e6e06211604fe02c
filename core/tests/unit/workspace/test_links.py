"""Random trees full of links: both ways to open agree with each other, and with the system on what is inside."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.errors import FileRefused, OutsideRoots
from holdfast.workspace import Workspace, openat2, read_files, write_files
from holdfast.workspace.safe_open import SafeOpener

if TYPE_CHECKING:
    from collections.abc import Callable

WAYS = (True, False) if openat2.available() else (False,)

places = st.tuples(st.sampled_from(["root", "other", "outside"]), st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a"]))
relative = st.lists(st.sampled_from(["a", "b", "d", "e", "..", "..", ".", "other", "outside"]), min_size=1, max_size=5)
absolute = places.map(lambda place: "BASE/" + "/".join(place)) | places.map(lambda place: f"BASE/{place[0]}")
targets = relative.map("/".join) | absolute
trees = st.dictionaries(places, st.none() | targets, min_size=2, max_size=10)
paths = st.lists(st.sampled_from(["a", "b", "d", "e", "..", "."]), min_size=1, max_size=5).map("/".join)


def grow(base: Path, tree: dict[tuple[str, str], str | None]) -> None:
    for root in ("root", "other", "outside"):
        (base / root / "d" / "e").mkdir(parents=True)
    for (root, name), target in tree.items():
        path = base / root / name
        if target is None:
            path.write_text(f"{root}/{name}")
        else:
            path.symlink_to(target.replace("BASE", str(base)))


def outcome(opener: SafeOpener, path: str) -> str | type[Exception]:
    try:
        return read_files.read_text(opener, opener.workspace.locate(path))
    except (OSError, FileRefused) as e:
        return type(e)


VIA_LINK = {("other", "a"): None, ("root", "a"): "b/b/..", ("root", "b"): "BASE/other"}


@settings(max_examples=200, deadline=None)
@example({**VIA_LINK, ("other", "b"): "d/a"}, ["a/a"])
@example({**VIA_LINK, ("other", "b"): ".."}, ["a/a"])
@given(trees, st.lists(paths, min_size=1, max_size=6))
def test_what_is_read_is_what_the_system_reads_there_if_it_is_inside(
    tree: dict[tuple[str, str], str | None], asked: list[str]
) -> None:
    with TemporaryDirectory() as directory:
        base = Path(directory).resolve()
        grow(base, tree)
        roots = [base / "root", base / "other"]
        ways = [SafeOpener(Workspace.resolve(roots[0], roots[1:]), way) for way in WAYS]
        for path in (*asked, *(f"{base}/{root}/{name}" for root, name in tree)):
            outcomes = [outcome(opener, path) for opener in ways]
            assert len(set(outcomes)) == 1, outcomes
            real = Path(os.path.realpath(os.path.normpath(base / "root" / path)))
            inside = any(real.is_relative_to(root) for root in roots)
            if isinstance(outcomes[0], str):
                assert inside
                assert outcomes[0] == real.read_text()
            elif real.is_file() and not inside:
                assert outcomes[0] is OutsideRoots


@settings(max_examples=200, deadline=None)
@given(trees, st.lists(paths, min_size=1, max_size=6))
def test_nothing_outside_is_ever_changed(tree: dict[tuple[str, str], str | None], asked: list[str]) -> None:
    for way in WAYS:
        with TemporaryDirectory() as directory:
            base = Path(directory).resolve()
            grow(base, tree)
            before = photograph(base / "outside")
            opener = SafeOpener(Workspace.resolve(base / "root", [base / "other"]), way)
            for number, path in enumerate(asked):
                change(opener, path, number)
            assert photograph(base / "outside") == before


def change(opener: SafeOpener, path: str, number: int) -> None:
    locate = opener.workspace.locate
    attempts: tuple[Callable[[], None], ...] = (
        lambda: write_files.write_text(opener, locate(path), "written"),
        lambda: write_files.mkdir(opener, locate(f"{path}/new")),
        lambda: write_files.rename(opener, locate(path), locate(f"{path}{number}")),
        lambda: write_files.remove(opener, locate(path), recursive=True),
    )
    for attempt in attempts:
        with suppress(OSError, FileRefused):
            attempt()


def photograph(directory: Path) -> list[tuple[str, str]]:
    return sorted(
        (str(path), str(path.readlink()) if path.is_symlink() else path.read_text() if path.is_file() else "")
        for path in directory.rglob("*")
    )
