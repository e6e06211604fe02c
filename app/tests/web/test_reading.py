"""Reading a session in the browser: from its end, to any of its prompts, while it goes on, and without the tools."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from app.tests.support.web_process import WebProcess, is_ready, new_session, say
from core.tests.support.stored_sessions import add_session
from holdfast.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.browser import Browser, Page

pytestmark = pytest.mark.timeout(300)

BAD = ("error", "complaint", "violation", "dialog")
TURNS = 1_500


async def long_session(place: Path) -> str:
    store = await open_store(str(place))
    said = [
        (("user", "agent")[at % 2], f"{('question', 'answer')[at % 2]} number{at // 2}.") for at in range(2 * TURNS)
    ]
    session = await add_session(store, said, title="A long one")
    await store.close()
    return session


def test_a_long_session_is_read_from_its_end_and_from_anywhere(browser: Browser, tmp_path: Path) -> None:
    web = WebProcess(tmp_path)
    session = asyncio.run(long_session(web.store))
    with web, browser.page() as page:
        web.sign_in(page)
        page.open(f"{web.base}/sessions/{session}")
        is_ready(page)
        page.sees(f"text=answer number{TURNS - 1}.")
        assert page.count(".placed") < 200  # the tail first
        page.until("scrollY > 0")
        top = "document.querySelector('.placed').dataset.line"
        first = int(page.run(top))
        while int(page.run(top)) == first:
            page.call(["mouse"], ["wheel", 0, -2500])
            page.call(["waitForTimeout", 50])

        page.press("i")
        page.sees("#index-list a")
        assert page.count("#index-list a") == TURNS
        page.click("#index-list a >> nth=700")
        page.sees(".entry.user >> text=question number700.")
        page.press("Escape")
        page.until("location.hash === '#l1400'")
        page.call(["reload"])
        is_ready(page)
        page.sees(".entry.user >> text=question number700.")
        page.run("document.activeElement.blur()")
        page.press("j")
        page.until("location.hash === '#l1402'")
        page.press("k")
        page.until("location.hash === '#l1400'")

        page.fill("#find", "number33.")
        page.until("document.querySelectorAll('#index-list a').length === 2")
        page.click("#index-list a")
        page.sees(".entry.user >> text=question number33.")
        page.run("document.activeElement.blur()")
        page.press("G")
        page.sees(f"text=answer number{TURNS - 1}.")
        assert page.noted(*BAD) == []


def test_what_one_reads_does_not_move_while_the_agent_goes_on(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page() as page:
        web.sign_in(page)
        new_session(page, web.project)
        say(page, "/long 200")
        page.sees("text=Paragraph 199")
        say(page, "/slow 300 50")
        page.sees("text=word5 ")
        page.run("scrollTo(0, 1500)")
        page.until("!document.querySelector('#latest').hidden")
        read = reading(page)
        page.until("document.body.textContent.includes('done.')")
        assert reading(page) == read
        page.click("#latest")
        page.until("innerHeight + scrollY >= document.documentElement.scrollHeight - 5")
        say(page, "/slow 100 50")
        page.until("document.body.textContent.split('done.').length === 3")
        page.until("innerHeight + scrollY >= document.documentElement.scrollHeight - 5")  # at the end one follows
        assert page.noted(*BAD) == []


def reading(page: Page) -> list[object]:
    """Return the first paragraph that is in view, and where it is."""
    return page.run(
        "(() => { for (const p of document.querySelectorAll('.prose p')) { const top = p.getBoundingClientRect().top;"
        " if (top > 80) return [p.textContent, Math.round(top)]; } })()"
    )


def test_without_the_tools_only_what_was_said_is_left(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page() as page:
        web.sign_in(page)
        new_session(page, web.project)
        say(page, "/edit")
        page.sees(".entry.tool")
        page.run("document.activeElement.blur()")
        page.press("r")
        page.misses(".entry.tool")
        page.sees(".entry.user")
        page.sees(".entry.agent")
        page.call(["reload"])
        is_ready(page)
        page.misses(".entry.tool")
        page.run("document.activeElement.blur()")
        page.press("r")
        page.sees(".entry.tool")
        assert page.noted(*BAD) == []


def test_what_one_looks_for_is_opened_and_marked_where_it_is_found(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page(permissions=["clipboard-read", "clipboard-write"]) as page:
        web.sign_in(page)
        page.sees(".empty >> text=There are no sessions yet.")
        new_session(page, web.project)
        page.sees(".empty >> text=What should page-agent do?")
        say(page, "/edit")
        page.sees(".entry.agent h3 >> text=Done")
        page.misses(".empty")
        page.until("document.querySelectorAll('.placed[data-line]').length >= 4")
        page.run("document.querySelector('.entry.tool details').open = false")
        page.fill("#find", "hello, world")
        page.until("document.querySelectorAll('#index-list a').length === 2")
        page.press("Enter", "#find")
        page.sees(".found .diff ins")
        marked = "[...CSS.highlights.get('found')].map(String).join()"
        page.press("Enter", "#find")
        page.sees(".found.placed[data-role=agent]")
        page.until(f"{marked} === 'hello, world'")
        page.press("Escape", "#find")
        page.until("!CSS.highlights.has('found')")
        page.click(".placed[data-role=agent] [data-entry-menu]")
        page.click("role=menuitem[name='Copy the link']")
        page.sees("#messages >> text=The link to this entry is copied.")
        address = page.run("navigator.clipboard.readText()")
        page.open(f"{web.base}/?q=hello")
        page.click("#rows .hit")
        page.until("location.pathname.startsWith('/sessions/')")
        page.until("[...CSS.highlights.get('found') ?? []].length")
        page.open(address)
        page.sees(".found.placed[data-role=agent]")
        assert page.noted(*BAD) == []
