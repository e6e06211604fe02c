"""Somebody swaps what we open while we open it (P9): how often is a file outside the roots read or written?

    python -m core.tests.torture.rename_race --tries 100000

A second process flips something in the root, as fast as it can, between harmless and a way out. Meanwhile we read and
write through it: with `openat2`, with the walk, and, to see that the race is real, in the ways it is usually done: ask
`realpath`, compare, open; or open name by name and let the system climb where a link says `..`. Prints escapes and time
of each; exits with 1 if either of ours had one.
"""

# A race is no place for pathlib, and a program prints.
# ruff: noqa: PTH104, PTH123, PTH211, T201

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from holdfast.errors import FileRefused, OutsideRoots
from holdfast.workspace import Workspace, openat2, read_files, write_files
from holdfast.workspace.safe_open import READ, SafeOpener

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

Way: TypeAlias = Literal["realpath", "climbing", "openat2", "walk"]
Flip: TypeAlias = Literal["directory", "file", "ancestor", "root"]

INSIDE, SECRET, WRITTEN = b"inside", b"secret", b"written"
REPOSITORY = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Scene:
    """What is flipped, the path that leads through it, and the file that the path leads to when it leads out."""

    base: Path
    flip: Flip

    @property
    def root(self) -> Path:
        return self.base / "root"

    @property
    def path(self) -> str:
        return "up" if self.flip == "ancestor" else "d/f"

    @property
    def secret(self) -> Path:
        secrets = {"ancestor": "f", "root": "outside/d/f"}
        return self.base / secrets.get(self.flip, "outside/f")

    def build(self) -> None:
        """Lay out a root and an outside."""
        for directory in ("root/d", "root/a/deep", "outside/d"):
            (self.base / directory).mkdir(parents=True)
        for inside in ("root/f", "root/d/f"):
            (self.base / inside).write_bytes(INSIDE)
        for outside in ("f", "outside/f", "outside/d/f"):
            (self.base / outside).write_bytes(SECRET)
        (self.root / "x").symlink_to("../outside")
        (self.base / "exit").symlink_to("outside")
        (self.root / "up").symlink_to("a/deep/../../f")

    def swap(self) -> None:
        """Make the path lead out, and back in."""
        root = str(self.root)
        if self.flip in {"directory", "root"}:
            one, other = self.ends()
            os.rename(one, f"{other}.away")
            os.rename(other, one)
            os.rename(one, other)
            os.rename(f"{other}.away", one)
        elif self.flip == "file":
            os.symlink("../../outside/f", f"{root}/link")
            os.rename(f"{root}/link", f"{root}/d/f")
            with open(f"{root}/file", "wb") as file:
                file.write(INSIDE)
            os.rename(f"{root}/file", f"{root}/d/f")
        else:  # from where it then is, the `..` of the link lead somewhere else
            os.rename(f"{root}/a/deep", f"{self.base}/outside/deep")
            os.rename(f"{self.base}/outside/deep", f"{root}/a/deep")

    def ends(self) -> tuple[str, str]:
        """The directory that is swapped, and the link it is swapped with."""
        if self.flip == "root":
            return str(self.root), str(self.base / "exit")
        return str(self.root / "d"), str(self.root / "x")

    def keep_swapping(self) -> None:
        """Swap until whoever started us is gone or kills us."""
        parent = os.getppid()
        exchange = exchange_call() if self.flip in {"directory", "root"} else None
        one, other = self.ends()
        ends = os.fsencode(one), os.fsencode(other)
        print("swapping", flush=True)
        while os.getppid() == parent:
            for _ in range(1000):
                if exchange is not None:
                    exchange(*ends)
                else:
                    self.swap()

    @contextmanager
    def swapped(self) -> Generator[None]:
        """Have another process swap."""
        command = [sys.executable, "-m", __name__ if __name__ != "__main__" else "core.tests.torture.rename_race"]
        command += ["--swap", str(self.base), "--flip", self.flip]
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as swapper:
            try:
                assert swapper.stdout is not None
                assert swapper.stdout.readline() == b"swapping\n"
                yield
                assert swapper.poll() is None, "the swapper gave up: nothing was proved"
            finally:
                swapper.kill()

    def has_leaked(self) -> bool:
        """Whether something outside was changed; puts it right again."""
        if self.secret.read_bytes() == SECRET:
            return False
        self.secret.write_bytes(SECRET)
        return True

    def strangers(self) -> list[str]:
        """List what stands outside and did not before."""
        known = {"f", "d", "deep", "root", "outside", "exit", "exit.away"}
        return [str(p) for d in (self.base, self.base / "outside") for p in d.iterdir() if p.name not in known]


