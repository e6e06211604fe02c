"""A store on a small disk of its own, which is filled up and emptied again. Exits with 77 where none can be mounted."""

# ruff: noqa: T201

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from core.tests.support.stores import CWD, NOTHING, Place, bodies, history, info, message, new, prompt, talked, walk
from holdfast.errors import StoreError, StoreFull
from holdfast.model import SessionState


async def run(disk: Path) -> None:
    async with Place(str(disk / "sessions.db")).open() as store:
        claim = await talked(store, CWD, "before")
        other = await new(store)
        log = await store.begin(other, prompt("x"), NOTHING)
        log.append(b'{"sessionUpdate":"_x"}\n')
        expected = await history(store, claim.session)
        ballast = disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass
        big = message("y" * 100_000)
        refused: list[type[StoreError]] = []
        for attempt in (
            lambda: store.seal(claim, [big], NOTHING, messages=1),
            lambda: store.create(info(title="z" * 100_000), SessionState()),
            lambda: store.begin(claim, prompt("w" * 100_000), NOTHING),
        ):
            try:
                await attempt()
            except StoreError as e:
                refused.append(type(e))
        for _ in range(2_000):
            try:
                log.append(b'{"sessionUpdate":"_x","text":"%s"}\n' % (b"x" * 1_000))
            except StoreFull:
                refused.append(StoreFull)
                break
        assert refused == [StoreFull] * 4, refused
        print("full")
        assert await history(store, claim.session) == expected
        assert await walk(store) == [other.session, claim.session]
        print("readable")
        ballast.unlink()
        log.append(b'{"sessionUpdate":"_y"}\n')
        await log.sync()
        await store.seal(claim, [big], NOTHING, messages=1)
        assert await history(store, claim.session) == [*expected, *bodies([big])]
    async with Place(str(disk / "sessions.db")).open() as store:
        broken = (await store.claim(other.session)).broken
        assert broken is not None
        assert broken.lines[-1] == b'{"sessionUpdate":"_y"}'
        print("again")


def main() -> int:
    with TemporaryDirectory() as path:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", path], check=False)
        if mounted.returncode:
            return 77
        try:
            asyncio.run(run(Path(path)))
        finally:
            subprocess.run(["umount", path], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
