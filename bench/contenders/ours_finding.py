"""Holdfast's store, asked for pages of its list or for words: ``pages SMALL LARGE`` or ``search SMALL LARGE``.

Both stores are open at once and asked by turns, all on one core: each has a thread of its own, and whether that happens
to share a core with ours makes more of a difference than a million sessions. What is reported is how much longer the
large one takes, by the median of many questions, and how long the small one takes.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from typing import TYPE_CHECKING

from meter import Meter

from holdfast.model import Scope
from holdfast.store import open_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.store import SessionStore

ROUNDS = 200
PLACES = 20
"""Pages in the middle that are asked for by turns."""
PAGE = 50
CWD = "/home/somebody/project-3"
WORDS = {"rare": "chrysanthemum", "common": "the"}


async def pages(small: SessionStore, large: SessionStore, meter: Meter) -> None:
    for cwd in (None, CWD):
        few, many = await cursors(small, cwd), await cursors(large, cwd)
        for where in ("first", "middle", "last"):

            def ask(
                store: SessionStore, places: list[str | None], cwd: str | None = cwd
            ) -> Callable[[int], Awaitable[int]]:
                async def asked(n: int) -> int:
                    cursor = places[n % len(places)]
                    return len(
                        (await store.list(Scope(), cwd=cwd, archived="exclude", cursor=cursor, limit=PAGE)).sessions
                    )

                return asked

            name = f"{where} page" if cwd is None else f"{where} page of one directory"
            await compare(meter, name, ask(small, few[where]), ask(large, many[where]), found=PAGE)


async def cursors(store: SessionStore, cwd: str | None) -> dict[str, list[str | None]]:
    """Walk through the whole list once, to know where its pages begin."""
    found: list[str | None] = [None]
    while (
        page := await store.list(Scope(), cwd=cwd, archived="exclude", cursor=found[-1], limit=PAGE)
    ).cursor is not None:
        found.append(page.cursor)
    middle = found[len(found) // 4 : -(len(found) // 4) or None]
    return {"first": found[:1], "middle": middle[:: max(1, len(middle) // PLACES)], "last": found[-1:]}


async def search(small: SessionStore, large: SessionStore, meter: Meter) -> None:
    for name, word in WORDS.items():

        def ask(store: SessionStore, word: str = word) -> Callable[[int], Awaitable[int]]:
            async def asked(_: int) -> int:
                return len(await store.search(word, Scope(), cwd=None, limit=20))

            return asked

        await compare(meter, f"{name} word", ask(small), ask(large), found=20)


async def compare(
    meter: Meter,
    name: str,
    small: Callable[[int], Awaitable[int]],
    large: Callable[[int], Awaitable[int]],
    *,
    found: int,
) -> None:
    took: tuple[list[float], list[float]] = ([], [])
    for n in range(ROUNDS):
        for ask, times in zip((small, large), took, strict=True):
            asked = time.perf_counter()
            assert await ask(n) == found
            times.append(time.perf_counter() - asked)
    few, many = map(statistics.median, took)
    meter.more[name] = few
    meter.more[f"{name}, share"] = many / few


async def main(what: str, *paths: str) -> None:
    if sys.platform == "linux":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    meter = Meter()
    small, large = [await open_store(path) for path in paths]
    await (pages if what == "pages" else search)(small, large, meter)
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