@dataclass(slots=True)
class Tally:
    """What became of the tries."""

    tries: int = 0
    done: int = 0
    refused: int = 0
    failed: int = 0
    escapes: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        each = self.seconds / max(1, self.tries) * 1e6
        return (
            f"{self.escapes:>7,} escapes of {self.tries:,}   {self.done:>7,} inside {self.refused:>7,} refused"
            f" {self.failed:>7,} not there   {each:6.1f} µs each"
        )


def read_race(scene: Scene, way: Way, tries: int) -> Tally:
    """Read through what is being swapped."""
    tally = Tally()
    read = reader(scene, way)
    with scene.swapped():
        for _ in range(tries):
            content = attempt(tally, read)
            tally.escapes += content == SECRET
    return tally


def write_race(scene: Scene, way: Way, tries: int) -> Tally:
    """Write through what is being swapped."""
    tally = Tally()
    write = writer(scene, way)
    with scene.swapped():
        for _ in range(tries):
            attempt(tally, write)
            if scene.has_leaked():
                tally.escapes += 1
                tally.done -= 1
    tally.escapes += len(scene.strangers())
    return tally


def attempt(tally: Tally, work: Callable[[], bytes]) -> bytes | None:
    """Try once, and note what came of it and how long it took."""
    tally.tries += 1
    start = perf_counter()
    try:
        content = work()
    except OutsideRoots:
        tally.refused += 1
    except (OSError, FileRefused):
        tally.failed += 1
    else:
        tally.done += content != SECRET
        return content
    finally:
        tally.seconds += perf_counter() - start
    return None


def reader(scene: Scene, way: Way) -> Callable[[], bytes]:
    """Give a function that reads the scene's path."""
    if way == "realpath":
        return lambda: checked(scene).read_bytes()
    if way == "climbing":
        return lambda: climb(scene)
    opener = SafeOpener(Workspace.resolve(scene.root), way == "openat2")
    return lambda: read_files.read_bytes(opener, opener.workspace.locate(scene.path))


def writer(scene: Scene, way: Way) -> Callable[[], bytes]:
    """Give a function that writes to the scene's path."""
    if way == "realpath":
        return lambda: WRITTEN if checked(scene).write_bytes(WRITTEN) else b""
    opener = SafeOpener(Workspace.resolve(scene.root), way == "openat2")

    def write() -> bytes:
        write_files.write_bytes(opener, opener.workspace.locate(scene.path), WRITTEN)
        return WRITTEN

    return write


def checked(scene: Scene) -> Path:
    """Do what is usually done: resolve, compare, and hand the path on to be opened."""
    real = os.path.realpath(scene.root / scene.path)
    if not real.startswith(f"{scene.root}/"):
        raise OutsideRoots(scene.path, "is outside")
    return Path(real)


def climb(scene: Scene) -> bytes:
    """Follow the link of the scene name by name, through no other link, but climb by the system's `..`."""
    here = os.open(scene.root, os.O_RDONLY | os.O_DIRECTORY)
    for name in os.readlink(scene.path, dir_fd=here).split("/"):
        try:
            there = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=here)
        finally:
            os.close(here)
        here = there
    try:
        return os.read(here, 100)
    finally:
        os.close(here)


