"""The list of sessions in the browser: found, put in order, and used by keyboard alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from app.tests.support.web_process import WebProcess, is_ready
from core.tests.support.stored_sessions import add_session
from holdfast.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.browser import Browser

pytestmark = pytest.mark.timeout(300)

BAD = ("error", "complaint", "violation", "dialog")


async def some_sessions(place: Path, count: int = 130) -> None:
    store = await open_store(str(place))
    for number in range(count):
        agent = "page-agent" if number % 2 else "other"
        said = [("user", f"question {number}"), ("agent", f"the answer about topic{number} and **whales**")]
        await add_session(store, said, title=f"Session {number}", cwd=f"/work/{number % 3}", agent=agent, at=number)
    await store.close()


def test_sessions_are_listed_filtered_found_and_put_in_order(browser: Browser, tmp_path: Path) -> None:
    web = WebProcess(tmp_path)
    asyncio.run(some_sessions(web.store))
    with web, browser.page() as page:
        web.sign_in(page)
        assert page.texts("#rows .title")[:3] == ["Session 129", "Session 128", "Session 127"]
        page.sees("#rows .cwd[title='/work/0']")
        while page.count("#rows .title") < 130:  # more come as one scrolls
            page.call(["mouse"], ["wheel", 0, 4000])
            page.call(["waitForTimeout", 50])
        assert page.texts("#rows .title")[-1] == "Session 0"

        page.call(["locator", "#filters select[name=agent]"], ["selectOption", "other"])
        page.until("location.search.includes('agent=other')")
        assert page.texts("#rows .title")[0] == "Session 128"
        page.open(f"{web.base}/?cwd=/work/1")
        assert page.texts("#rows .title")[0] == "Session 127"

        page.open(f"{web.base}/")
        page.press("/")
        page.type("whales")
        page.sees("#found >> text=The first 40 of 130 places")
        page.click("#rows >> text=Show 130 places")
        page.sees("#found >> text=/^130 places$/")
        assert page.count("#rows .hit") == 130
        page.fill("#search", "")
        page.fill("#search", "the")
        page.sees("#found >> text=The first 40 of 130 places")
        page.fill("#search", "")
        page.click("#search")
        page.type("topic77")
        page.sees("#rows mark >> text=topic77")
        assert page.count("#rows .hit") == 1
        page.press("ArrowDown")
        page.press("Enter")
        page.until("location.pathname.startsWith('/sessions/')")
        page.sees(".entry.agent >> text=topic77")
        assert page.noted(*BAD) == []


def test_a_session_is_renamed_archived_deleted_and_all_that_is_undone(browser: Browser, tmp_path: Path) -> None:
    web = WebProcess(tmp_path)
    asyncio.run(some_sessions(web.store, 3))
    with web, browser.page() as page:
        web.sign_in(page)
        page.click("#rows li:first-child [data-menu]")
        page.sees("role=menu")
        page.press("Enter")  # the first: rename
        page.type("A better name")
        page.press("Enter")
        page.sees("#rows >> text=A better name")

        page.click("#rows li:nth-child(2) [data-menu]")
        page.click("role=menuitem[name='Archive']")
        page.misses("#row-none, #rows li[data-title='Session 1']")
        page.click("#messages >> text=Undo")
        page.sees("#rows >> text=Session 1")

        page.click("#rows li[data-title='Session 0'] [data-menu]")
        page.click("role=menuitem[name='Delete']")
        page.misses("#rows li[data-title='Session 0']")
        page.click("#messages >> text=Undo")
        page.sees("#rows >> text=Session 0")

        page.call(["reload"])
        assert sorted(page.texts("#rows .title")) == ["A better name", "Session 0", "Session 1"]
        page.click("#rows li[data-title='Session 1'] [data-menu]")
        headers, body = "{'content-type': 'application/json'}", "JSON.stringify({title: 'Elsewhere'})"
        how = f"{{method: 'POST', headers: {headers}, body: {body}}}"
        page.run(f"fetch(document.querySelector('#rows li[data-title=\"Session 1\"] a').href + '/rename', {how})")
        page.sees("#rows >> text=Elsewhere")
        page.click("role=menuitem[name='Fork']")  # the menu has outlived that
        page.until("location.pathname.startsWith('/sessions/')")
        is_ready(page)
        page.sees(".entry.agent >> text=topic1")
        assert page.noted(*BAD) == []


def test_everything_in_the_list_can_be_done_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    web = WebProcess(tmp_path)
    asyncio.run(some_sessions(web.store, 3))
    with web, browser.page() as page:
        web.sign_in(page)
        page.press("Tab")
        assert page.run("document.activeElement.textContent") == "Skip to the content"
        reached = set[str]()
        for _ in range(40):
            page.press("Tab")
            reached.add(page.run("document.activeElement.outerHTML.slice(0, 400)"))
            assert page.run(
                "document.activeElement === document.body || document.activeElement.matches(':focus-visible')"
            )
        for what in ('id="search"', 'name="agent"', 'name="cwd"', 'class="row"', "data-menu", 'id="new"'):
            assert any(what in each for each in reached), what
        page.open(f"{web.base}/")
        page.press("j")
        page.press("j")
        assert "Session 1" in page.run("document.activeElement.closest('li')?.dataset.title ?? ''")
        page.press("Enter")
        page.until("location.pathname.startsWith('/sessions/')")
        is_ready(page)
        page.press("c")
        assert page.run("document.activeElement.id") == "prompt"
        page.press("Escape")
        page.run("document.activeElement.blur()")
        page.press("u")
        page.until("location.pathname === '/'")
        page.press("n")
        page.until("document.querySelector('#new-session').open")
        page.press("Escape")
        page.until("!document.querySelector('#new-session').open")
        assert page.noted(*BAD) == []
