"""Run what is named, or all, and print one table."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from bench.postgres import bloat, finding, flushing, items, replaying, taking_over
from bench.postgres.server import running
from holdfast.store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from bench.postgres.server import Row, Server
    from holdfast.store import SessionStore

WHAT: dict[str, Callable[[Server, SessionStore], AsyncGenerator[Row]]] = {
    "flush": flushing.measure,
    "takeover": taking_over.measure,
    "replay": replaying.measure,
    "items": items.measure,
    "find": finding.measure,
    "bloat": bloat.measure,
}


async def main(names: list[str]) -> None:
    """Measure, each on a server of its own, and print."""
    print("| what | | asked | met |\n| --- | ---: | --- | --- |", flush=True)
    for name in names:
        async with running() as server:
            store = await open_store(server.address)
            try:
                async for row in WHAT[name](server, store):
                    print(row, flush=True)
            finally:
                await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m bench.postgres",
        description="Measure the PostgreSQL store on a server that is started for it. `find` makes a million sessions "
        "and messages first, `bloat` runs 100,000 turns: some minutes each.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(WHAT)} (default: all)")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(WHAT):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(WHAT)}")
    sys.exit(asyncio.run(main(chosen.names or list(WHAT))))