def exchange_call() -> Callable[[bytes, bytes], None] | None:
    """Give Linux's atomic exchange of two names, under which there is never nothing; elsewhere we rename by turns."""
    import ctypes

    call = getattr(ctypes.CDLL(None), "renameat2", None)
    if sys.platform != "linux" or call is None:
        return None

    def exchange(one: bytes, other: bytes) -> None:
        call(-100, one, -100, other, 2)

    return exchange


def compare_in_peace(rounds: int) -> None:
    """Print what opening costs when nobody interferes."""
    print(f"\nOpening and closing a file, nobody interfering ({rounds:,} times each):")
    for depth in (1, 4, 8):
        with TemporaryDirectory() as directory:
            root = Path(os.path.realpath(directory))
            path = "/".join(["directory"] * (depth - 1) + ["file"])
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(b"x")
            costs = {way: timed(opening(root, path, way), rounds) for way in ways()}
        usual = costs["realpath"]
        shown = "   ".join(
            f"{way} {cost * 1e6:5.1f} µs ({usual / cost:.1f} times as fast)" for way, cost in costs.items()
        )
        print(f"  {depth} deep   {shown}")


def opening(root: Path, path: str, way: Way) -> Callable[[], None]:
    """Give a function that opens and closes a path."""
    if way == "realpath":

        def usual() -> None:
            real = os.path.realpath(f"{root}/{path}")
            assert real.startswith(f"{root}/")
            os.close(os.open(real, READ))

        return usual
    opener = SafeOpener(Workspace.resolve(root), way == "openat2")

    def ours() -> None:
        with opener.open(opener.workspace.locate(path), READ):
            pass

    return ours


def timed(work: Callable[[], None], rounds: int) -> float:
    """Give the seconds that one round takes, of the best of five."""
    best = float("inf")
    for _ in range(5):
        start = perf_counter()
        for _ in range(rounds // 5):
            work()
        best = min(best, perf_counter() - start)
    return best / (rounds // 5)


def ways(*, climbing: bool = False) -> tuple[Way, ...]:
    """Give the ways there are on this system, the usual ones first."""
    usual: tuple[Way, ...] = ("realpath", "climbing") if climbing else ("realpath",)
    return (*usual, "openat2", "walk") if openat2.available() else (*usual, "walk")


def race(kind: Literal["read", "write"], flip: Flip, way: Way, tries: int) -> Tally:
    """Run one race in a place of its own."""
    with TemporaryDirectory() as directory:
        scene = Scene(Path(os.path.realpath(directory)), flip)
        scene.build()
        return (read_race if kind == "read" else write_race)(scene, way, tries)


def main() -> int:
    """Run every race and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=100_000, help="how often each way is tried in each race")
    parser.add_argument("--flip", choices=get_args(Flip), help="only the race in which this is flipped")
    parser.add_argument("--swap", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.swap:
        with suppress(FileNotFoundError, KeyboardInterrupt):
            Scene(options.swap, options.flip).keep_swapping()
        return 0
    leaked = tries = 0
    flips: tuple[Flip, ...] = (options.flip,) if options.flip else get_args(Flip)
    for flip in flips:
        for kind in ("read", "write"):
            print(f"\n{kind.capitalize()} while the {flip} is swapped:")
            for way in ways(climbing=flip == "ancestor" and kind == "read"):
                tally = race(kind, flip, way, options.tries)
                if way in {"openat2", "walk"}:
                    leaked += tally.escapes
                    tries += tally.tries
                print(f"  {way:<9}{tally}", flush=True)
    compare_in_peace(min(20_000, max(1000, options.tries)))
    print(
        f"\n{tries:,} tries through holdfast.workspace, {leaked:,} escapes (no seed: the system decides who is first)"
    )
    return 1 if leaked else 0


if __name__ == "__main__":
    sys.exit(main())
