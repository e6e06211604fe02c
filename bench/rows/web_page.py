"""The web page in a real browser: does a long session, or a long list, cost more than a short one; does it stay smooth?

Short and long are looked at in turn, so that a busy machine slows both. Memory is that of the process that draws the
page, as far as no other process shares it (`Private_*` in `/proc/PID/smaps_rollup`), after 60 screens upwards; beside
it stands that of an empty page. Frames are those in which the page's main thread computed for more than 50 ms, by its
own CPU time in the browser's trace; how many came late by the clock is told beside it, for our page and for an empty
one at the same time: what is late in both is the machine's.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.tests.support.browser import Browser
from app.tests.support.web_process import WebProcess, is_ready, new_session, say
from bench.model import TIMES, Benchmark, Bound, Figure
from core.tests.support.stored_sessions import add_session
from holdfast.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from app.tests.support.browser import Page
    from bench.model import Sample
    from bench.processes import Contender

LONG, SHORT = 100_000, 100
ROUNDS = 9
SECONDS = 60

TEXT = "A paragraph of an answer with some `code` in it, and a list:\n\n- one\n- two\n\n```python\nx = 1\n```\n"
FRAMES = """(() => { window.late = []; let before = performance.now();
  const tick = (now) => {
    if (now - before > 50) window.late.push(now - before);
    before = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick); })()"""


@contextmanager
def page_of(fill: Callable[[Path], Coroutine[Any, Any, Any]]) -> Generator[tuple[Browser, WebProcess, Any]]:
    """Start the page on a store that `fill` has filled, and a browser."""
    with tempfile.TemporaryDirectory() as directory:
        web = WebProcess(Path(directory))
        filled = asyncio.run(fill(web.store))
        browser = Browser()
        try:
            with web:
                yield browser, web, filled
        finally:
            browser.close()


async def long_and_short(place: Path) -> dict[int, str]:
    """Add a session of 100,000 entries and one of 100."""
    store = await open_store(str(place))
    made: dict[int, str] = {}
    for count in (LONG, SHORT):
        said = [("user" if at % 2 == 0 else "agent", f"{at}: {TEXT}") for at in range(count)]
        made[count] = await add_session(store, said, title=f"{count} entries", at=count)
    await store.close()
    return made


def first_view(page: Page, address: str, ready: str) -> float:
    """Return after how many milliseconds a page is there and its scripts have run."""
    page.call(["goto", address, {"waitUntil": "commit"}])
    page.until(ready)
    return page.run("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")


def memory_of(signed_in: Any, address: str) -> tuple[float, float]:
    """Return the memory of a page's process and what of it scripts have, in MB, in a browser that saw no other page."""
    with Browser() as browser, browser.page(storageState=signed_in) as page:
        page.call(["goto", address])
        if address.startswith("http"):
            is_ready(page)
            for _ in range(60):
                page.call(["mouse"], ["wheel", 0, -3000])
                page.call(["waitForTimeout", 50])
        page.run("gc()")
        return max(browser.renderers().values()), page.run("performance.memory.usedJSHeapSize") / 1e6


def long_session(contender: Contender) -> Sample:
    """Look at both sessions in turn."""
    del contender
    ready = "document.querySelector('hf-session')?.dataset.state && document.querySelectorAll('.placed').length"
    with page_of(long_and_short) as (browser, web, made), browser.page() as page:
        web.sign_in(page)
        taken: dict[int, list[float]] = {LONG: [], SHORT: []}
        for _ in range(ROUNDS):
            for count, session in made.items():
                taken[count].append(first_view(page, f"{web.base}/sessions/{session}", ready))
        signed_in, address = page.signed_in(), f"{web.base}/sessions/{made[LONG]}"
        memory, scripts = memory_of(signed_in, address)
    empty, _ = memory_of(signed_in, "about:blank")
    ratio = statistics.median(taken[LONG]) / statistics.median(taken[SHORT])
    return {"ratio": ratio, "milliseconds": statistics.median(taken[LONG]), "memory": memory, "scripts": scripts,
            "empty": empty}  # fmt: skip


