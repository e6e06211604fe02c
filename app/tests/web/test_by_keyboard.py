"""Everything a user can do with the page, without a mouse: no click in this file."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from app.tests.support.web_process import WebProcess, is_ready
from core.tests.support.stored_sessions import add_session
from holdfast.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.browser import Browser, Page

pytestmark = pytest.mark.timeout(300)

BAD = ("error", "complaint", "violation", "dialog")


async def three_sessions(place: Path) -> None:
    store = await open_store(str(place))
    for number, agent in enumerate(("page-agent", "other", "page-agent")):
        said = [("user", f"question {number}"), ("agent", f"answer {number}"), ("user", "thanks"), ("agent", "welcome")]
        await add_session(store, said, title=f"Session {number}", cwd=f"/work/{number}", agent=agent, at=number)
    await store.close()


def focused(page: Page) -> str:
    return page.run("document.activeElement.outerHTML.slice(0, 300)")


def tab_to(page: Page, what: str) -> None:
    """Press Tab until the focus is on something whose markup says `what`."""
    for _ in range(80):
        page.press("Tab")
        if what in focused(page):
            assert page.run("document.activeElement.matches(':focus-visible')"), what
            return
    raise AssertionError(f"{what} cannot be reached")


def choose(page: Page, label: str) -> None:
    """Choose an item of the menu that is open."""
    page.sees("role=menu")
    for _ in range(20):
        if page.run("document.activeElement.textContent") == label:
            page.press("Enter")
            return
        page.press("ArrowDown")
    raise AssertionError(f"there is no {label}")


def test_the_library_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    web = WebProcess(tmp_path)
    asyncio.run(three_sessions(web.store))
    with web, browser.page() as page:
        web.sign_in(page)
        page.press("j")
        page.press("m")
        choose(page, "Rename…")
        page.type("Another name")
        page.press("Enter")
        page.sees("#rows >> text=Another name")
        page.press("j")
        page.press("m")
        choose(page, "Delete")
        page.misses("#rows li:nth-child(3)")
        page.press("z")
        page.sees("#rows li:nth-child(3)")
        page.press("j")
        page.press("m")
        choose(page, "Archive")
        page.misses("#rows li:nth-child(3)")
        page.press("z")
        page.sees("#rows li:nth-child(3)")
        page.press("j")
        page.press("m")
        page.press("Escape")
        page.misses(".menu")
        assert 'class="row"' in focused(page), "back where one was"
        tab_to(page, 'name="agent"')
        page.type("other")  # chooses it
        page.until("location.search.includes('agent=other')")
        tab_to(page, 'name="agent"')
        page.press("Home")
        page.until("!location.search.includes('agent=other')")
        tab_to(page, 'name="cwd"')
        page.type("/work/2")
        page.press("Enter")
        page.until("document.querySelectorAll('#rows .row').length === 1")
        assert page.noted(*BAD) == []


def test_a_session_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page() as page:
        web.sign_in(page)
        begin_by_keyboard(page, web)
        for words in ("first words", "/edit", "second words"):
            page.type(words)
            page.press("Enter")
            page.until("!document.querySelector('#prompt').value")
        page.sees(".entry.agent >> text=You said: second words")
        page.until("document.querySelectorAll('.placed[data-line]').length >= 8")
        answer_by_keyboard(page)
        find_ones_way_by_keyboard(page)
        edit_and_fork_by_keyboard(page)
        share_by_keyboard(page)
        assert page.noted(*BAD) == []


def begin_by_keyboard(page: Page, web: WebProcess) -> None:
    page.press("n")
    page.until("document.querySelector('#new-session').open")
    tab_to(page, 'name="cwd"')
    page.press("Control+a")
    page.type(str(web.project))
    page.press("Enter")
    page.until("location.pathname.startsWith('/sessions/')")
    is_ready(page)
    page.until("document.activeElement.id === 'prompt'")  # where nothing was said one writes


def answer_by_keyboard(page: Page) -> None:
    page.type("/run")
    page.press("Escape")  # the suggestions
    page.press("Enter")
    page.sees(".question")
    page.run("document.querySelector('#prompt').blur()")
    page.press("a")  # to what is asked
    assert page.run("document.activeElement.closest('.question') !== null")
    tab_to(page, 'value="reject_once"')
    page.press("Enter")
    page.sees(".entry.agent >> text=It was not allowed.")
    page.press("c")
    page.type("/form ")
    page.press("Enter")
    page.sees(".question input")
    page.run("document.querySelector('#prompt').blur()")
    page.press("a")
    assert page.run("document.activeElement.matches('.question input')")
    page.type("Ada")
    page.press("Enter")
    page.sees(".entry.agent >> text=Hello, Ada.")
    page.press("c")
    page.type("/slow 3000 50")
    page.press("Enter")
    page.sees("text=word3 ")
    page.press("Escape")
    page.sees(".entry.note >> text=cancelled")
    tab_to(page, 'data-option="model"')
    page.type("Large")
    page.until("document.querySelector('select[data-option=model]').value === 'large'")


def find_ones_way_by_keyboard(page: Page) -> None:
    page.run("document.activeElement.blur()")
    page.press("k")
    page.until("location.hash")
    page.press("i")
    page.sees("#index-list a")
    page.until("document.activeElement.closest('#index-list')")
    page.press("Enter")
    page.until("document.querySelector('.found .entry.user')?.textContent.includes('first words')")
    page.press("Escape")
    page.misses("#index")
    page.run("document.activeElement.blur()")
    page.press("r")
    page.misses(".entry.tool")
    page.press("r")
    page.sees(".entry.tool")
    page.press("/")
    page.type("second words")
    page.until("document.querySelectorAll('#index-list a').length >= 2")
    page.press("Enter")
    page.sees(".found >> text=second words")
    page.press("Escape")
    page.misses("#index")
    page.run("document.activeElement.blur()")
    page.press("G")
    page.until("innerHeight + scrollY >= document.documentElement.scrollHeight - 60")


def edit_and_fork_by_keyboard(page: Page) -> None:
    before = page.run("location.pathname")
    page.run("document.querySelector('.placed[data-role=user] a.anchor').focus()")  # as Tab would, one after the other
    page.press("Enter")
    page.until("location.hash")
    tab_to(page, "data-entry-menu")
    choose_of_entry(page, "Edit and send again")
    assert page.run("document.querySelector('#prompt').value") == "first words"
    page.press("Control+a")
    page.type("other words")
    page.press("Enter")
    page.sees(".entry.agent >> text=You said: other words")
    page.run("document.activeElement.blur()")
    page.press("z")
    page.until(f"location.pathname === '{before}'")
    is_ready(page)


def choose_of_entry(page: Page, label: str) -> None:
    page.press("Enter")
    choose(page, label)


def share_by_keyboard(page: Page) -> None:
    tab_to(page, 'id="session-menu"')
    page.press("Enter")
    choose(page, "Share…")
    page.sees("dialog >> text=Share this session")
    page.press("Enter")  # the button that makes a link has the focus
    page.sees(".new-link input")
    tab_to(page, "Revoke")
    page.press("Enter")
    page.misses(".links li")
    page.press("Escape")
    page.misses("dialog[open]")
    page.press("u")
    page.until("location.pathname === '/'")