async def many_sessions(place: Path, count: int = LONG) -> None:
    store = await open_store(str(place))
    for first in range(0, count, 500):  # what is added at once is committed at once
        await asyncio.gather(*(
            add_session(store, [("user", f"question {number}")], title=f"Session {number}", at=number)
            for number in range(first, min(count, first + 500))
        ))  # fmt: skip
    await store.close()


def long_list(contender: Contender) -> Sample:
    """Look at a list of 100,000 sessions and at one of 100, in turn."""
    del contender
    ready = "document.querySelectorAll('#rows .row').length"
    with tempfile.TemporaryDirectory() as directory, page_of(many_sessions) as (browser, long, _one):
        short = WebProcess(Path(directory))
        asyncio.run(many_sessions(short.store, SHORT))
        taken: dict[str, list[float]] = {long.base: [], short.base: []}
        with short, browser.page() as one, browser.page() as other:
            long.sign_in(one)
            short.sign_in(other)
            for _ in range(ROUNDS):
                taken[long.base].append(first_view(one, f"{long.base}/", ready))
                taken[short.base].append(first_view(other, f"{short.base}/", ready))
    medians = {base: statistics.median(times) for base, times in taken.items()}
    return {"ratio": medians[long.base] / medians[short.base], "milliseconds": medians[long.base]}


async def nothing(_: Path) -> None:
    """Leave the store empty."""


def smooth(contender: Contender) -> Sample:
    """Let an agent say 50 words a second for a minute while the reader has scrolled up."""
    del contender
    with page_of(nothing) as (browser, web, _none), browser.page() as page, browser.page() as empty:
        web.sign_in(page)
        new_session(page, web.project)
        say(page, "/long 300")
        page.sees("text=Paragraph 299")
        say(page, f"/slow {50 * SECONDS} 50")
        page.sees("text=word5 ")
        page.run("scrollTo(0, 2000)")
        page.call(["waitForTimeout", 500])
        place = (
            "[...document.querySelectorAll('.prose p')].map(p => p.getBoundingClientRect().top).find(top => top > 100)"
        )
        before = page.run(place)
        empty.open("about:blank")
        for each in (page, empty):
            each.run(FRAMES)
        browser.start_trace(page)
        give_up = time.monotonic() + 4 * SECONDS
        while time.monotonic() < give_up and "done." not in page.run("document.body.textContent.slice(-3000)"):
            page.call(["waitForTimeout", 1000])
        tasks = browser.stop_trace()
        moved = abs(page.run(place) - before)
        late, machine = page.run("window.late"), empty.run("window.late")
    computed = [task for of_page in tasks.values() for task in of_page]
    long = sum(task > 50 for task in computed)
    return {
        "long": long,
        "worst": max(computed, default=0.0),
        "late": len(late),
        "machine": len(machine),
        "moved": moved,
    }


LONG_SESSION = Benchmark(
    name="web-session",
    title=f"web page: first view of a session of {LONG:,} entries, of that of one with {SHORT}",
    sample=long_session,
    figures=(
        Figure("time", "ratio", TIMES, (Bound("at most", 1.5),)),
        Figure("memory of the page's process", "memory", "MB", (Bound("at most", 150),)),
        Figure("the same of an empty page", "empty", "MB"),
        Figure("of it for scripts", "scripts", "MB"),
    ),
    who=("ours",),
)
LONG_LIST = Benchmark(
    name="web-list",
    title=f"web page: first view of a list of {LONG:,} sessions, of that of one with {SHORT}",
    sample=long_list,
    figures=(Figure("time", "ratio", TIMES, (Bound("at most", 1.3),)),),
    who=("ours",),
)
SMOOTH = Benchmark(
    name="web-smooth",
    title=f"web page: 50 updates a second for {SECONDS} s while scrolled up",
    sample=smooth,
    figures=(
        Figure("moved", "moved", "px", (Bound("at most", 1),)),
        Figure("frames of more than 50 ms CPU", "long", "", (Bound("at most", 0),)),
        Figure("the longest", "worst", "ms"),
        Figure("frames late by the clock", "late", ""),
        Figure("the same in an empty page", "machine", ""),
    ),
    who=("ours",),
)
